"""The MCP servers that the person set up, for the conversations of one engine."""
