"""Removes a person's name and words from the tables of a store. The one place that changes rows of the ledger."""
