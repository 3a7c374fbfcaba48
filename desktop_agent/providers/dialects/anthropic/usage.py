"""The usage object of the Messages API, in our words."""

from collections.abc import Mapping
from typing import Any

from desktop_agent.providers.transport.json_text import object_in
from desktop_agent.vocabulary.usage import Usage

_USAGE_FIELDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class UsageCounter:
    """Folds the reports of one answer: each is cumulative, so its values replace; absent or null ones do not."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def take(self, report: Mapping[str, Any]) -> Usage | None:
        """Fold one report in. None while nothing is known."""
        found = {name: token_count(report.get(name)) for name in _USAGE_FIELDS}
        found["thinking"] = token_count(object_in(report, "output_tokens_details").get("thinking_tokens"))
        self._counts |= {name: value for name, value in found.items() if value is not None}
        return self._usage() if self._counts else None

    def _usage(self) -> Usage:
        """The wire leaves cached tokens out of `input_tokens`; ours is the whole prompt."""
        get = self._counts.get
        fresh, written = get("input_tokens"), get("cache_creation_input_tokens")
        read, output = get("cache_read_input_tokens"), get("output_tokens")
        prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
        return Usage(
            input_tokens=prompt,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=get("thinking"),
            total_tokens=None if prompt is None or output is None else prompt + output,
        )


def token_count(value: Any) -> int | None:
    """A number of tokens; what is missing, negative or no number is unknown."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None
