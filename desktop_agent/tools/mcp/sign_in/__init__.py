"""Signing in to an MCP server with the browser (OAuth 2.1, as the Model Context Protocol wants it)."""
