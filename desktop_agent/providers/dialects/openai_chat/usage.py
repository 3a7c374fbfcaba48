"""The usage object of Chat Completions and its dialects, in our words."""

import math
from typing import Any

from desktop_agent.providers.transport.json_text import object_in
from desktop_agent.vocabulary.usage import Usage

_XAI_TICKS_PER_DOLLAR = 10_000_000_000  # docs.x.ai, cost tracking


def parse_usage(data: dict[str, Any]) -> Usage:
    """Tokens and cost. What is missing, negative or not a number is unknown.

    Output includes reasoning everywhere; xAI counts it apart, which the total gives away.
    """
    prompt_details, completion_details = (
        object_in(data, "prompt_tokens_details"),
        object_in(data, "completion_tokens_details"),
    )
    prompt, completion = _token_count(data.get("prompt_tokens")), _token_count(data.get("completion_tokens"))
    total, reasoning = _token_count(data.get("total_tokens")), _token_count(completion_details.get("reasoning_tokens"))
    if prompt is not None and completion is not None:
        if reasoning and total == prompt + completion + reasoning:
            completion += reasoning
        total = prompt + completion if total is None else total
    cached = _token_count(prompt_details.get("cached_tokens"))
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        cache_read_tokens=_token_count(data.get("prompt_cache_hit_tokens")) if cached is None else cached,
        cache_write_tokens=_token_count(prompt_details.get("cache_write_tokens")),
        reasoning_tokens=reasoning,
        total_tokens=total,
        cost=_parse_cost(data),
    )


def _token_count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _parse_cost(data: dict[str, Any]) -> float | None:
    """US dollars: OpenRouter's `cost`, xAI's ticks."""
    ticks = _token_count(data.get("cost_in_usd_ticks"))
    cost = data.get("cost") if ticks is None else ticks
    if not isinstance(cost, (int, float)) or isinstance(cost, bool):
        return None
    try:
        dollars = float(cost) if ticks is None else ticks / _XAI_TICKS_PER_DOLLAR
    except OverflowError:
        return None
    return dollars if 0 <= dollars < math.inf else None
