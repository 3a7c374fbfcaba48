from typing import Any

import pytest

from desktop_agent.types.blocks import ToolResult
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import StopReason
from desktop_agent.types.providers import PromptCaching
from tests.desktop_agent.providers.dialects.anthropic.bodies import (
    TOOL,
    answer,
    body,
    call,
    make_request,
    result,
    results,
    thought,
)

HI = Message.user("hi")
SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def marks(fields: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return where cache marks are: (tools, index), (system, index), (message number, block index)."""
    places = [
        (name, index) for name in ("tools", "system") for index, blocks_or_message in _marked(fields.get(name, []))
    ]
    return places + [
        (number, index)
        for number, blocks_or_message in enumerate(fields["messages"])
        for index, _ in _marked(blocks_or_message["content"])
    ]


def _marked(blocks: list[dict[str, Any]]) -> list[tuple[int, Any]]:
    return [(index, block["cache_control"]) for index, block in enumerate(blocks) if "cache_control" in block]


def test_the_four_marks() -> None:
    history = (HI, answer("a"), HI, answer("b", call()), results(result()), Message.user("more"))
    fields = body(make_request(*history, tools=(TOOL, type(TOOL)("g", "", {})), system_prompt="S"))
    assert marks(fields) == [("tools", 1), ("system", 0), (2, 0), (4, 1)]
    assert fields["tools"][1]["cache_control"] == SHORT


def test_the_tail_moves_and_the_stable_point_is_where_the_last_request_wrote() -> None:
    """Even if a turn has more than the twenty blocks that the server looks back."""
    calls = [call(f"toolu_{number_or_call}") for number_or_call in range(30)]
    first = (HI, answer(thought(), *calls))
    loop = (*first, results(*(ToolResult(tool_use_id=number_or_call.id) for number_or_call in calls)))
    assert marks(body(make_request(HI))) == [(0, 0)]
    assert marks(body(make_request(*loop, tools=(TOOL,))))[1:] == [(0, 0), (2, 29)]
    assert marks(body(make_request(*loop, answer("x"), HI, tools=(TOOL,))))[1:] == [(2, 29), (4, 0)]


def test_never_on_thinking_or_on_what_the_server_wrote() -> None:
    pause = answer("Look.", thought(), stop_reason=StopReason.PAUSE_TURN)
    assert marks(body(make_request(HI, pause))) == [(0, 0), (1, 0)]


def test_instructions_in_the_middle_carry_none() -> None:
    assert marks(body(make_request(HI, Message.system("M")))) == [(0, 0)]


def test_longer() -> None:
    fields = body(
        make_request(HI, answer("a"), HI, tools=(TOOL,), system_prompt="S", caching=PromptCaching(lifetime="long"))
    )
    assert len(marks(fields)) == 4
    assert fields["tools"][0]["cache_control"] == fields["messages"][-1]["content"][-1]["cache_control"] == LONG


def test_off() -> None:
    assert marks(body(make_request(HI, tools=(TOOL,), system_prompt="S", caching=PromptCaching(enabled=False)))) == []


@pytest.mark.parametrize(
    "own",
    [
        {"cache_control": SHORT},
        {"system": [{"type": "text", "text": "S", "cache_control": LONG}]},
        {"tools": [{"name": "g", "input_schema": {"type": "object"}, "cache_control": SHORT}]},
    ],
)
def test_the_persons_own_marks_stand_alone(own: dict[str, Any]) -> None:
    fields = body(make_request(HI, answer("a"), HI, tools=(TOOL,), system_prompt="S", extra_options=own))
    assert len(marks(fields)) + ("cache_control" in fields) == 1
