"""The limit on the memory that one answer takes."""

import pytest

from desktop_agent.agent.provider_stream import AnswerSize, AnswerTooLong, NotJson
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.provider_events import ContentDelta, Done, TextClosed, ToolArgsDelta


def test_the_event_that_passes_the_limit_is_not_taken() -> None:
    size = AnswerSize(10)
    size.add(ContentDelta("12345678"))
    with pytest.raises(AnswerTooLong):
        size.add(ContentDelta("9"))
    size.add(Done())
    assert size.characters == 9


def test_a_flood_of_empty_pieces_counts_as_something() -> None:
    size = AnswerSize(100)
    for _ in range(100):
        size.add(ContentDelta(""))
    with pytest.raises(AnswerTooLong):
        size.add(ContentDelta(""))


def test_a_call_is_not_counted_twice_after_its_pieces() -> None:
    pieces, whole = AnswerSize(10_000), AnswerSize(10_000)
    use = ToolUse(id="1", name="act", input={"word": "x" * 1000})
    pieces.add(ToolArgsDelta("1", "act", "x" * 1000))
    pieces.add(use)
    whole.add(use)
    assert abs(pieces.characters - whole.characters) < 20
    assert whole.characters >= 1000


def test_a_value_however_deep_is_looked_at_to_its_end_and_refused() -> None:
    value: object = "x"
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NotJson, match="100002 deep"):
        AnswerSize(1_000_000).add(TextClosed(provider="p", metadata={"value": value}))


def test_all_that_stands_beside_a_text_is_counted() -> None:
    size = AnswerSize(1_000_000)
    size.add(TextClosed(provider="p", metadata={"key": ["ab" * 500, 1, None]}))
    assert size.characters >= 1000
