"""The Messages API, as Anthropic and the servers that imitate it speak it."""
