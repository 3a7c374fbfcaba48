"""Reading the events of an answer one by one, or all that arrived together."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from desktop_agent.providers.event_batches import EventBatches, ready_events
from desktop_agent.types.errors import Truncated
from desktop_agent.types.provider_events import ContentDelta, Done, ProviderEvent

A, B, C = ContentDelta("a"), ContentDelta("b"), ContentDelta("c")


async def batches(
    *sequence: Sequence[ProviderEvent], closed: list[bool], failure: Exception | None = None
) -> AsyncGenerator[Sequence[ProviderEvent], None]:
    try:
        for batch in sequence:
            yield batch
        if failure is not None:
            raise failure
    finally:
        closed.append(True)


async def test_read_one_by_one_they_are_single_events_in_order() -> None:
    stream = EventBatches(batches((A,), (), (B, C), (Done(),), closed=[]))
    assert [event async for event in stream] == [A, B, C, Done()]


async def test_what_came_with_an_event_can_be_taken_once() -> None:
    async with aclosing(EventBatches(batches((A, B, C), (Done(),), closed=[]))) as stream:
        take_ready = ready_events(stream)
        assert await anext(stream) == A
        assert take_ready() == [B, C]
        assert take_ready() == []
        assert await anext(stream) == Done()


async def test_an_error_comes_after_all_that_came_before_it() -> None:
    stream = EventBatches(batches((A, B), closed=[], failure=Truncated("it broke")))
    assert [await anext(stream), await anext(stream)] == [A, B]
    with pytest.raises(Truncated):
        await anext(stream)


async def test_closed_it_yields_nothing_more_and_its_source_is_closed() -> None:
    closed: list[bool] = []
    async with aclosing(EventBatches(batches((A, B), (C,), closed=closed))) as stream:
        assert await anext(stream) == A
    assert closed == [True]
    assert [event async for event in stream] == []


async def test_a_stream_of_another_maker_has_nothing_ready() -> None:
    async def plain() -> AsyncGenerator[ProviderEvent, None]:
        yield A
        yield B

    async with aclosing(plain()) as stream:
        assert await anext(stream) == A
        assert ready_events(stream)() == []
        assert await anext(stream) == B
