"""Dialogs for what an MCP server requests of the person: elicitation (form and URL mode) and sampling."""
