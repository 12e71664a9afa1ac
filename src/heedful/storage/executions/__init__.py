"""Connectors, executions, what was said of them, and golden examples."""
