"""What MCP servers offer for a message: resources and ready prompts."""
