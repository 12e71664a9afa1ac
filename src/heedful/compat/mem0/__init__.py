"""mem0's memories and feedback on Heedful: its exports."""
