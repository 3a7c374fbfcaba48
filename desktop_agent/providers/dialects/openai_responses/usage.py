"""The usage object of the Responses API, in our words."""

from typing import Any

from desktop_agent.providers.dialects.openai_chat import usage as chat
from desktop_agent.vocabulary.usage import Usage


def parse_usage(data: dict[str, Any]) -> Usage:
    """Tokens and cost. What is missing, negative or not a number is unknown.

    The object is that of Chat Completions under other names; output includes reasoning in both.
    """
    return chat.parse_usage(
        {
            **data,
            "prompt_tokens": data.get("input_tokens"),
            "completion_tokens": data.get("output_tokens"),
            "prompt_tokens_details": data.get("input_tokens_details"),
            "completion_tokens_details": data.get("output_tokens_details"),
        }
    )
