"""The settings page of MCP servers: catalog of tools, editor, log and import."""
