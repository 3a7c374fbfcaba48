import asyncio

import pytest

from desktop_agent.providers.provider import Provider
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import CachingNotSupported, RateLimited
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import ImageLimits, ModelInfo
from tests.fakes.recordings import simple_request
from tests.fakes.scripted_provider import Expect, ScriptBroken, ScriptedProvider, Turn, Wait
from tests.frame.patience import PATIENCE


async def played(provider: Provider) -> list[object]:
    return [event async for event in provider.stream(simple_request())]


async def test_turns_are_played_in_order_and_end_by_themselves() -> None:
    call = ToolUse(id="1", name="f")
    usage = UsageUpdate(Usage(input_tokens=3, output_tokens=2))
    provider = ScriptedProvider(Turn(call, usage), Turn(ContentDelta("hi")), models=(ModelInfo("m"),))
    assert await played(provider) == [call, usage, MessageDelta(StopReason.TOOL_USE), Done()]
    assert await played(provider) == [ContentDelta("hi"), MessageDelta(StopReason.END_TURN), Done()]
    provider.assert_finished()
    assert len(provider.requests) == provider.state.request_count == provider.state.conversation_turns == 2
    assert provider.state.input_tokens == 3
    assert await provider.list_models() == (ModelInfo("m"),)
    await provider.aclose()


async def test_what_it_says_about_itself() -> None:
    limits = ImageLimits(max_edge=9)
    provider = ScriptedProvider(models=(ModelInfo("m", title="M"),), pictures=limits)
    assert provider.picture_limits("m") == limits
    assert ScriptedProvider().picture_limits("m") == ImageLimits()
    assert (provider.model_info("m").title, provider.model_info("x").title) == ("M", None)
    assert (await provider.count_tokens(simple_request(messages=(Message.user("a" * 8),)))).tokens == 2
    with pytest.raises(CachingNotSupported):
        await provider.prompt_cache(simple_request())


async def test_an_ending_of_its_own() -> None:
    end = MessageDelta(StopReason.MAX_TOKENS, "length")
    assert await played(ScriptedProvider(Turn(end))) == [end, Done()]
    assert await played(ScriptedProvider(Turn(end, Done()))) == [end, Done()]


async def test_errors_are_raised_where_they_stand() -> None:
    provider = ScriptedProvider(Turn(ContentDelta("hi"), RateLimited("slow")))
    stream = provider.stream(simple_request())
    assert await anext(stream) == ContentDelta("hi")
    with pytest.raises(RateLimited):
        await anext(stream)
    provider.assert_finished()
    assert provider.closed_early == 0


async def test_requests_too_many_and_turns_left() -> None:
    provider = ScriptedProvider(Turn(), Turn())
    await played(provider)
    with pytest.raises(ScriptBroken, match="1 turns"):
        provider.assert_finished()
    await played(provider)
    with pytest.raises(AssertionError, match="not foreseen"):
        await played(provider)
    with pytest.raises(ScriptBroken, match="not foreseen"):
        provider.assert_finished()


async def test_expectations() -> None:
    right, wrong = Expect("a model", lambda it: it.model == "m"), Expect("another", lambda it: it.model == "x")
    await played(ScriptedProvider(Turn(right)))
    provider = ScriptedProvider(Turn(wrong))
    with pytest.raises(ScriptBroken, match="another"):
        await played(provider)
    with pytest.raises(ScriptBroken, match="another"):
        provider.assert_finished()


async def test_waiting_and_closing() -> None:
    go, reached = asyncio.Event(), asyncio.Event()
    provider = ScriptedProvider(
        Turn(ContentDelta("a"), Wait(go, reached), ContentDelta("b")), Turn(Wait(asyncio.Event()))
    )
    stream = provider.stream(simple_request())
    assert await anext(stream) == ContentDelta("a")
    following = asyncio.ensure_future(anext(stream))
    await asyncio.wait_for(reached.wait(), PATIENCE)
    assert not following.done()
    go.set()
    assert await following == ContentDelta("b")
    await stream.aclose()
    assert provider.closed_early == 1
    task = asyncio.create_task(played(provider))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.closed_early == 2


async def test_who_reads_no_further_than_the_end_has_not_closed_early() -> None:
    provider = ScriptedProvider(Turn(ContentDelta("hi")))
    events = provider.stream(simple_request())
    async for event in events:
        if isinstance(event, Done):
            break
    await events.aclose()
    assert (provider.closed_early, provider.state.conversation_turns) == (0, 1)
