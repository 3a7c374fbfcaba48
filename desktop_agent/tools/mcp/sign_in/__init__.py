"""Signing in to a server of tools with the browser (OAuth 2.1, as the Model Context Protocol wants it)."""
