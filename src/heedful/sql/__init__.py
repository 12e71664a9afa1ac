"""Executions: SQL that runs on a connector, behind three walls, and its result."""
