"""Chat Completions, as OpenAI and about fifteen families of servers speak it."""

from desktop_agent.providers.dialects.openai_chat.adapter import OpenAIChat

__all__ = ["OpenAIChat"]
