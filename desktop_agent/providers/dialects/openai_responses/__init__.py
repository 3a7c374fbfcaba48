"""The Responses API: OpenAI's own, and servers that offer the same."""

from desktop_agent.providers.dialects.openai_responses.adapter import OpenAIResponses

__all__ = ["OpenAIResponses"]
