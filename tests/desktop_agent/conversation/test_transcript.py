"""The transcript: what each event shows, and that live and stored conversations look the same."""

from datetime import UTC, datetime, timedelta

import pytest

from desktop_agent.conversation.items import (
    Added,
    AnswerItem,
    CallState,
    NoticeItem,
    Removed,
    ThinkingItem,
    ToolCallItem,
    UnknownItem,
    Updated,
    UserItem,
)
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.vocabulary.blocks import Outcome, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.vocabulary.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ErrorOccurred,
    Event,
    LimitReached,
    RetryScheduled,
    RunEnd,
    RunFinished,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.vocabulary.errors import ConnectionFailed, RemedyAction
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.provider_events import (
    CUT_SHORT,
    ContentDelta,
    Done,
    MessageDelta,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


class Feed:
    """Plays events into a transcript, one second apart."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.seq = 0

    def __call__(self, *events: Event):
        changes = []
        for event in events:
            self.seq += 1
            at = START + timedelta(seconds=self.seq)
            changes += self.transcript.apply(Envelope(self.seq, "run", None, "turn", at, event))
        return changes


@pytest.fixture
def feed() -> Feed:
    feed = Feed()
    feed(TurnStarted("turn", "m1", "model"))
    return feed


def test_text_grows_in_one_item_and_ends_unchangeable(feed: Feed) -> None:
    assert feed(ContentDelta("Hel")) == [Added(0)]
    assert feed(ContentDelta("lo")) == [Updated(0, "text")]
    assert feed(Done(), RunFinished(RunEnd.COMPLETED)) == [Updated(0, "state")]
    item = feed.transcript[0]
    assert isinstance(item, AnswerItem)
    assert (str(item.text), item.finished, item.interrupted) == ("Hello", True, False)


def test_thinking_has_its_own_item_with_its_duration(feed: Feed) -> None:
    feed(ThinkingDelta("hm"), ThinkingDelta("m"), ThinkingBlock("hmm", "p"), ContentDelta("Yes"))
    thinking, answer = feed.transcript
    assert isinstance(thinking, ThinkingItem)
    assert (str(thinking.text), thinking.finished, thinking.seconds) == ("hmm", True, 2.0)
    assert isinstance(answer, AnswerItem)


def test_a_clock_that_was_set_back_gives_no_negative_duration(feed: Feed) -> None:
    feed(ThinkingDelta("hm"))
    feed.seq -= 100
    feed(ContentDelta("so"))
    item = feed.transcript[0]
    assert isinstance(item, ThinkingItem)
    assert item.seconds == 0


def test_stop_marks_the_open_text_as_interrupted(feed: Feed) -> None:
    feed(ContentDelta("Half"), RunFinished(RunEnd.CANCELLED))
    item = feed.transcript[0]
    assert isinstance(item, AnswerItem)
    assert item.interrupted


def test_a_call_walks_through_its_states(feed: Feed) -> None:
    feed(ToolArgsDelta("c1", "write_file", '{"pa'), ToolArgsDelta("c1", None, 'th": "x"}'))
    item = feed.transcript[0]
    assert isinstance(item, ToolCallItem)
    assert (item.state, item.name, str(item.arguments)) == (CallState.WRITING, "write_file", '{"path": "x"}')
    feed(ToolUse(id="c1", name="write_file", input={"path": "x"}))
    assert (item.state, item.input) == (CallState.PENDING, {"path": "x"})
    feed(ApprovalRequested("a1", "c1", "digest"))
    assert (item.state, item.approval_id) == (CallState.WAITING, "a1")
    feed(ApprovalResolved("a1", "c1", "allow_once", "person", {"path": "y"}))
    assert (item.approval_id, item.effective_input) == (None, {"path": "y"})
    feed(ToolStarted("c1", {"path": "y"}))
    assert item.state is CallState.RUNNING
    assert feed(ToolProgress("c1", "10 %")) == [Updated(0, "text")]
    feed(ToolFinished("c1", ToolResult(tool_use_id="c1", content=(Text(text="ok"),)), 1.5))
    assert (item.state, item.outcome, item.seconds) == (CallState.ENDED, Outcome.SUCCEEDED, 1.5)
    assert len(feed.transcript) == 1


def test_a_call_that_was_never_finished_being_written_disappears(feed: Feed) -> None:
    feed(ContentDelta("I will write."), ToolArgsDelta("c1", "write_file", '{"pa'))
    assert Removed(1, 1) in feed(RunFinished(RunEnd.CANCELLED))
    assert len(feed.transcript) == 1


def test_thousands_of_calls_each_know_their_place(feed: Feed) -> None:
    # Looked for one by one from the end, this takes minutes.
    feed(*[ToolUse(id=str(number), name="a") for number in range(20_000)])
    changes = feed(*[ToolFinished(str(number), ToolResult(tool_use_id=str(number))) for number in range(20_000)])
    assert changes == [Updated(number, "state") for number in range(20_000)]


def test_a_call_added_after_one_disappeared_knows_its_place(feed: Feed) -> None:
    feed(ContentDelta("I will write."), ToolUse(id="a", name="x"), ToolArgsDelta("b", "y", "{"))
    feed(RetryScheduled(1, "Why.", 1))
    feed(TurnStarted("turn2", "m2", "model"))
    (added,) = feed(ToolUse(id="c", name="z"))
    assert added == Added(3)
    assert feed(ToolStarted("c", {})) == [Updated(3, "state")]
    assert feed(ToolStarted("a", {})) == [Updated(1, "state")]


def test_an_id_used_again_in_a_later_message_is_a_new_call(feed: Feed) -> None:
    feed(ToolUse(id="0", name="a"), ToolFinished("0", ToolResult(tool_use_id="0")))
    feed(TurnStarted("turn2", "m2", "model"), ToolUse(id="0", name="b"))
    first, second = feed.transcript
    assert isinstance(first, ToolCallItem)
    assert isinstance(second, ToolCallItem)
    assert (first.state, second.state) == (CallState.ENDED, CallState.PENDING)


def test_an_error_stands_in_its_place_with_its_remedy(feed: Feed) -> None:
    feed(ContentDelta("Half"), ErrorOccurred.of(ConnectionFailed("it hung up")))
    answer, notice = feed.transcript
    assert isinstance(answer, AnswerItem)
    assert answer.interrupted
    assert isinstance(notice, NoticeItem)
    assert (notice.level, notice.action) == ("error", RemedyAction.RETRY)
    assert "it hung up" in str(notice.sentence)


def test_waiting_and_limits_are_notices(feed: Feed) -> None:
    feed(RetryScheduled(2.0, "Too many requests."), LimitReached("tool rounds"))
    first, second = feed.transcript
    assert isinstance(first, NoticeItem)
    assert str(first.sentence) == "Too many requests. Trying again in 2 s."
    assert isinstance(second, NoticeItem)
    assert second.action is RemedyAction.CONTINUE


def test_stored_messages_show_what_the_live_events_showed(feed: Feed) -> None:
    call = ToolUse(id="c1", name="read_file", input={"path": "x"})
    result = ToolResult(tool_use_id="c1", content=(Text(text="data"),))
    feed(ThinkingDelta("hm"), ThinkingBlock("hm", "p"), ContentDelta("Reading."), call, ToolFinished("c1", result))
    feed(RunFinished(RunEnd.COMPLETED))
    blocks = (Thinking(text="hm", provider="p", seconds=1.0), Text(text="Reading."), call)
    stored = Transcript(
        [Message(id="m1", role=Role.ASSISTANT, blocks=blocks), Message.tool_results([result])],
    )

    def shown(transcript: Transcript) -> list[object]:
        return [
            (type(item), str(getattr(item, "text", "")), getattr(item, "state", None), getattr(item, "result", None))
            for item in transcript
        ]

    assert shown(stored) == shown(feed.transcript)


def test_loading_shows_people_unknown_blocks_and_interruptions() -> None:
    transcript = Transcript(
        [
            Message.system("hidden"),
            Message.user("hi"),
            Message(
                role=Role.ASSISTANT,
                blocks=(Unknown(raw={"type": "hologram"}), Text(text="Half")),
                state=MessageState.INTERRUPTED,
            ),
        ]
    )
    user, unknown, answer = transcript
    assert isinstance(user, UserItem)
    assert isinstance(unknown, UnknownItem)
    assert isinstance(answer, AnswerItem)
    assert answer.interrupted


def test_silence_and_filters_are_explained_in_place(feed: Feed) -> None:
    feed(MessageDelta(StopReason.END_TURN, "stop", {"empty": True}))
    (notice,) = feed.transcript
    assert isinstance(notice, NoticeItem)
    assert notice.action is RemedyAction.RETRY
    feed(ContentDelta("Once"), MessageDelta(StopReason.CONTENT_FILTER, "content_filter"))
    answer, withheld = list(feed.transcript)[1:]
    assert isinstance(answer, AnswerItem)
    assert answer.interrupted
    assert isinstance(withheld, NoticeItem)


@pytest.mark.parametrize("reason", list(StopReason))
@pytest.mark.parametrize("end", [RunEnd.COMPLETED, RunEnd.CANCELLED, RunEnd.LIMIT])
def test_an_answer_is_interrupted_when_it_was_cut_and_not_when_stop_came_after_its_end(
    feed: Feed, reason: StopReason, end: RunEnd
) -> None:
    feed(ContentDelta("Once"), MessageDelta(reason), Done(), RunFinished(end))
    answer = next(item for item in feed.transcript if isinstance(item, AnswerItem))
    assert answer.finished
    assert answer.interrupted is (reason in CUT_SHORT)
