"""Langfuse's traces and scores on Heedful: its exports."""
