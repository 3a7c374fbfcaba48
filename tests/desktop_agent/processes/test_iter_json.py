"""Large values are written as they would be at once, and no more of them than is wanted."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.processes import worker_threads
from desktop_agent.processes.worker_threads import iter_json
from desktop_agent.tools.json_schema import JsonSchema
from desktop_agent.tools.tool import Tool
from desktop_agent.types.tool_calls import call_digest

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
texts = st.text(max_size=3)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=30
)


@pytest.fixture(autouse=True, scope="module")
def everything_is_large() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_threads, "_MAX_QUICK_VALUES", 3)
        yield


@given(values, st.booleans())
def test_pieces_together_are_the_whole(value: Any, sort_keys: bool) -> None:
    whole = json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"))
    assert "".join(iter_json(value, sort_keys=sort_keys)) == whole


@given(st.dictionaries(texts, values, max_size=6), texts)
def test_a_large_call_has_the_digest_that_a_small_one_would_have(arguments: dict[str, Any], name: str) -> None:
    tool = Tool(name, "", JsonSchema({"type": "object"}), run=None)  # type: ignore[arg-type]
    assert tool.digest(arguments) == call_digest(name, arguments)


@pytest.mark.parametrize("length", [65_535, 65_536, 65_537, 200_000])
def test_a_long_text_is_written_piece_by_piece(length: int) -> None:
    text = ('a"\\\n\x00é\ud83c\udf00𝄞' * length)[:length]
    pieces = list(iter_json({"long": text}))
    assert "".join(pieces) == json.dumps({"long": text}, ensure_ascii=False, separators=(",", ":"))
    assert max(map(len, pieces)) < 500_000
    assert len(pieces) > 3


def test_keys_that_are_no_texts_are_written_as_json_writes_them() -> None:
    value = {1: [1, 2, 3], None: {"a": 1, "b": 2}, 2.5: 4}
    assert "".join(iter_json(value)) == json.dumps(value, separators=(",", ":"))


def test_what_is_not_wanted_is_not_written() -> None:
    class Late:
        pass

    assert list(islice(iter_json([1, 2, 3, 4, Late()]), 4)) == ["[", "", "1", ","]
    with pytest.raises(TypeError):
        list(iter_json([1, 2, 3, 4, Late()]))


def test_a_circle_is_an_error() -> None:
    circle: list[Any] = [1, 2, 3]
    circle.append(circle)
    with pytest.raises((RecursionError, ValueError)):
        list(iter_json(circle))
