"""Compaction: the request, its summary, and that a failure changes nothing."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from desktop_agent.agent import compaction
from desktop_agent.agent.compaction import (
    INSTRUCTIONS,
    MAX_FAILURES,
    MAX_SUMMARY_TOKENS,
    Compaction,
    conversation_as_text,
    is_compaction_due,
)
from desktop_agent.agent.model_request import RunSettings
from desktop_agent.agent.modes import ModeSwitch
from desktop_agent.agent.retry import RetryPolicy
from desktop_agent.agent.run_context import Budget, RunContext
from desktop_agent.conversation.history import compacted_view
from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.providers.catalogue.catalogue import ESTIMATE_MARGIN, estimate_token_count
from desktop_agent.tools.calculator import calculate
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import Summary, ToolUse
from desktop_agent.types.errors import ConnectionFailed, InvalidRequest
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import Limits
from desktop_agent.types.provider_events import ContentDelta, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import (
    Capabilities,
    ModelInfo,
    ModelRequest,
    ProviderConfig,
    ReasoningEffort,
    TokenCount,
)
from tests.desktop_agent.conversation.histories import answer, results
from tests.fakes.scripted_provider import Expect, ScriptedProvider, Turn, Wait

OLD = [Message.user("Paint the shed."), answer("", "1"), results("1"), answer("It is red now.")]
KEPT = [Message.user("And the door?"), answer("", "2"), results("2")]
HISTORY = (*OLD, *KEPT)
SAID = Turn(ContentDelta("The shed is "), ContentDelta("red."), UsageUpdate(Usage(input_tokens=90, output_tokens=10)))


class Desk:
    """A compactor with its provider, settings and budget."""

    def __init__(self, *turns: Turn, window: int | None = 50_000, **settings: Any) -> None:
        self.provider = ScriptedProvider(*turns, models=(ModelInfo("m", capabilities=known(window)),))
        self.budget = Budget(Limits(tokens=1_000))
        self.settings = RunSettings(model="m", **settings)
        permission_policy = PermissionPolicy()
        context = RunContext(
            open_provider=self._nobody,
            recorder=SimpleNamespace(emit=lambda _: None),  # type: ignore[arg-type]  of it only this is used
            tools=ToolRegistry([calculate()]),
            approvals=ApprovalBroker(),
            permission_policy=permission_policy,
            modes=ModeSwitch(permission_policy),
            read_picture=self._nobody,
            retry=RetryPolicy(first_delay=0.001, max_delay=0.001),
        )
        self.compactor = Compaction(context, self.settings, self.budget)

    async def _nobody(self, _: object) -> Any:
        raise AssertionError("nobody should be asked for this")

    async def compact(self, *history: Message) -> Message | None:
        return await self.compactor.compact(self.provider, history or HISTORY)


def known(window: int | None) -> Capabilities:
    return Capabilities(context_window=window)


def summary_in(message: Message | None) -> Summary:
    assert message is not None
    (block,) = message.blocks
    assert isinstance(block, Summary)
    return block


def text_of(message: Message | None) -> str:
    return summary_in(message).text


def first_kept_of(message: Message | None) -> str:
    return summary_in(message).first_kept_id


async def test_what_came_before_the_last_prompt_becomes_a_summary() -> None:
    desk = Desk(SAID)
    message = await desk.compact()
    assert message is not None
    assert message.role is Role.SYSTEM
    assert message.blocks == (Summary(text="The shed is red.", first_kept_id=KEPT[0].id),)
    sent = compacted_view([*HISTORY, message])
    assert list(sent[1:]) == KEPT
    assert "The shed is red." in sent[0].text


async def test_the_question_offers_no_tools_and_has_its_own_instructions() -> None:
    config = ProviderConfig(
        system_prompt="Talk like a pirate.",
        temperature=1.5,
        reasoning=ReasoningEffort(level="max"),
        stop_sequences=("red",),
        extra_options={"route": "eu"},
    )
    desk = Desk(SAID, config=config)
    await desk.compact()
    (request,) = desk.provider.requests
    assert request.tools == ()
    assert request.config.system_prompt == INSTRUCTIONS
    assert (request.config.temperature, request.config.reasoning, request.config.stop_sequences) == (None, None, ())
    assert request.config.extra_options == {"route": "eu"}
    (message,) = request.messages
    assert "Paint the shed." in message.text
    assert "It is red now." in message.text
    assert "And the door?" not in message.text


async def test_what_it_used_counts_also_where_nothing_came_of_it() -> None:
    broken = Turn(UsageUpdate(Usage(input_tokens=5, output_tokens=2)), ContentDelta("The"), ConnectionFailed("broke"))
    desk = Desk(SAID, broken)
    message = await desk.compact()
    assert message is not None
    assert message.usage == Usage(input_tokens=90, output_tokens=10)
    assert desk.budget.tokens_left == 900
    assert await desk.compact() is None
    assert desk.budget.tokens_left == 893


@pytest.mark.parametrize("window", [2_000, 8_000, 50_000])
async def test_the_question_fits_however_long_the_conversation_is(window: int) -> None:
    history: list[Message] = []
    for number in range(400):
        history += [Message.user(f"Number {number}. " + "More, and more. " * 40), answer("", "1"), results("1")]
    desk = Desk(SAID, window=window)
    message = await desk.compact(*history, *KEPT)
    (request,) = desk.provider.requests
    assert request.config.max_tokens is not None
    assert estimate_token_count(request).tokens * (1 + ESTIMATE_MARGIN) + request.config.max_tokens <= window
    assert "older parts of the conversation are left out" in request.messages[0].text
    first_kept = first_kept_of(message)
    cut = next((place for place, message in enumerate(history) if message.id == first_kept), len(history))
    newest = (cut - 1) // 3
    assert f"Number {newest}." in request.messages[0].text
    assert f"Number {newest + 1}." not in request.messages[0].text


async def test_without_a_known_window_it_asks_for_what_was_read_before() -> None:
    long = [Message.user("x " * 400_000), answer("y").model_copy(update={"usage": Usage(input_tokens=60_000)})]
    desk = Desk(SAID, window=None)
    assert await desk.compact(*long, *KEPT) is not None
    (request,) = desk.provider.requests
    assert 20_000 < estimate_token_count(request).tokens < 60_000 - MAX_SUMMARY_TOKENS


async def test_what_must_stay_and_cannot_be_read_is_not_summarised_around() -> None:
    desk = Desk(window=2_000)
    assert await desk.compact(*OLD, Message.user("word " * 20_000)) is None
    assert not desk.provider.requests


def long_work(count: int) -> list[Message]:
    return [message for n in range(count) for message in (answer("word " * 400, str(n)), results(str(n)))]


async def test_the_work_on_one_prompt_is_summarised_and_the_prompt_stays() -> None:
    desk, prompt, work = Desk(SAID, window=20_000), Message.user("Paint the shed."), long_work(40)
    message = await desk.compact(prompt, *work)
    assert message is not None
    sent = compacted_view([prompt, *work, message])
    assert "The shed is red." in sent[0].text
    assert sent[1] == prompt
    assert 2 <= len(sent[2:]) < len(work)
    assert sent[2:] == tuple(work[-len(sent[2:]) :])


async def test_a_prompt_that_leaves_no_room_for_what_must_stay_is_not_summarised_around() -> None:
    desk = Desk(window=6_000)
    assert await desk.compact(Message.user("word " * 5_000), *long_work(9)) is None
    assert not desk.provider.requests


async def test_what_was_weighed_is_not_weighed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[Message] = []

    def counted(request: ModelRequest, vendor: str = "") -> TokenCount:
        weighed.extend(request.messages)
        return estimate_token_count(request, vendor)

    monkeypatch.setattr(compaction, "estimate_token_count", counted)
    desk, more = Desk(), answer("And more.")
    assert await desk.compact(*KEPT) is None
    assert weighed == KEPT
    assert await desk.compact(*KEPT, more) is None
    assert weighed == [*KEPT, more]


async def test_the_loop_turns_while_a_long_history_is_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_SLICE_SECONDS", 0.0)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    # One group: an answer that its server never lets end.
    half = [answer("Half", stop=StopReason.PAUSE_TURN) for _ in range(50)]
    await Desk().compact(Message.user("go"), *half)
    counting.cancel()
    assert turns > 50


async def test_a_long_question_is_put_together_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []

    def noted(*args: Any) -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return conversation_as_text(*args)

    monkeypatch.setattr(compaction, "conversation_as_text", noted)
    desk = Desk(SAID, SAID, window=20_000)
    await desk.compact()
    await desk.compact(Message.user("go"), *long_work(40))
    assert threads == [True, False]


async def test_with_nothing_before_the_last_prompt_nobody_is_asked() -> None:
    desk = Desk()
    assert await desk.compact(*KEPT) is None
    assert not desk.provider.requests


@pytest.mark.parametrize(
    "turn",
    [
        Turn(),
        Turn(ContentDelta("  \n")),
        Turn(InvalidRequest("no")),
        Turn(ContentDelta("The shed"), ConnectionFailed("broke")),
        Turn(ContentDelta("I cannot"), MessageDelta(StopReason.REFUSAL)),
        Turn(ContentDelta("The sh"), MessageDelta(StopReason.CONTENT_FILTER)),
        Turn(ContentDelta("First I"), ToolUse(id="1", name="calculate")),
        Turn(Expect("never so", lambda _: False)),
    ],
    ids=range(8),
)
async def test_a_failed_or_empty_summary_leaves_the_history_as_it_was(turn: Turn) -> None:
    assert await Desk(turn).compact() is None


async def test_a_fault_of_a_provider_leaves_the_history_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    desk, secret = Desk(), "sk-123"

    def burst(_: object) -> Any:
        raise ZeroDivisionError(secret)

    desk.provider.stream = burst  # type: ignore[method-assign]
    assert await desk.compact() is None
    assert "could not be summarised" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "in burst" in caplog.text
    assert secret not in caplog.text


async def test_a_summary_that_was_cut_says_so() -> None:
    message = await Desk(Turn(ContentDelta("The shed"), MessageDelta(StopReason.MAX_TOKENS))).compact()
    assert text_of(message).startswith("The shed\n\n[")


async def test_what_may_help_is_asked_again() -> None:
    desk = Desk(Turn(ConnectionFailed("no")), SAID)
    assert await desk.compact() is not None
    desk.provider.assert_finished()


async def test_a_model_that_cannot_summarise_is_not_asked_for_ever() -> None:
    desk = Desk(*[Turn()] * (MAX_FAILURES + 1))
    for _ in range(MAX_FAILURES + 2):
        assert await desk.compact() is None
    assert len(desk.provider.requests) == MAX_FAILURES


async def test_an_endless_summary_is_given_up() -> None:
    limits = Limits(answer_characters=1_000)
    assert await Desk(Turn(*[ContentDelta("x" * 100)] * 50), limits=limits).compact() is None


async def test_a_second_summary_summarises_the_first() -> None:
    desk = Desk(SAID, Turn(ContentDelta("All is red.")))
    first = await desk.compact()
    assert first is not None
    more = [answer("The door is red."), Message.user("And the roof?")]
    second = await desk.compact(*HISTORY, first, *more)
    assert all(request.text_only for request in desk.provider.requests)
    question = desk.provider.requests[1].messages[0].text
    assert "The shed is red." in question
    assert "And the door?" in question
    assert "Paint the shed." not in question
    assert second is not None
    sent = compacted_view([*HISTORY, first, *more, second])
    assert [message.text for message in sent[1:]] == ["And the roof?"]
    assert "All is red." in sent[0].text


async def test_stop_ends_it_and_closes_the_connection() -> None:
    reached = asyncio.Event()
    desk = Desk(Turn(ContentDelta("The"), Wait(asyncio.Event(), reached)))
    working = asyncio.create_task(desk.compact())
    await reached.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert desk.provider.closed_early == 1


@pytest.mark.parametrize(
    ("usage", "window", "due"),
    [
        (Usage(input_tokens=70, output_tokens=10), 100, True),
        (Usage(input_tokens=70, output_tokens=9), 100, False),
        (Usage(total_tokens=80), 100, True),
        (Usage(), 100, False),
        (None, 100, False),
        (Usage(total_tokens=80), None, False),
    ],
)
def test_compaction_is_due_at_its_share_of_the_window(usage: Usage | None, window: int | None, *, due: bool) -> None:
    assert is_compaction_due(usage, known(window), 0.8) is due
