"""Intervals, rates, stopping rules and change detection. Pure functions."""
