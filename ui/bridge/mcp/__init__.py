"""MCP servers, for the screens."""
