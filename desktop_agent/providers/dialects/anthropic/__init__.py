"""The Messages API, as Anthropic and the servers that imitate it speak it."""

from desktop_agent.providers.dialects.anthropic.adapter import Anthropic

__all__ = ["Anthropic"]
