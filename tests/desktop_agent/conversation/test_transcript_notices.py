"""Notices: what nobody said and the person should know."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from desktop_agent.conversation.items import Added, NoticeItem, Removed, Updated, UserItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import COMPACTED
from desktop_agent.types.blocks import Summary
from desktop_agent.types.engine_events import (
    CheckpointRestored,
    Envelope,
    ErrorOccurred,
    Event,
    GuardAborted,
    ModeChanged,
    ModeChangeRequested,
    QuestionAnswered,
    QuestionAsked,
    RetryScheduled,
    RunEnd,
    RunFinished,
    RunStarted,
    UserMessageQueued,
    UserMessageReturned,
)
from desktop_agent.types.errors import RemedyAction, Sentence, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import AnswerStarted, ContentDelta, MessageDelta, Origin, StopReason

AT = datetime(2026, 1, 1, tzinfo=UTC)


def apply_events(transcript: Transcript, *events: Event):
    return [change for event in events for change in transcript.apply(Envelope(1, "run", None, "turn", AT, event))]


def sentences_of(*events: Event) -> list[str]:
    transcript = Transcript()
    apply_events(transcript, *events)
    notices = [item for item in transcript if isinstance(item, NoticeItem)]
    assert len(notices) == len(transcript)
    return [
        str(sentence) for notice in notices for sentence in (notice.sentence, notice.remedy) if sentence is not None
    ]


@pytest.mark.parametrize(
    ("event", "sentences"),
    [
        (GuardAborted("tests", "They fail."), ["The guard “tests” was removed: They fail."]),
        # It is asked above the composer, until it is decided.
        (ModeChangeRequested("default", "plan", AT), []),
        (ModeChanged("default", "plan", "agent"), ["The agent changed the mode to “Plan”."]),
        (ModeChanged("default", "my-own", "agent"), ["The agent changed the mode to “my-own”."]),
        (ModeChanged("plan", "plan", "agent"), ["The mode stays “Plan”."]),
        (ModeChanged("plan", "plan", "person"), ["The mode stays “Plan”."]),
        # Who did it knows it.
        (ModeChanged("plan", "default", "person"), []),
        # The card that is answered says it.
        (QuestionAsked("q", "Which {colour}?"), []),
        (QuestionAnswered("q", "Red"), ["You answered: Red"]),
        (QuestionAnswered("q", None), ["The question was not answered."]),
        (UserMessageQueued("m"), []),
        # The card of the call says it.
        (CheckpointRestored("c"), []),
        (
            CheckpointRestored("c", conflicts=("a.txt", "b.txt"), failed=("c.txt",)),
            [
                "Not put back, because they were changed since: a.txt, b.txt",
                "These files could not be put back: c.txt",
            ],
        ),
        (CheckpointRestored("c", undone="Unbooked."), ["A call was undone: Unbooked."]),
        (CheckpointRestored("c", not_undone="It is gone."), ["A call was not undone: It is gone."]),
        (CheckpointRestored("c", failed=("c.txt",)), ["These files could not be put back: c.txt"]),
    ],
)
def test_a_fact_is_a_sentence(event: Event, sentences: list[str]) -> None:
    assert sentences_of(event) == sentences


def test_of_many_files_a_few_are_named_and_all_can_be_copied() -> None:
    transcript = Transcript()
    paths = tuple(f"{number}.txt" for number in range(200))
    apply_events(transcript, CheckpointRestored("c", conflicts=paths))
    (notice,) = transcript
    assert isinstance(notice, NoticeItem)
    assert str(notice.sentence).endswith("0.txt, 1.txt, 2.txt, …")
    assert notice.detail.split("\n") == list(paths)


def test_a_prompt_that_was_not_delivered_is_gone() -> None:
    prompt = Message.user("precious")
    transcript = Transcript([Message.user("before")])
    assert transcript.add_message(prompt) == [Added(1)]
    changes = apply_events(
        transcript,
        ModeChanged("plan", "plan", "person"),
        UserMessageReturned(prompt.id, "no"),
        ErrorOccurred.of(WrongUse("The message was not sent: no")),
        RunFinished(RunEnd.ABORTED),
    )
    assert changes == [Added(2), Removed(1, 1), Added(2)]
    before, stays, error = transcript
    assert isinstance(before, UserItem)
    assert isinstance(stays, NoticeItem)
    assert isinstance(error, NoticeItem)


def test_what_was_never_shown_takes_nothing_with_it() -> None:
    transcript = Transcript([Message.user("before")])
    assert apply_events(transcript, UserMessageReturned("queued", "stopped")) == []
    apply_events(transcript, ContentDelta("answer"))
    assert apply_events(transcript, UserMessageReturned("queued", "stopped")) == []
    assert len(transcript) == 2


OFFER = Sentence("It can go on.")


def offer(transcript: Transcript):
    return transcript.offer_continue(OFFER, RemedyAction.CONTINUE)


@pytest.mark.parametrize(
    ("action", "is_enough"),
    [
        (RemedyAction.RETRY, True),
        (RemedyAction.CONTINUE, True),
        (RemedyAction.OPEN_SETTINGS, False),
        (RemedyAction.NONE, False),
    ],
)
def test_to_continue_is_offered_once_at_the_end(action: RemedyAction, is_enough: bool) -> None:
    transcript = Transcript([Message.user("go")])
    transcript.add_notice(Sentence("It broke off."), action=action)
    transcript.add_notice(Sentence("And more is to be said."))
    assert offer(transcript) == ([] if is_enough else [Added(3)])
    assert offer(transcript) == []
    last = transcript[len(transcript) - 1]
    assert isinstance(last, NoticeItem)
    assert is_enough or (last.level, last.sentence, last.action) == ("notice", OFFER, RemedyAction.CONTINUE)
    # What was offered above another prompt is over.
    transcript.add_message(Message.user("again"))
    assert offer(transcript) == [Added(len(transcript) - 1)]


@pytest.mark.parametrize("is_last", [True, False])
def test_an_offer_to_continue_is_gone_once_something_goes_on(is_last: bool) -> None:
    transcript = Transcript([Message.user("go")])
    offer(transcript)
    if not is_last:
        transcript.add_notice(Sentence("Meanwhile."))
    assert apply_events(transcript, RunStarted("m")) == [Removed(1, 1)]
    assert apply_events(transcript, RunStarted("m")) == []
    end = len(transcript)
    offer(transcript)
    assert transcript.add_message(Message.user("more")) == [Removed(end, 1), Added(end)]
    assert OFFER not in [item.sentence for item in transcript if isinstance(item, NoticeItem)]


def test_a_notice_that_no_longer_holds_is_gone_or_says_what_holds_where_something_follows() -> None:
    transcript = Transcript([Message.user("go")])
    transcript.add_notice(Sentence("The disk is full."), Sentence("Make room."), error=True)
    trouble = transcript[1]
    assert isinstance(trouble, NoticeItem)
    transcript.add_notice(Sentence("Meanwhile."))
    saved = Sentence("Saved now.")
    assert transcript.resolve_notice(trouble, saved) == [Removed(1, 1)]
    assert transcript.resolve_notice(trouble, saved) == []
    assert len(transcript) == 2
    transcript.add_notice(Sentence("The disk is full."), Sentence("Make room."), error=True)
    trouble = transcript[2]
    assert isinstance(trouble, NoticeItem)
    apply_events(transcript, ContentDelta("answer"))
    assert transcript.resolve_notice(trouble, saved) == [Updated(2, "state")]
    assert (trouble.level, trouble.sentence, trouble.remedy) == ("notice", saved, None)


def test_what_was_said_for_the_person_and_the_summary_are_notices() -> None:
    injected = Message.user("Go on.").model_copy(update={"injected_by": "tests"})
    summary = Message(role=Role.SYSTEM, blocks=(Summary(text="What was done.", first_kept_id="m"),))
    compacted, continued = Transcript([Message.system("hidden"), summary, injected])
    assert isinstance(compacted, NoticeItem)
    assert (compacted.level, compacted.sentence, compacted.folded) == ("notice", COMPACTED, ("What was done.",))
    assert isinstance(continued, NoticeItem)
    assert "tests" in str(continued.sentence)


def test_one_fact_is_said_once_and_again_after_something_else() -> None:
    same = ModeChanged("plan", "plan", "agent")
    transcript = Transcript([Message.user("go")])
    assert apply_events(transcript, same, same) == [Added(1)]
    assert apply_events(transcript, CheckpointRestored("c", failed=("c.txt",)), same) == [Added(2), Added(3)]


NOBODY = Sentence("Nobody answers.")
AGAIN = RetryScheduled(1.0, "Nobody answers.", 1, NOBODY)


def failed(sentence: Sentence = NOBODY, detail: str = "") -> ErrorOccurred:
    return ErrorOccurred("k", "m", sentence, Sentence("Try again."), RemedyAction.RETRY, detail)


def test_what_fails_again_as_before_is_counted_in_its_place() -> None:
    transcript = Transcript([Message.user("go")])
    assert apply_events(transcript, RunStarted("m"), AGAIN, failed()) == [Added(1), Removed(1, 1), Added(1)]
    _, first = transcript
    assert apply_events(transcript, RunStarted("m"), AGAIN, AGAIN) == [Added(2), Added(3)]
    repeated = [Removed(3, 1), Removed(2, 1), Updated(1, "state")]
    assert apply_events(transcript, failed(detail="of now"), RunFinished(RunEnd.FAILED)) == repeated
    assert apply_events(transcript, RunStarted("m"), failed(detail="and later")) == [Updated(1, "state")]
    assert list(transcript)[1:] == [first]
    assert isinstance(first, NoticeItem)
    assert (first.times, first.detail) == (3, "and later")


def test_the_same_failure_with_other_numbers_is_counted_too() -> None:
    transcript = Transcript([Message.user("go")])
    limits = [f"Limit 30,000, used {used}. Please try again in {wait}s." for used, wait in (("28,100", "6.3"), (9, 12))]
    apply_events(transcript, *(failed(Sentence("The server said: {message}", {"message": limit})) for limit in limits))
    _, error = transcript
    assert isinstance(error, NoticeItem)
    assert error.times == 2
    assert str(error.sentence).endswith(limits[-1])


@pytest.mark.parametrize("between", [failed(Sentence("It is full.")), ModeChanged("default", "plan", "agent")])
def test_what_fails_after_anything_else_is_shown_by_itself(between: Event) -> None:
    transcript = Transcript([Message.user("go")])
    apply_events(transcript, RunStarted("m"), failed(), between, AGAIN, failed())
    errors = [item for item in transcript if isinstance(item, NoticeItem) and item.sentence == NOBODY]
    assert [error.times for error in errors] == [1, 1]
    assert len(transcript) == 4


STARTED = AnswerStarted(Origin(provider="scripted"))


def test_an_answer_takes_the_place_of_what_failed_before_it() -> None:
    transcript = Transcript([Message.user("go")])
    apply_events(transcript, RunStarted("m"), failed(), RunStarted("m"), AGAIN, STARTED)
    assert apply_events(transcript, ContentDelta("Half of an ans")) == [Removed(2, 1), Removed(1, 1), Added(1)]
    # It explains why the answer took so long, and began anew.
    assert apply_events(transcript, AGAIN, STARTED, ContentDelta("An answer.")) == [
        Updated(1, "state"),
        Added(2),
        Added(3),
    ]
    apply_events(transcript, failed())
    transcript.add_message(Message.user("more"))
    assert apply_events(transcript, RunStarted("m"), STARTED, ContentDelta("Yes.")) == [Added(6)]


def test_a_failure_before_another_prompt_offers_nothing() -> None:
    transcript = Transcript([Message.user("go")])
    apply_events(transcript, RunStarted("m"), failed(), RunFinished(RunEnd.FAILED))
    assert transcript.add_message(Message.user("something else")) == [Updated(1, "state"), Added(2)]
    _, error, _ = transcript
    assert isinstance(error, NoticeItem)
    assert error.action is RemedyAction.NONE


def test_a_message_that_waits_can_be_sent_whatever_else_is_said() -> None:
    transcript = Transcript([Message.user("go")])
    transcript.add_notice(Sentence("A message waits."), action=RemedyAction.RETRY)
    assert transcript.add_message(Message.user("something else")) == [Added(2)]


def test_what_breaks_off_before_its_first_word_is_counted() -> None:
    transcript = Transcript([Message.user("go")])
    for _ in range(3):
        apply_events(
            transcript, RunStarted("m"), STARTED, AGAIN, STARTED, AGAIN, STARTED, failed(), RunFinished(RunEnd.FAILED)
        )
    _, error = transcript
    assert isinstance(error, NoticeItem)
    assert (error.level, error.times) == ("error", 3)
    adjusted = replace(STARTED, adjustments=(Sentence("Without pictures."),))
    apply_events(transcript, RunStarted("m"), adjusted, MessageDelta(StopReason.END_TURN))
    _, adjustment = transcript
    assert isinstance(adjustment, NoticeItem)
    assert adjustment.sentence == Sentence("Without pictures.")


def test_an_error_at_the_end_is_gone_when_its_remedy_was_taken() -> None:
    transcript = Transcript([Message.user("go")])
    error = replace(failed(), action=RemedyAction.CHOOSE_MODEL)
    apply_events(transcript, error)
    transcript.add_message(Message.user("go on"))
    apply_events(transcript, error, failed())
    offer(transcript)
    assert transcript.end_remedied(RemedyAction.CHOOSE_MODEL) == [Removed(3, 1)]
    assert len(transcript) == 4
    assert transcript.end_remedied(RemedyAction.CHOOSE_MODEL) == []
