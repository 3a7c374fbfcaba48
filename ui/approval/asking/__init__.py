"""What an MCP server asks of the person: a form, a page to open, an answer of a model."""
