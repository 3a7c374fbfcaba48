"""How much of memory one answer takes."""

import pytest

from desktop_agent.agent.answer_size import AnswerSize, AnswerTooLong, characters_of
from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.provider_events import ContentDelta, Done, ToolArgsDelta


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


def test_however_deep_it_is_it_is_counted() -> None:
    value: object = "x"
    for _ in range(100_000):
        value = [value]
    assert characters_of(value) > 100_000
    assert characters_of({"key": ["ab", 1, None]}) >= 5
