"""Text that is held back to see what it is: tags of reasoning, pieces that may repeat the first. Real sockets."""

import asyncio
from itertools import takewhile

import pytest

from desktop_agent.faces.client import Client
from desktop_agent.vocabulary.blocks import Text, Thinking
from desktop_agent.vocabulary.endpoints import Dialect
from desktop_agent.vocabulary.engine_events import RunEnd
from desktop_agent.vocabulary.messages import MessageState
from desktop_agent.vocabulary.provider_events import AnswerNamed
from tests.desktop_agent.faces.serving import DIALECTS
from tests.desktop_agent.providers.loopback import Loopback, Reply
from tests.desktop_agent.providers.vendor_streams import ROOTS, said
from tests.frame.patience import PATIENCE


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("pieces", [["<think>Hm.</think>Hello"], ["<th", "ink>H", "m.</thi", "nk>\n", "Hello"]])
async def test_reasoning_in_tags_is_read_in_every_dialect(dialect: Dialect, pieces: list[str]) -> None:
    async with (
        Loopback(Reply(said(dialect, pieces))) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        await client.complete("hi")
        thought, text = client.history[-1].blocks
        assert isinstance(thought, Thinking)
        assert isinstance(text, Text)
        assert (thought.text, text.text) == ("Hm.", "Hello")
        # It goes back to no server as something that it would refuse.
        await client.complete("again")
        assert "Hello" in server.requests[-1].body.decode()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("pieces", [["<thi"], ["ab", "abc"], ["\n <", "seed:th"]], ids=["a tag", "again", "two pieces"])
async def test_stop_loses_nothing_that_was_received(
    dialect: Dialect, pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if pieces == ["ab", "abc"]:
        # Stop comes while the run gives way to others, and not while it waits for its server.
        monkeypatch.setattr("desktop_agent.agent.hearing.SLICE", 0.0)
    # One piece of bytes: when the answer is named, the rest of it was read.
    begun = b"".join(takewhile(lambda event: b"never sent" not in event, said(dialect, [*pieces, "never sent"])))
    async with (
        Loopback(Reply(begun, hold=asyncio.Event())) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        async with asyncio.timeout(PATIENCE):
            async for event in client.stream("hi"):
                if isinstance(event, AnswerNamed):
                    client.interrupt()
        answer = client.history[-1]
        assert client.ended is RunEnd.CANCELLED
        assert (answer.text.strip(), answer.state) == ("".join(pieces).strip(), MessageState.INTERRUPTED)
