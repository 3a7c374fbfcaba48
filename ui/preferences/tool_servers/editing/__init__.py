"""An MCP server being written."""
