"""Cache marks: the server keeps what stands before each of them.

At most four: behind the tools, behind the instructions, behind the last question (it moves with every turn), and behind
the question before that, where the last request wrote: the server looks back over twenty blocks only, and a turn with
many calls is longer.
"""

from typing import Any, Literal

from desktop_agent.providers.transport.json_text import is_array, is_object

_MARKABLE = ("text", "image", "tool_use", "tool_result")


def add_cache_marks(fields: dict[str, Any], lifetime: Literal["short", "long"]) -> None:
    """Mark a body. One lifetime for all: longer ones would have to stand before shorter ones."""
    control: dict[str, Any] = {"type": "ephemeral"}
    if lifetime == "long":
        control["ttl"] = "1h"
    for name in ("tools", "system"):
        if fields.get(name):
            fields[name][-1]["cache_control"] = dict(control)
    messages: list[dict[str, Any]] = [each for each in fields["messages"] if each["role"] != "system"]
    asked = [place for place, message in enumerate(messages) if message["role"] == "user"]
    places = {len(messages) - 1, *[place for place in asked if place < len(messages) - 1][-1:]}
    for place in places:
        block = next((each for each in reversed(messages[place]["content"]) if each["type"] in _MARKABLE), None)
        if block is not None:
            block["cache_control"] = dict(control)


def has_cache_marks(value: Any) -> bool:
    """Whether the person marks by themselves: then nobody else does, because the number and the order count."""
    if is_object(value):
        return "cache_control" in value or any(map(has_cache_marks, value.values()))
    return is_array(value) and any(map(has_cache_marks, value))
