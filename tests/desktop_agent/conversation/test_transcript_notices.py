"""What nobody said and the person should know."""

from datetime import UTC, datetime

import pytest

from desktop_agent.conversation.items import Added, NoticeItem, Removed, UserItem
from desktop_agent.conversation.transcript import Transcript
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
    RunEnd,
    RunFinished,
    UserMessageQueued,
    UserMessageReturned,
)
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta

AT = datetime(2026, 1, 1, tzinfo=UTC)


def tell(transcript: Transcript, *events: Event):
    return [change for event in events for change in transcript.apply(Envelope(1, "run", None, "turn", AT, event))]


def said(*events: Event) -> list[str]:
    transcript = Transcript()
    tell(transcript, *events)
    notices = [item for item in transcript if isinstance(item, NoticeItem)]
    assert len(notices) == len(transcript)
    return [str(each) for notice in notices for each in (notice.sentence, notice.remedy) if each is not None]


@pytest.mark.parametrize(
    ("event", "wanted"),
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
        (CheckpointRestored("c", undone="Unbooked."), ["What a call did was taken back: Unbooked."]),
        (CheckpointRestored("c", not_undone="It is gone."), ["What a call did was not taken back: It is gone."]),
        (CheckpointRestored("c", failed=("c.txt",)), ["These files could not be put back: c.txt"]),
    ],
)
def test_a_fact_is_a_sentence(event: Event, wanted: list[str]) -> None:
    assert said(event) == wanted


def test_of_many_files_a_few_are_named_and_all_can_be_copied() -> None:
    transcript = Transcript()
    paths = tuple(f"{number}.txt" for number in range(200))
    tell(transcript, CheckpointRestored("c", conflicts=paths))
    (notice,) = transcript
    assert isinstance(notice, NoticeItem)
    assert str(notice.sentence).endswith("0.txt, 1.txt, 2.txt, …")
    assert notice.detail.split("\n") == list(paths)


def test_a_prompt_that_was_not_delivered_is_gone() -> None:
    prompt = Message.user("precious")
    transcript = Transcript([Message.user("before")])
    assert transcript.add_message(prompt) == [Added(1)]
    changes = tell(
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
    assert tell(transcript, UserMessageReturned("queued", "stopped")) == []
    tell(transcript, ContentDelta("answer"))
    assert tell(transcript, UserMessageReturned("queued", "stopped")) == []
    assert len(transcript) == 2
