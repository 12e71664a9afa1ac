"""A simulated year of mixed traffic on real servers, and what is looked at afterwards.

`bench.aging` makes a table of it; the tests in `tests/soak` hold what must be true.
"""
