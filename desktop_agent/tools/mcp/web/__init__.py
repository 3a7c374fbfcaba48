"""MCP servers that are somewhere else: streamable HTTP, and whom it may reach."""
