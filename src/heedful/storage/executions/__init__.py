"""Connectors, executions and golden examples."""
