"""Hindsight's banks, memories and signals on Heedful: its HTTP interface and its exports."""
