"""Compaction in the middle of a run: between two turns, and when a server says that a request is too long."""

from collections.abc import AsyncGenerator, Sequence

import pytest

from desktop_agent.agent.compaction import INSTRUCTIONS
from desktop_agent.conversation.history import COMPACTION_AUTHOR, ConversationUsage, normalised_history
from desktop_agent.providers.catalogue.catalogue import estimate_token_count
from desktop_agent.types.blocks import Outcome, Summary
from desktop_agent.types.engine_events import ContextCompacted, CostUpdated, Event, RunEnd
from desktop_agent.types.errors import ContextLengthExceeded
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import (
    ContentDelta,
    MessageDelta,
    ProviderEvent,
    StopReason,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.providers import Capabilities, ModelInfo, ModelRequest
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.fakes.specialist_run import Team, ask, specialist

FULL = UsageUpdate(Usage(input_tokens=9_000, output_tokens=500))
SUMMARY = Turn(ContentDelta("They greeted each other."), UsageUpdate(Usage(input_tokens=70, output_tokens=7)))
DONE = Turn(ContentDelta("Done."))
WINDOW = 10_000


async def _much(_: str) -> str:
    return "word " * 800


def desk_of(*turns: Turn) -> Desk:
    models = (ModelInfo("m", capabilities=Capabilities(context_window=WINDOW)),)
    desk = Desk(*turns, tools=(tool("look", read_only=True),), models=models)
    desk.memory.messages[:0] = [Message.user("Hello"), Message.assistant("Hello!")]
    return desk


@pytest.mark.parametrize(
    "turns",
    [(Turn(FULL, call("1", "look")), SUMMARY, DONE), (Turn(ContextLengthExceeded("too long")), SUMMARY, DONE)],
    ids=["full", "refused"],
)
async def test_older_messages_are_summarised_and_the_work_goes_on(turns: tuple[Turn, ...]) -> None:
    desk = desk_of(*turns)
    assert await desk.execute() is RunEnd.COMPLETED
    messages = desk.provider.requests[-1].messages
    assert "They greeted each other." in messages[0].text
    assert messages[0].injected_by == COMPACTION_AUTHOR
    assert messages[1].text == "go"
    assert not any(isinstance(block, Summary) for message in messages for block in message.blocks)
    (event,) = desk.memory.of(ContextCompacted)
    assert (event.first_kept_id, event.summary) == (messages[1].id, "They greeted each other.")
    assert event.usage == Usage(input_tokens=70, output_tokens=7)
    assert [message.text for message in desk.memory.messages[:3]] == ["Hello", "Hello!", "go"]
    assert sum(message.role is Role.SYSTEM for message in desk.memory.messages) == 1
    desk.provider.assert_finished()


async def test_a_summary_that_fails_lets_the_run_go_on_with_everything() -> None:
    desk = desk_of(Turn(FULL, call("1", "look")), Turn(), DONE)
    assert await desk.execute() is RunEnd.COMPLETED
    assert [message.text for message in desk.provider.requests[-1].messages[:3]] == ["Hello", "Hello!", "go"]
    assert not desk.memory.of(ContextCompacted)


async def test_with_nothing_to_summarise_nobody_is_asked_to() -> None:
    desk = desk_of(Turn(FULL, call("1", "look")), DONE)
    del desk.memory.messages[:2]
    assert await desk.execute() is RunEnd.COMPLETED
    desk.provider.assert_finished()


async def test_a_long_run_on_one_prompt_goes_on_beyond_the_window() -> None:
    """The model's usage is what it was really given, and each time it fills up the work so far is summarised."""

    class Reader(ScriptedProvider):
        tool_batches = 30

        async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent]:
            self.requests.append(request)
            read = estimate_token_count(request).tokens
            if read > WINDOW:
                raise ContextLengthExceeded("too long")
            yield UsageUpdate(Usage(input_tokens=read, output_tokens=10))
            if request.config.system_prompt == INSTRUCTIONS:
                yield ContentDelta("Looked around.")
                yield MessageDelta(StopReason.END_TURN)
            elif self.tool_batches:
                self.tool_batches -= 1
                yield call(str(self.tool_batches), "look", str(self.tool_batches))
                yield MessageDelta(StopReason.TOOL_USE)
            else:
                yield ContentDelta("Done.")
                yield MessageDelta(StopReason.END_TURN)

    models = (ModelInfo("m", capabilities=Capabilities(context_window=WINDOW)),)
    desk = Desk(tools=(tool("look", _much, read_only=True),), models=models)
    desk.provider = Reader(models=models)
    assert await desk.execute() is RunEnd.COMPLETED
    assert 2 <= len(desk.memory.of(ContextCompacted)) <= 10
    requests = [request for request in desk.provider.requests if request.config.system_prompt != INSTRUCTIONS]
    assert len(requests) == 31
    for request in requests:
        assert [
            message.text for message in request.messages if message.injected_by is None and message.role is Role.USER
        ] == ["go"]
        assert normalised_history(request.messages) == request.messages
    assert [message.role for message in requests[-1].messages[:3]] == [Role.USER, Role.USER, Role.ASSISTANT]
    assert len(desk.memory.messages) == 62 + len(desk.memory.of(ContextCompacted))


async def test_a_summary_that_fails_is_in_what_was_spent() -> None:
    full = UsageUpdate(Usage(input_tokens=9_000, output_tokens=500, cost=0.5))
    failed = Turn(UsageUpdate(Usage(input_tokens=90, cost=0.25)))
    last = Turn(ContentDelta("Done."), UsageUpdate(Usage(cost=1.0)))
    desk = desk_of(Turn(full, call("1", "look")), failed, last)
    spending, emit = ConversationUsage(desk.memory.history), desk.memory.emit

    def emit_and_count(event: Event, pieces: Sequence[Event] = ()) -> None:
        emit(event, pieces)
        spending.take(event)

    desk.memory.emit = emit_and_count  # type: ignore[method-assign]
    assert await desk.execute() is RunEnd.COMPLETED
    assert [event.cost for event in desk.memory.of(CostUpdated)] == [0.5, 0.75, 1.75]
    assert spending.total is not None
    assert spending.total.cost == 1.75


async def test_a_specialist_is_summarised_too_and_its_task_stays() -> None:
    models = (ModelInfo("researcher", capabilities=Capabilities(context_window=10_000)),)
    rounds = [Turn(call(str(number), "look", str(number))) for number in range(5)]
    full = Turn(FULL, call("5", "look", "5"))
    team = Team(
        Turn(ask("1", task="Find the sea.")),
        DONE,
        specialists=(specialist(tools=("look",)),),
        plays={},
        tools=(tool("look", _much, read_only=True),),
    )
    team.models["researcher"] = ScriptedProvider(*rounds, full, SUMMARY, Turn(ContentDelta("Sea!")), models=models)
    assert await team.execute() is RunEnd.COMPLETED
    assert team.answered == (Outcome.SUCCEEDED, "Sea!")
    first, second, *_ = team.models["researcher"].requests[-1].messages
    assert "They greeted each other." in first.text
    assert second.text == "Find the sea."
    team.finish()
