"""The transcript: what each event shows, and that live and stored conversations look the same."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.conversation.items import (
    Added,
    AnswerItem,
    CallState,
    Item,
    NoticeItem,
    Removed,
    ServerStepItem,
    ThinkingItem,
    ToolCallItem,
    UnknownItem,
    Updated,
    UserItem,
)
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import (
    Block,
    Citation,
    Image,
    Outcome,
    ServerStep,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.engine_events import (
    AnswerAwaited,
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
from desktop_agent.types.errors import ConnectionFailed, RemedyAction, Sentence, TimedOut
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import (
    TRUNCATED_STOP_REASONS,
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    Origin,
    RequestAdjusted,
    StopReason,
    TextClosed,
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
            moment = START + timedelta(seconds=self.seq)
            changes += self.transcript.apply(Envelope(self.seq, "run", None, "turn", moment, event))
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


def test_while_nothing_has_come_a_line_counts_on_and_is_gone_with_the_answer(feed: Feed) -> None:
    feed(TurnStarted("turn", "m", "model"))
    assert feed(AnswerAwaited(10.2)) == [Added(0)]
    (line,) = feed.transcript
    assert isinstance(line, NoticeItem)
    assert str(line.sentence) == "No answer yet, 10 s."
    assert feed(AnswerAwaited(11.2)) == [Updated(0, "state")]
    assert str(line.sentence) == "No answer yet, 11 s."
    assert feed(ContentDelta("Hi")) == [Removed(0, 1), Added(0)]
    assert [type(item) for item in feed.transcript] == [AnswerItem]


@pytest.mark.parametrize(
    "end", [RunFinished(RunEnd.CANCELLED), RetryScheduled(1, "Busy.", 1), ErrorOccurred.of(TimedOut("x"))]
)
def test_however_the_wait_ends_its_line_is_gone(feed: Feed, end: Event) -> None:
    feed(TurnStarted("turn", "m", "model"), AnswerAwaited(10.0))
    # What is said meanwhile, such as that the disk is full, stays.
    feed.transcript.add_notice(Sentence("Meanwhile."))
    assert feed(AnswerAwaited(11.0)) == [Updated(0, "state")]
    assert feed(end)[0] == Removed(0, 1)
    sentences = [str(item.sentence) for item in feed.transcript if isinstance(item, NoticeItem)]
    assert sentences[0] == "Meanwhile."
    assert not [sentence for sentence in sentences if "No answer yet" in sentence]


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


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "again."), (0.5, "again."), (0.6, "again in 1 s."), (1.4, "again in 1 s."), (2.0, "again in 2 s.")],
)
def test_what_a_server_said_ends_before_the_next_sentence(feed: Feed, seconds: float, words: str) -> None:
    feed(RetryScheduled(seconds, "The model server reported: boom"))
    (notice,) = feed.transcript
    assert isinstance(notice, NoticeItem)
    assert str(notice.sentence) == f"The model server reported: boom. Trying {words}"


def test_waiting_and_limits_are_notices(feed: Feed) -> None:
    feed(RetryScheduled(2.0, "Too many requests."), LimitReached("tool rounds"))
    first, second = feed.transcript
    assert isinstance(first, NoticeItem)
    assert str(first.sentence) == "Too many requests. Trying again in 2 s."
    assert isinstance(second, NoticeItem)
    assert second.action is RemedyAction.CONTINUE


def test_why_a_request_is_sent_again_and_which_limit_was_reached_can_be_translated(feed: Feed) -> None:
    why, which = TimedOut("x").sentence, Sentence("tool rounds")
    feed(RetryScheduled(2.0, str(why), 1, why), LimitReached.of(which))
    first, second = feed.transcript
    assert isinstance(first, NoticeItem)
    assert isinstance(second, NoticeItem)
    assert str(first.sentence) == "The model server took too long: x. Trying again in 2 s."
    assert first.sentence.values["what"] == why
    assert str(second.sentence) == "A limit was reached: tool rounds."
    assert second.sentence.values["which"] == which


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


CALL = ToolUse(id="c1", name="read_file")
UNSEEN = Thinking(text="", provider="p", metadata={"data": "x"})


@pytest.mark.parametrize(
    ("blocks", "more", "shown"),
    [
        ((), {}, ["This answer was interrupted."]),
        ((Text(text="Half"),), {}, ["Half …"]),
        ((Thinking(text="hm", provider="p"),), {}, ["hm", "This answer was interrupted."]),
        ((Text(text="Whole."), UNSEEN), {}, ["Whole.", "This answer was interrupted."]),
        ((Text(text="Go."), CALL), {}, ["Go.", "read_file"]),
        ((CALL, UNSEEN), {}, ["read_file"]),
        ((UNSEEN,), {"adjustments": (Sentence("Scaled."),)}, ["Scaled.", "This answer was interrupted."]),
        ((), {"stop_reason": StopReason.REFUSAL}, ["The model declined to answer."]),
        ((CALL,), {"stop_reason": StopReason.REFUSAL}, ["read_file", "The model declined to answer."]),
    ],
)
@pytest.mark.parametrize("before", [Message.assistant("Earlier."), Message.user("Earlier.")], ids=["answer", "prompt"])
def test_a_stored_answer_that_was_cut_says_so_where_it_was_cut(
    before: Message, blocks: tuple[Block, ...], more: dict[str, Any], shown: list[str]
) -> None:
    cut = Message(role=Role.ASSISTANT, blocks=blocks, state=MessageState.INTERRUPTED, **more)
    assert [words_of(item) for item in Transcript([before, cut])] == ["Earlier.", *shown]


def words_of(item: Item) -> str:
    """What the item says, with … after an answer that is marked as interrupted."""
    if isinstance(item, AnswerItem) and item.interrupted:
        return f"{item.text} …"
    words = getattr(item, "text", None) or getattr(item, "sentence", None) or getattr(item, "name", "")
    return str(words)


STARTED = AnswerStarted(Origin(provider="p"), (Sentence("{a} was left out.", {"a": "Stop"}), Sentence("Other.")))


def test_what_was_adjusted_is_said_once_before_the_answer(feed: Feed) -> None:
    feed(RequestAdjusted((Sentence("A picture was scaled."),)), STARTED, ContentDelta("Hi"))
    feed(TurnStarted("turn2", "m2", "model"), STARTED, ContentDelta("Ho"))
    sentences = [str(item.sentence) for item in feed.transcript if isinstance(item, NoticeItem)]
    assert sentences == ["A picture was scaled.", "Stop was left out.", "Other."]
    assert isinstance(feed.transcript[3], AnswerItem)


def test_what_was_adjusted_is_not_said_again_after_reopening() -> None:
    answer = Message.assistant("Hi").model_copy(update={"adjustments": STARTED.adjustments})
    feed = Feed()
    feed.transcript = Transcript([Message.user("go"), answer])
    assert [type(item) for item in feed.transcript] == [UserItem, NoticeItem, NoticeItem, AnswerItem]
    assert feed(TurnStarted("turn2", "m2", "model"), STARTED) == []


def cited(start: int | None = 0, end: int | None = 1) -> Citation:
    return Citation(title="t", url="https://x.example", start=start, end=end)


def test_citations_belong_to_the_whole_text_however_it_was_cut(feed: Feed) -> None:
    feed(ContentDelta("The grass is "), TextClosed("p"))
    assert feed(ContentDelta("green"), TextClosed("p", {}, (cited(0, 5), cited(None, None)))) == [
        Updated(0, "text"),
        Updated(0, "state"),
    ]
    feed(ContentDelta(" and the sky "), ContentDelta("blue."), TextClosed("p", {}, (cited(1, 4),)))
    (answer,) = feed.transcript
    assert isinstance(answer, AnswerItem)
    assert str(answer.text) == "The grass is green and the sky blue."
    assert [(citation.start, citation.end) for citation in answer.citations] == [(13, 18), (None, None), (19, 22)]
    assert not answer.finished


def test_a_remark_before_the_answer_stands_alone(feed: Feed) -> None:
    feed(ContentDelta("Let me look."), TextClosed("p"), ContentDelta("It is 7."), TextClosed("p", {}, (cited(),)))
    first, second = feed.transcript
    assert isinstance(first, AnswerItem)
    assert isinstance(second, AnswerItem)
    assert (str(first.text), first.finished, first.citations) == ("Let me look.", True, ())
    assert (str(second.text), second.citations) == ("It is 7.", (cited(),))


def test_steps_of_servers_and_what_nobody_knows_have_their_rows(feed: Feed) -> None:
    feed(ThinkingDelta("hm"), ServerStep(provider="p", name="search", text="Searched for x.", raw={"q": 1}))
    feed(Unknown(raw={"type": "hologram"}, provider="p"), ContentDelta("Yes"))
    thinking, step, unknown, _ = feed.transcript
    assert isinstance(thinking, ThinkingItem)
    assert thinking.finished
    assert isinstance(step, ServerStepItem)
    assert (step.name, step.text, step.message_id) == ("search", "Searched for x.", "m1")
    assert isinstance(unknown, UnknownItem)
    assert unknown.raw == {"type": "hologram"}


@pytest.mark.parametrize(
    ("end", "words", "action"),
    [
        (MessageDelta(StopReason.REFUSAL, "refusal"), "The model declined to answer.", RemedyAction.NONE),
        (
            MessageDelta(StopReason.REFUSAL, "refusal", {"category": "cyber", "explanation": "Because."}),
            "The model declined to answer. The provider says: Because. (cyber)",
            RemedyAction.NONE,
        ),
        (
            MessageDelta(StopReason.REFUSAL, "refusal", {"category": "bio", "explanation": None}),
            "The model declined to answer. The provider says: bio",
            RemedyAction.NONE,
        ),
        (
            MessageDelta(StopReason.CONTENT_FILTER, "SAFETY", {"finishMessage": "Blocked."}),
            "The provider's content filter withheld the rest of this answer. The provider says: Blocked.",
            RemedyAction.NONE,
        ),
        (
            MessageDelta(StopReason.CONTEXT_WINDOW_EXCEEDED),
            "The conversation has become longer than this model can read.",
            RemedyAction.NONE,
        ),
        (
            MessageDelta(StopReason.MALFORMED_TOOL_CALL, "MALFORMED_FUNCTION_CALL", {"finishMessage": "print("}),
            "The model wrote a call that its own server could not read. The provider says: print(",
            RemedyAction.RETRY,
        ),
        (
            MessageDelta(StopReason.UNKNOWN, "weird"),
            "The answer ended for a reason that this version does not know: “weird”.",
            RemedyAction.NONE,
        ),
        (
            MessageDelta(StopReason.UNKNOWN),
            "The answer ended for a reason that this version does not know.",
            RemedyAction.NONE,
        ),
    ],
    ids=lambda value: None if isinstance(value, RemedyAction) else str(value)[:40],
)
def test_why_an_answer_ended_is_said_live_and_again(
    feed: Feed, end: MessageDelta, words: str, action: RemedyAction
) -> None:
    feed(end)
    builder = AnswerBuilder("m1", "model")
    builder.feed(ContentDelta("x"), START)
    builder.feed(end, START)
    for transcript in (feed.transcript, Transcript([builder.message(MessageState.COMPLETE, START)])):
        notice = transcript[len(transcript) - 1]
        assert isinstance(notice, NoticeItem)
        assert (str(notice.sentence), notice.action) == (words, action)


@pytest.mark.parametrize("reason", [StopReason.END_TURN, StopReason.TOOL_USE, StopReason.MAX_TOKENS])
def test_ends_that_explain_themselves_say_nothing(feed: Feed, reason: StopReason) -> None:
    assert feed(MessageDelta(reason)) == []


WORDS = st.sampled_from(["It is", " so.", "Yes.", "No", "a `b`", "\n\nThen", "。然后"])
PARTS = st.one_of(
    st.builds(ContentDelta, WORDS),
    st.builds(ContentDelta, WORDS).map(lambda delta: (delta, TextClosed("p", {"s": 1}, (cited(),)))),
    st.builds(ThinkingDelta, WORDS).map(lambda delta: (delta, ThinkingBlock(delta.text, "p"))),
    st.just(ThinkingBlock("", "p", {"data": "x"})),
    st.integers(0, 10**6).map(lambda number: ToolUse(id=str(number), name="f")),
    st.just(ServerStep(provider="p", name="search", raw={})),
    st.just(Image(source=UrlSource(url="https://example.org/a.png"))),
    st.just(Unknown(raw={"x": 1})),
)
ENDS = st.sampled_from(
    [StopReason.END_TURN, StopReason.REFUSAL, StopReason.UNKNOWN, StopReason.CONTENT_FILTER, StopReason.TOOL_USE]
)


def looks(transcript: Transcript) -> list[Item]:
    """Its items without their ids."""
    items = list(transcript)
    for item in items:
        item.id = ""
        if isinstance(item, ThinkingItem):
            item.seconds = None
    return items


@given(st.lists(PARTS, max_size=12), ENDS)
def test_a_conversation_looks_the_same_when_it_is_opened_again(parts: list[object], reason: StopReason) -> None:
    feed, builder = Feed(), AnswerBuilder("m1", "model")
    feed(TurnStarted("turn", "m1", "model"))
    flat = [event for part in parts for event in (part if isinstance(part, tuple) else (part,))]
    used: set[str] = set()
    for event in (STARTED, *flat, MessageDelta(reason, "raw")):
        if isinstance(event, ToolUse):
            if event.id in used:
                continue
            used.add(event.id)
        feed(event)  # type: ignore[arg-type]
        builder.feed(event, START)  # type: ignore[arg-type]
    state = MessageState.INTERRUPTED if reason in TRUNCATED_STOP_REASONS else MessageState.COMPLETE
    stored = builder.message(state, START)
    reopened = Transcript([Message.model_validate_json(stored.model_dump_json())])
    assert looks(reopened) == looks(feed.transcript)


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
    assert answer.interrupted is (reason in TRUNCATED_STOP_REASONS)
