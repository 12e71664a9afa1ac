"""An OpenAI-compatible endpoint in front of another one: memories for every tool that has a base URL."""
