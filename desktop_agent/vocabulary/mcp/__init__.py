"""MCP servers, which speak the Model Context Protocol (https://modelcontextprotocol.io), and what they ask."""
