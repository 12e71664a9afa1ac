"""An MCP server: what an agent may call, with the names, types and defaults that the engine has."""
