"""`query`: one question, closed behind its last block or as soon as nobody reads on."""

import asyncio
import gc
import sys
from typing import Any

import pytest

from desktop_agent.api.client import query
from desktop_agent.types.blocks import Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.errors import AuthenticationFailed, ConnectionFailed, Truncated, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import Dialect
from tests.fakes.ask_command import ROOT
from tests.fakes.demo_server import DIALECTS, demo
from tests.fakes.library import LIMIT, Gate, acting, adder, call, listed, says, sent
from tests.fakes.scripted_provider import Turn


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_blocks_from_every_dialect(dialect: Dialect) -> None:
    async with demo() as served:
        blocks = await listed(query("hello", served.options(dialect)))
        assert served.states == ["finished"]
    assert "demo model" in "".join(block.text for block in blocks if isinstance(block, Text))
    assert any(isinstance(block, Thinking) for block in blocks)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_tools_run_in_every_dialect(dialect: Dialect) -> None:
    from desktop_agent.tools.calculator import calculate

    async with demo() as served:
        options = served.options(dialect, tools=(calculate(),), auto_execute_tools=True)
        blocks = await listed(query("calculate (3 + 4) * 12", options))
    blocks = [block for block in blocks if not isinstance(block, Thinking)]
    assert [type(block) for block in blocks] == [Text, ToolUse, ToolResult, Text]
    assert "84" in blocks[-1].text


async def test_without_consent_the_calls_are_given_and_not_run() -> None:
    ran: list[int] = []

    async def run() -> None:
        ran.append(1)

    options, provider = acting(Turn(call()), tools=(adder(run),))
    assert [type(block) for block in await listed(query("add", options))] == [ToolUse]
    assert ran == []
    provider.assert_finished()


async def test_questions_know_nothing_of_each_other() -> None:
    options, provider = acting(Turn(says("a")), Turn(says("b")))
    await listed(query("one", options))
    await listed(query(Message.user("two"), options))
    assert sent(provider) == [("user", "two")]


async def test_leaving_the_loop_closes_the_connection() -> None:
    async with demo(speed=2) as served:
        async for block in query("tell me a long story", served.options()):
            assert isinstance(block, Thinking)
            break
        await served.until_disconnected()
        async with asyncio.timeout(LIMIT):
            while len(asyncio.all_tasks()) > 1 + len(served.server._tasks):
                await asyncio.sleep(0.001)


async def test_closing_waits_for_the_end() -> None:
    gate = Gate()
    options, provider = acting(Turn(a_thought(), says("a"), gate.step))
    blocks = query("hi", options)
    assert isinstance(await anext(blocks), Thinking)
    await blocks.aclose()
    assert provider.closed_early == 1
    with pytest.raises(StopAsyncIteration):
        await anext(blocks)


def a_thought() -> Any:
    from desktop_agent.types.provider_events import ThinkingBlock

    return ThinkingBlock("hm", "p")


async def test_errors_are_raised_where_they_happen() -> None:
    options, _ = acting(Turn(AuthenticationFailed("no")), Turn(says("Hel"), Truncated("gone")))
    with pytest.raises(AuthenticationFailed):
        await listed(query("hi", options))
    blocks = query("hi", options)
    assert await anext(blocks) == Text(text="Hel")
    with pytest.raises(Truncated):
        await anext(blocks)
    with pytest.raises(StopAsyncIteration):
        await anext(blocks)


async def test_everything_is_closed_at_the_end_and_after_an_error() -> None:
    options, _ = acting(Turn(says("a")), Turn(says("b"), Truncated("gone")))
    whole, broken = query("hi", options), query("hi", options)
    await listed(whole)
    with pytest.raises(Truncated):
        await listed(broken)
    # Both are still held.
    assert not whole._conversation.is_open
    assert not broken._conversation.is_open


async def test_nobody_there_is_an_error_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.agent.retry.RetryPolicy.delay", lambda *_: None)
    async with demo() as served:
        options = served.options()
    with pytest.raises(ConnectionFailed):
        await listed(query("hi", options))


async def test_wrong_options_are_refused_at_once() -> None:
    with pytest.raises(WrongUse, match="model"):
        query("hi", model="")


async def test_what_was_never_asked_needs_no_closing() -> None:
    options, provider = acting(Turn(says("a")))
    query("hi", options)
    gc.collect()
    assert provider.requests == []


LEAVES = """
import asyncio, sys
from desktop_agent import AgentOptions, query

async def main():
    async for block in query("tell me a long story", AgentOptions(model="demo", base_url=sys.argv[1])):
        print(type(block).__name__)
        break

asyncio.run(main())
"""


async def test_a_program_that_leaves_and_ends_leaves_nothing_open() -> None:
    async with demo(speed=2) as served:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-c", LEAVES, served.base_url),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(LIMIT * 2):
            out, err = await process.communicate()
        assert (out.decode(), err.decode(), process.returncode) == ("Thinking\n", "", 0)
        await served.until_disconnected()
