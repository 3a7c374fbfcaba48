"""Events that came at once are validated together, as exactly as one by one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from desktop_agent.agent.provider_stream import AnswerSize, AnswerTooLong, InvalidProviderEvent, validated_events
from desktop_agent.providers.event_batches import EventBatches
from desktop_agent.types.engine_events import Event
from desktop_agent.types.provider_events import ContentDelta, Done, ThinkingDelta, ToolArgsDelta, Usage, UsageUpdate

WORDS: list[Any] = [ThinkingDelta("why "), ThinkingDelta("not "), *(ContentDelta(f"word {n} ") for n in range(20))]
WORDS += [ToolArgsDelta("1", "look", "{" * n) for n in range(1, 9)]


async def _batches(*batches: Sequence[Any]) -> AsyncGenerator[Sequence[Any], None]:
    for batch in batches:
        yield batch


async def _read(batches: Sequence[Sequence[Any]], limit: int = 100_000) -> tuple[list[Event], AnswerSize, Any]:
    """All single events that were taken, how they were measured, and the error that ended them."""
    size, taken = AnswerSize(limit), list[Event]()
    try:
        async for event, pieces in validated_events(EventBatches(_batches(*batches)), size):
            taken.extend(pieces or (event,))
    except (AnswerTooLong, InvalidProviderEvent) as error:
        return taken, size, error
    return taken, size, None


async def test_pieces_of_one_text_are_one_event_with_its_pieces() -> None:
    got = [event async for event in validated_events(EventBatches(_batches(WORDS, (Done(),))), AnswerSize(10_000))]
    assert [type(event) for event, _ in got] == [ThinkingDelta, ContentDelta, ToolArgsDelta, Done]
    assert got[0] == (ThinkingDelta("why not "), tuple(WORDS[:2]))
    assert [piece for _, pieces in got for piece in pieces] == WORDS


@pytest.mark.parametrize("limit", range(5, 520, 7))
async def test_the_limit_is_met_at_the_same_piece_however_they_came(limit: int) -> None:
    one_by_one, single, alone = await _read([(word,) for word in WORDS], limit)
    at_once, joined, together = await _read([WORDS], limit)
    assert at_once == one_by_one
    assert type(together) is type(alone)
    # Where a block or a call begins is counted once, also if nothing of it is left.
    assert abs(joined.characters - single.characters) < 160


async def test_what_is_left_at_the_limit_is_counted() -> None:
    taken, size, _ = await _read([[ContentDelta("x" * 9)] * 200], 1000)
    assert len(taken) == size.characters // 10


async def test_a_name_that_comes_late_is_counted_where_it_came() -> None:
    late = [ToolArgsDelta("1", None, "x")] * 50 + [ToolArgsDelta("1", "n" * 20, "x")] * 50
    _, alone, _ = await _read([(piece,) for piece in late])
    _, together, _ = await _read([late])
    assert together.characters == alone.characters


async def test_the_size_is_the_same_however_they_came() -> None:
    _, alone, _ = await _read([(word,) for word in WORDS])
    _, together, _ = await _read([WORDS])
    assert together.characters == alone.characters


async def test_what_came_before_something_that_is_no_event_is_taken() -> None:
    taken, _, error = await _read([[ContentDelta("a"), ContentDelta("b"), "no event", ContentDelta("c")]])
    assert taken == [ContentDelta("a"), ContentDelta("b")]
    assert isinstance(error, InvalidProviderEvent)


async def test_what_comes_with_the_end_and_behind_it_is_dropped() -> None:
    usage = UsageUpdate(Usage(output_tokens=1))
    taken, _, _ = await _read([[ContentDelta("a"), usage, Done(), ContentDelta("late")]])
    assert taken == [ContentDelta("a"), usage, Done()]


async def test_a_flood_of_batches_lets_others_have_their_turn() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await _read([[ContentDelta("x")] * 200] * 2000, limit=10_000_000)
    task.cancel()
    assert turns > 5
