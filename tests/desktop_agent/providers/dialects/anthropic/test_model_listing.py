import json
from datetime import date
from typing import Any

import pytest

from desktop_agent.providers.dialects.anthropic.model_listing import fetch_models, parse_model
from desktop_agent.types.errors import Overloaded, UnreadableAnswer
from desktop_agent.types.providers import Capabilities, ModelInfo

YES, NO = {"supported": True}, {"supported": False}
ENTRY: dict[str, Any] = {
    "type": "model",
    "id": "claude-new",
    "display_name": "Claude New",
    "created_at": "2026-11-01T00:00:00Z",
    "lifecycle": "deprecated",
    "deprecated_at": "2026-11-02T00:00:00Z",
    "retires_at": "2027-05-01T00:00:00Z",
    "line": "new",
    "max_input_tokens": 1_000_000,
    "max_tokens": 128_000,
    "capabilities": {
        "image_input": YES,
        "structured_outputs": NO,
        "effort": {"supported": True, "low": YES, "medium": YES, "high": YES, "xhigh": None, "max": NO},
        "thinking": {
            "supported": True,
            "types": {"adaptive": YES, "between_tools": YES, "disabled": NO, "enabled": YES},
        },
    },
}


def test_everything_that_an_entry_tells() -> None:
    assert parse_model(ENTRY) == ModelInfo(
        id="claude-new",
        title="Claude New",
        retires=date(2027, 5, 1),
        capabilities=Capabilities(
            images=True,
            reasoning=True,
            context_window=1_000_000,
            max_output_tokens=128_000,
            reasoning_modes=frozenset({"adaptive", "between_tools", "budget", "effort"}),
            efforts=("low", "medium", "high"),
            budget=(1024, 127_999),
            structured_output=False,
        ),
    )


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "m"},
        {"id": "m", "display_name": "m", "capabilities": None, "max_tokens": None, "retires_at": "soon"},
        {"id": "m", "object": "model", "owned_by": "lmstudio", "capabilities": ["tool_use"], "max_tokens": 0},
        {"id": "m", "capabilities": {"thinking": {"types": None}, "effort": YES, "image_input": True}},
    ],
)
def test_what_nobody_tells_is_unknown(entry: dict[str, Any]) -> None:
    assert parse_model(entry) == ModelInfo("m")


async def listed(*pages: Any) -> tuple[list[str], list[str]]:
    queries: list[str] = []

    async def exchange(query: str) -> bytes:
        queries.append(query)
        return json.dumps(pages[len(queries) - 1]).encode()

    return [model.id for model in await fetch_models(exchange)], queries


def page(*ids: str, more: Any = True, last: Any = ...) -> dict[str, Any]:
    return {
        "data": [{"id": model_id} for model_id in ids],
        "has_more": more,
        "last_id": ids[-1] if last is ... else last,
    }


async def test_all_pages() -> None:
    ids, queries = await listed(page("a", "b/c"), page("b/c", "d", more=False))
    assert ids == ["a", "b/c", "d"]
    assert queries == ["limit=1000", "limit=1000&after_id=b%2Fc"]


@pytest.mark.parametrize(
    "pages",
    [
        (page("a", more=None),),
        (page("a", last=None),),
        (page("a"), page("b", last="a")),
        ({"data": [{"id": "a"}, {"id": ""}, {"id": None}, 7]},),
    ],
)
async def test_a_listing_that_goes_round_ends(pages: Any) -> None:
    ids, queries = await listed(*pages)
    assert ids[0] == "a"
    assert len(queries) == len(pages)


async def test_pages_have_an_end() -> None:
    ids, queries = await listed(*(page(str(number)) for number in range(50)))
    assert len(ids) == len(queries) == 20


async def test_retired_models_are_left_out() -> None:
    entries = [{"id": "a", "lifecycle": "retired"}, {"id": "b", "lifecycle": "deprecated"}, {"id": "c"}]
    assert (await listed({"data": entries}))[0] == ["b", "c"]


@pytest.mark.parametrize("body", ["<html>", {"models": []}, [], 7, {"data": None}])
async def test_other_things_are_no_listing(body: Any) -> None:
    with pytest.raises(UnreadableAnswer):
        await listed(body)


async def test_an_error_in_place_of_a_listing() -> None:
    with pytest.raises(Overloaded):
        await listed({"type": "error", "error": {"type": "overloaded_error", "message": "m"}})
