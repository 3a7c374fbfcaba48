"""`usageMetadata` in our words."""

from typing import Any

from desktop_agent.vocabulary.usage import Usage


def parse_usage(data: dict[str, Any]) -> Usage:
    """Tokens of one answer, from the last report of its stream: each is a running total.

    The server leaves zeros out, so in a report that counts the prompt a missing part of the prompt or of the answer
    is 0. Whether anything was thought or cached is unknown where it is not said. Output is billed with its thoughts.
    """
    prompt, tool_use = _token_count(data, "promptTokenCount"), _token_count(data, "toolUsePromptTokenCount")
    answer, thoughts = _token_count(data, "candidatesTokenCount"), _token_count(data, "thoughtsTokenCount")
    total = _token_count(data, "totalTokenCount")
    read = None if prompt is tool_use is None else (prompt or 0) + (tool_use or 0)
    written = None if read is answer is thoughts is None else (answer or 0) + (thoughts or 0)
    if total is None and read is not None and written is not None:
        total = read + written
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cache_read_tokens=_token_count(data, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
        total_tokens=total,
    )


def _token_count(data: dict[str, Any], name: str) -> int | None:
    value = data.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
