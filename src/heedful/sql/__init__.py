"""Executions: SQL that runs on a connector, behind three safeguards, and its result."""
