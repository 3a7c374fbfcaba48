from typing import Any

import pytest

from desktop_agent.types.blocks import ToolResult
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import StopReason
from desktop_agent.types.providers import PromptCaching
from tests.desktop_agent.providers.dialects.anthropic.bodies import (
    TOOL,
    answer,
    asked,
    body,
    call,
    result,
    results,
    thought,
)

HI = Message.user("hi")
SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def marks(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Where marks stand: (tools, place), (system, place), (message, place)."""
    places = [(name, place) for name in ("tools", "system") for place, each in _marked(found.get(name, []))]
    return places + [(at, place) for at, each in enumerate(found["messages"]) for place, _ in _marked(each["content"])]


def _marked(blocks: list[dict[str, Any]]) -> list[tuple[int, Any]]:
    return [(place, each["cache_control"]) for place, each in enumerate(blocks) if "cache_control" in each]


def test_the_four_marks() -> None:
    given = (HI, answer("a"), HI, answer("b", call()), results(result()), Message.user("more"))
    found = body(asked(*given, tools=(TOOL, type(TOOL)("g", "", {})), system_prompt="S"))
    assert marks(found) == [("tools", 1), ("system", 0), (2, 0), (4, 1)]
    assert found["tools"][1]["cache_control"] == SHORT


def test_the_tail_moves_and_the_stable_point_is_where_the_last_request_wrote() -> None:
    """However many blocks a turn has: the server looks back over twenty."""
    calls = [call(f"toolu_{each}") for each in range(30)]
    first = (HI, answer(thought(), *calls))
    loop = (*first, results(*(ToolResult(tool_use_id=each.id) for each in calls)))
    assert marks(body(asked(HI))) == [(0, 0)]
    assert marks(body(asked(*loop, tools=(TOOL,))))[1:] == [(0, 0), (2, 29)]
    assert marks(body(asked(*loop, answer("x"), HI, tools=(TOOL,))))[1:] == [(2, 29), (4, 0)]


def test_never_on_thinking_or_on_what_the_server_wrote() -> None:
    pause = answer("Look.", thought(), stop_reason=StopReason.PAUSE_TURN)
    assert marks(body(asked(HI, pause))) == [(0, 0), (1, 0)]


def test_instructions_in_the_middle_carry_none() -> None:
    assert marks(body(asked(HI, Message.system("M")))) == [(0, 0)]


def test_longer() -> None:
    found = body(asked(HI, answer("a"), HI, tools=(TOOL,), system_prompt="S", caching=PromptCaching(lifetime="long")))
    assert len(marks(found)) == 4
    assert found["tools"][0]["cache_control"] == found["messages"][-1]["content"][-1]["cache_control"] == LONG


def test_off() -> None:
    assert marks(body(asked(HI, tools=(TOOL,), system_prompt="S", caching=PromptCaching(enabled=False)))) == []


@pytest.mark.parametrize(
    "own",
    [
        {"cache_control": SHORT},
        {"system": [{"type": "text", "text": "S", "cache_control": LONG}]},
        {"tools": [{"name": "g", "input_schema": {"type": "object"}, "cache_control": SHORT}]},
    ],
)
def test_the_persons_own_marks_stand_alone(own: dict[str, Any]) -> None:
    found = body(asked(HI, answer("a"), HI, tools=(TOOL,), system_prompt="S", extra_options=own))
    assert len(marks(found)) + ("cache_control" in found) == 1
