"""How callers reach the engine: HTTP, the client, the command line, MCP and the dashboard. Nothing below imports it."""
