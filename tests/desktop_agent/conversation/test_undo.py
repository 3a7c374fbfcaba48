"""Calls in the transcript know what of them can be undone, and that it was."""

from datetime import UTC, datetime

import pytest

from desktop_agent.conversation.folding.undo_notes import is_undo_note, last_said, undo_note
from desktop_agent.conversation.items import NoticeItem, ToolCallItem, Updated
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.vocabulary.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.conduct.checkpoints import SavedCall
from desktop_agent.vocabulary.engine_events import (
    CheckpointCreated,
    CheckpointRestored,
    Envelope,
    Event,
    RunStarted,
    ToolFinished,
)
from desktop_agent.vocabulary.messages import Message, Role

USE = ToolUse(id="w", name="write_file", input={})
AT = datetime(2026, 1, 1, tzinfo=UTC)


def transcript_with(*uses: ToolUse) -> Transcript:
    return Transcript([Message(id="m", role=Role.ASSISTANT, blocks=uses)])


def tell(transcript: Transcript, *events: Event, run: str = "run", parent: str | None = None) -> list[object]:
    return [change for event in events for change in transcript.apply(Envelope(1, run, parent, "t", AT, event))]


def ended(outcome: Outcome = Outcome.SUCCEEDED, id_: str = "w") -> ToolFinished:
    return ToolFinished(id_, ToolResult(tool_use_id=id_, content=(Text(text="ok"),), outcome=outcome), 1.0)


def call(transcript: Transcript) -> ToolCallItem:
    return next(each for each in transcript if isinstance(each, ToolCallItem))


def test_a_call_can_be_undone_from_its_end_on_and_once() -> None:
    transcript = transcript_with(USE)
    tell(transcript, CheckpointCreated("c", "w", ("a",)))
    assert not call(transcript).can_be_undone
    tell(transcript, ended())
    assert call(transcript).can_be_undone
    assert tell(transcript, CheckpointRestored("c")) == [Updated(0, "state")]
    assert (call(transcript).can_be_undone, call(transcript).is_undone) == (False, True)
    assert len(transcript) == 1


@pytest.mark.parametrize(
    "left",
    [{"conflicts": ("a",)}, {"failed": ("a",)}, {"not_undone": "It is gone."}],
    ids=lambda left: next(iter(left)),
)
def test_what_was_undone_in_part_can_be_undone_again(left: dict[str, object]) -> None:
    transcript = transcript_with(USE)
    tell(transcript, CheckpointCreated("c", "w"), ended(), CheckpointRestored("c", **left))
    assert (call(transcript).can_be_undone, call(transcript).is_undone) == (True, False)


@pytest.mark.parametrize(
    ("outcome", "can"), [(Outcome.FAILED, False), (Outcome.CANCELLED, True), (Outcome.UNKNOWN, True)]
)
def test_one_that_failed_changed_nothing(outcome: Outcome, can: bool) -> None:
    transcript = transcript_with(USE)
    tell(transcript, CheckpointCreated("c", "w"), ended(outcome))
    assert call(transcript).can_be_undone is can


def test_what_a_specialist_changed_belongs_to_its_call() -> None:
    transcript = transcript_with(ToolUse(id="d", name="helper", input={}))
    below = {"run": "below", "parent": "run"}
    tell(transcript, RunStarted("p", agent="helper", call_id="d"), **below)
    tell(transcript, CheckpointCreated("c1", "w"), CheckpointCreated("c2", "w"), **below)
    tell(transcript, ended(Outcome.FAILED, "d"))
    assert list(call(transcript).checkpoints) == ["c1", "c2"]
    assert call(transcript).can_be_undone
    tell(transcript, CheckpointRestored("c1"))
    assert not call(transcript).is_undone
    tell(transcript, CheckpointRestored("c2"))
    assert call(transcript).is_undone


def test_what_the_disk_knows_is_told_once_and_carried_over() -> None:
    transcript = transcript_with(USE)
    saved = [SavedCall("m", "w", "c", restored=True), SavedCall("other", "w", "d")]
    assert transcript.mark(saved) == [Updated(0, "state")]
    assert transcript.mark(saved) == []
    assert transcript.saved_calls == saved[:1]
    again = transcript_with(USE)
    again.mark(transcript.saved_calls)
    assert call(again).is_undone


def test_the_same_twice_in_a_row_is_said_once() -> None:
    transcript = Transcript()
    tell(transcript, CheckpointRestored("c", conflicts=("a",)), CheckpointRestored("d", conflicts=("a",)))
    tell(transcript, CheckpointRestored("e", conflicts=("b",)))
    assert [str(each.sentence).rpartition(" ")[2] for each in transcript if isinstance(each, NoticeItem)] == ["a", "b"]


def test_a_note_is_a_line_that_opens_and_asks_for_no_answer() -> None:
    note = undo_note({"a": "as it was before"}, ["b", "a"], ["Unbooked."])
    assert note is not None
    answer = Message.assistant("done")
    assert last_said([answer, note]) is answer
    (line,) = Transcript([note])
    assert isinstance(line, NoticeItem)
    assert line.folded == note.text
    assert [word in note.text for word in ("`a`: as it was before", "- `b`", "- Unbooked.")] == [True] * 3
    assert note.text.count("`a`") == 1


def test_a_note_names_not_more_files_than_anybody_reads() -> None:
    note = undo_note({f"{number}.txt": "as it was before" for number in range(200)}, [], [])
    assert note is not None
    assert note.text.count("as it was before") == 50
    assert "- and 150 more" in note.text
    assert undo_note({}, ["a"], []) is None
    assert not is_undo_note(Message.user("go"))
