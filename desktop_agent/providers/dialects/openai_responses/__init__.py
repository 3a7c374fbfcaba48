"""The Responses API: OpenAI's own, and servers that offer the same."""
