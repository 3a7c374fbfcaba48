"""Contract, section 6: random scripts, stops and decisions at random moments (1, 2, 3, 5, 6, 9, 13, 14)."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.items import AnswerItem, ToolCallItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Outcome, Text, ToolUse
from desktop_agent.types.engine_events import RunFinished, ToolFinished, ToolStarted, TurnStarted
from desktop_agent.types.errors import QuotaExhausted, Truncated
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta, MessageDelta, StopReason, ThinkingDelta
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, Deny, DenyAndStop
from tests.fakes.agent_run import tool
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.fakes.session import Stage, check_invariants, shaky_store
from tests.frame.examples import examples

MUTATING = ("act", "break")
_text = st.builds(ContentDelta, st.text("ab \U0001f600é", min_size=1, max_size=4))
_thinking = st.builds(ThinkingDelta, st.text("xy", min_size=1, max_size=4))
_call = st.builds(
    ToolUse,
    id=st.sampled_from(["call_0", "call_1", "call_2"]),  # servers do repeat them from answer to answer
    name=st.sampled_from(["look", "act", "break", "nobody"]),
    input=st.sampled_from([{}, {"word": "w"}, {"word": "v"}, {"word": 1}]),
    malformed=st.sampled_from([None, None, None, None, None, None, '{"wor']),
)
_end = st.one_of(
    st.none(),
    st.none(),
    st.none(),
    st.just(QuotaExhausted("empty")),
    st.just(Truncated("cut", retryable=False)),
    st.builds(MessageDelta, st.sampled_from([StopReason.MAX_TOKENS, StopReason.PAUSE_TURN, StopReason.REFUSAL])),
)


def _turn(parts: list[Any], calls: list[ToolUse], end: Any) -> Turn:
    unique = {call.id: call for call in calls}.values()
    return Turn(*parts, *unique, *([end] if end is not None else []))


_turns = st.lists(
    st.builds(_turn, st.lists(st.one_of(_text, _text, _thinking), max_size=4), st.lists(_call, max_size=3), _end),
    min_size=1,
    max_size=5,
)


class Paced(ScriptedProvider):
    """Lets the loop turn after every event, so that a stop can come anywhere."""

    async def stream(self, request):  # type: ignore[no-untyped-def, override]
        played = super().stream(request)
        try:
            async for event in played:
                yield event
                await asyncio.sleep(0)
        finally:
            await played.aclose()


class Worker:
    """The tools, and what they see of each other."""

    def __init__(self, chance: random.Random) -> None:
        self.running: list[str] = []
        self.overlaps: list[list[str]] = []
        self._chance = chance

    def tools(self) -> tuple[Any, ...]:
        return (self._tool("look"), *(self._tool(name) for name in MUTATING))

    def _tool(self, name: str) -> Any:
        async def work(word: str) -> str:
            self.running.append(name)
            if len(self.running) > 1:
                self.overlaps.append(list(self.running))
            try:
                # "slow" is long enough for a neighbour to be journalled and to start, if it may.
                await asyncio.sleep(0.1 if word == "slow" else self._chance.choice((0, 0.001)))
                if name == "break":
                    raise ValueError("broken tool")
                return word
            finally:
                self.running.remove(name)

        return tool(name, work, read_only=name == "look")


async def _decide(stage: Stage, chance: random.Random) -> None:
    """A person who decides, changes their mind, and decides again."""
    decisions = [AllowOnce()] * 4 + [AllowForConversation(), Deny(message="no"), DenyAndStop()]
    while True:
        for approval in stage.session.approvals.open_approvals:
            stage.session.approvals.answer(approval.approval_id, chance.choice(decisions))
            assert not stage.session.approvals.answer(approval.approval_id, AllowOnce()).accepted
        await asyncio.sleep(0)


async def _play(folder: Path, turns: list[Turn], seed: int, stop_after: int | None) -> None:
    chance = random.Random(seed)
    async with shaky_store(folder) as shaky:
        worker = Worker(chance)
        stage = Stage(shaky, tools=worker.tools(), iterations=6)
        stage.provider = Paced(*turns)
        person = asyncio.create_task(_decide(stage, chance))
        stage.session.send(Message.user("go"))
        stopping: asyncio.Task[None] | None = None
        if stop_after is not None:

            async def stop() -> None:
                for _ in range(stop_after):
                    await asyncio.sleep(0)
                stage.session.interrupt()
                started_count = len(stage.of(ToolStarted))
                await stage.idle()
                assert len(stage.of(ToolStarted)) == started_count  # nothing starts after a stop

            stopping = asyncio.create_task(stop())
        await stage.idle()
        if stopping is not None:
            await stopping
        _check(stage)
        assert not any(len(names) > 1 and set(names) & set(MUTATING) for names in worker.overlaps)
        assert await stage.stored() == stage.session.history
        # The session takes the next prompt, whatever happened.
        stage.provider = Paced(Turn(ContentDelta("next")))
        await stage.say("again")
        assert stage.session.history[-1].text == "next"
        assert stage.of(RunFinished)[-1].reason == "completed"
        _check(stage)
        assert stage.provider.requests[0].messages[-1].text == "again"
        person.cancel()
        await stage.session.close()


def _check(stage: Stage) -> None:
    history = stage.session.history
    check_invariants(history, stage.events)
    # 9: what was streamed is what is kept, and what is shown.
    streamed: dict[str, str] = {}
    message_id = ""
    for envelope in stage.events:
        if isinstance(envelope.event, TurnStarted):
            message_id = envelope.event.message_id
        elif isinstance(envelope.event, ContentDelta):
            streamed[message_id] = streamed.get(message_id, "") + envelope.event.text
    stored = {message.id: message.text for message in history if message.role is Role.ASSISTANT and message.text}
    assert stored == streamed
    assert _shown(stage.session.transcript) == _shown(Transcript(history))
    # 3: started before finished, each call at most once in a turn.
    for turn in {envelope.turn_id for envelope in stage.events}:
        started = [e.event.id for e in stage.events if e.turn_id == turn and isinstance(e.event, ToolStarted)]
        finished = [e.event.id for e in stage.events if e.turn_id == turn and isinstance(e.event, ToolFinished)]
        assert len(started) == len(set(started))
        assert len(finished) == len(set(finished))
        assert set(started) <= set(finished)
    for result in stage.of(ToolFinished):
        if result.outcome is Outcome.SUCCEEDED:
            assert all(isinstance(part, Text) for part in result.result.content)


def _shown(transcript: Transcript) -> list[Any]:
    shown: list[Any] = []
    for item in transcript:
        if isinstance(item, AnswerItem):
            shown.append(str(item.text))
        elif isinstance(item, ToolCallItem):
            shown.append((item.tool_use_id, item.name, item.state, item.outcome))
    return shown


@settings(max_examples=examples(40), deadline=None)
@given(_turns, st.integers(0, 1000), st.one_of(st.none(), st.integers(0, 60)))
@example([Turn(*(ToolUse(id=id_, name="act", input={"word": "slow"}) for id_ in "12")), Turn()], 4, None)
def test_whatever_happens_when(
    tmp_path_factory: pytest.TempPathFactory, turns: list[Turn], seed: int, stop_after: int | None
) -> None:
    asyncio.run(_play(tmp_path_factory.mktemp("run"), turns, seed, stop_after))
