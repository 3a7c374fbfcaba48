"""Dialogs for requests of an MCP server to the person: elicitation (form and URL mode) and sampling."""
