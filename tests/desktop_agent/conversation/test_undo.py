"""Calls in the transcript know what of them can be undone, and that it was."""

from datetime import UTC, datetime

import pytest

from desktop_agent.conversation.items import NoticeItem, ToolCallItem, Updated
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import is_undo_note, last_message_but_undo_notes, undo_note
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.checkpoints import CheckpointedCall
from desktop_agent.types.engine_events import (
    CheckpointCreated,
    CheckpointRestored,
    Envelope,
    Event,
    RunStarted,
    ToolFinished,
)
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.tool_calls import FileChanges

USE = ToolUse(id="w", name="write_file", input={})
AT = datetime(2026, 1, 1, tzinfo=UTC)


def transcript_with(*uses: ToolUse) -> Transcript:
    return Transcript([Message(id="m", role=Role.ASSISTANT, blocks=uses)])


def apply_events(transcript: Transcript, *events: Event, run: str = "run", parent: str | None = None) -> list[object]:
    return [change for event in events for change in transcript.apply(Envelope(1, run, parent, "t", AT, event))]


def ended(outcome: Outcome = Outcome.SUCCEEDED, id_: str = "w", changes: FileChanges | None = None) -> ToolFinished:
    return ToolFinished(id_, ToolResult(tool_use_id=id_, content=(Text(text="ok"),), outcome=outcome), 1.0, changes)


def call(transcript: Transcript) -> ToolCallItem:
    return next(item for item in transcript if isinstance(item, ToolCallItem))


def test_a_call_can_be_undone_from_its_end_on_and_once() -> None:
    transcript = transcript_with(USE)
    apply_events(transcript, CheckpointCreated("c", "w", ("a",)))
    assert not call(transcript).can_be_undone
    apply_events(transcript, ended())
    assert call(transcript).can_be_undone
    assert apply_events(transcript, CheckpointRestored("c")) == [Updated(0, "state")]
    assert (call(transcript).can_be_undone, call(transcript).is_undone) == (False, True)
    assert len(transcript) == 1


@pytest.mark.parametrize(
    "rest",
    [{"conflicts": ("a",)}, {"failed": ("a",)}, {"not_undone": "It is gone."}],
    ids=lambda rest: next(iter(rest)),
)
def test_what_was_undone_in_part_can_be_undone_again(rest: dict[str, object]) -> None:
    transcript = transcript_with(USE)
    apply_events(transcript, CheckpointCreated("c", "w"), ended(), CheckpointRestored("c", **rest))
    assert (call(transcript).can_be_undone, call(transcript).is_undone) == (True, False)


@pytest.mark.parametrize(
    ("outcome", "can"),
    [(Outcome.FAILED, False), (Outcome.DENIED, False), (Outcome.CANCELLED, True), (Outcome.UNKNOWN, True)],
)
def test_one_that_failed_changed_nothing(outcome: Outcome, can: bool) -> None:
    transcript = transcript_with(USE)
    apply_events(transcript, CheckpointCreated("c", "w"), ended(outcome))
    assert call(transcript).can_be_undone is can


def test_what_changed_nothing_cannot_be_undone() -> None:
    transcript = transcript_with(USE)
    apply_events(transcript, CheckpointCreated("c", "w", ("a",)), ended(changes=FileChanges(lines=(0, 0))))
    item = call(transcript)
    assert (item.can_be_undone, item.changed_nothing, item.changed_lines) == (False, True, (0, 0))
    assert apply_events(transcript, CheckpointRestored("c")) == []
    assert not item.is_undone


def test_what_changed_is_known_with_its_lines() -> None:
    transcript = transcript_with(USE)
    changes = FileChanges(changed=("a",), count=1, lines=(1, 3))
    apply_events(transcript, CheckpointCreated("c", "w", ("a",)), ended(changes=changes))
    assert (call(transcript).can_be_undone, call(transcript).changed_lines) == (True, (1, 3))
    assert [saved.lines for saved in transcript.saved_calls] == [(1, 3)]


def test_the_disk_knows_what_changed_nothing() -> None:
    transcript = transcript_with(USE)
    saved = [CheckpointedCall("m", "w", "c", lines=(0, 0), changed_nothing=True)]
    assert transcript.mark_saved_calls(saved) == [Updated(0, "state")]
    assert transcript.mark_saved_calls(saved) == []
    assert (call(transcript).changed_nothing, call(transcript).checkpoints) == (True, {})


def test_a_call_of_a_specialist_that_changed_nothing_leaves_nothing_to_undo() -> None:
    transcript = transcript_with(ToolUse(id="d", name="helper", input={}))
    below = {"run": "below", "parent": "run"}
    apply_events(transcript, RunStarted("p", agent="helper", call_id="d"), **below)
    apply_events(transcript, CheckpointCreated("c1", "w"), ended(changes=FileChanges()), **below)
    apply_events(transcript, ended(id_="d"))
    assert not call(transcript).can_be_undone


def test_what_a_specialist_changed_belongs_to_its_call() -> None:
    transcript = transcript_with(ToolUse(id="d", name="helper", input={}))
    below = {"run": "below", "parent": "run"}
    apply_events(transcript, RunStarted("p", agent="helper", call_id="d"), **below)
    apply_events(transcript, CheckpointCreated("c1", "w"), CheckpointCreated("c2", "w"), **below)
    apply_events(transcript, ended(Outcome.FAILED, "d"))
    assert list(call(transcript).checkpoints) == ["c1", "c2"]
    assert call(transcript).can_be_undone
    apply_events(transcript, CheckpointRestored("c1"))
    assert not call(transcript).is_undone
    apply_events(transcript, CheckpointRestored("c2"))
    assert call(transcript).is_undone


def test_what_the_disk_knows_is_told_once_and_carried_over() -> None:
    transcript = transcript_with(USE)
    saved = [CheckpointedCall("m", "w", "c", restored=True), CheckpointedCall("other", "w", "d")]
    assert transcript.mark_saved_calls(saved) == [Updated(0, "state")]
    assert transcript.mark_saved_calls(saved) == []
    assert transcript.saved_calls == saved[:1]
    reopened = transcript_with(USE)
    reopened.mark_saved_calls(transcript.saved_calls)
    assert call(reopened).is_undone


def test_the_same_twice_in_a_row_is_said_once() -> None:
    transcript = Transcript()
    apply_events(transcript, CheckpointRestored("c", conflicts=("a",)), CheckpointRestored("d", conflicts=("a",)))
    apply_events(transcript, CheckpointRestored("e", conflicts=("b",)))
    assert [str(item.sentence).rpartition(" ")[2] for item in transcript if isinstance(item, NoticeItem)] == ["a", "b"]


def test_a_note_is_a_line_that_opens_and_asks_for_no_answer() -> None:
    note = undo_note({"a": "as it was before"}, ["b", "a"], ["Unbooked."])
    assert note is not None
    answer = Message.assistant("done")
    assert last_message_but_undo_notes([answer, note]) is answer
    (line,) = Transcript([note])
    assert isinstance(line, NoticeItem)
    # What is said to the model is not said to the person.
    assert [str(part) for part in line.folded] == [
        "These files were put back:",
        "",
        "- `a`: as it was before",
        "",
        "These files were not put back, and are as they were left or changed since:",
        "",
        "- `b`",
        "",
        "Undone by tools:",
        "",
        "- Unbooked.",
    ]
    assert [number for number, part in enumerate(line.folded) if isinstance(part, Sentence)] == [0, 2, 4, 8]
    assert str(line.sentence) == "Changes were undone. The model is told before it goes on."
    assert [word in note.text for word in ("`a`: as it was before", "- `b`", "- Unbooked.")] == [True] * 3
    assert note.text.count("`a`") == 1


def test_a_note_names_not_more_files_than_anybody_reads() -> None:
    note = undo_note({f"{number}.txt": "as it was before" for number in range(200)}, [], [])
    assert note is not None
    assert note.text.count("as it was before") == 50
    assert "- and 150 more" in note.text
    assert undo_note({}, ["a"], []) is None
    assert not is_undo_note(Message.user("go"))


def noted(*, redo: bool = False) -> Message:
    note = undo_note({"a": "as it was"}, [], is_redo=redo)
    assert note is not None
    return note


def lines(transcript: Transcript) -> list[NoticeItem]:
    return [item for item in transcript if isinstance(item, NoticeItem)]


def test_what_was_undone_can_be_redone_at_its_call_and_at_its_line_once() -> None:
    transcript, note = transcript_with(USE), noted()
    apply_events(transcript, CheckpointCreated("c", "w"), ended(), CheckpointRestored("c"))
    assert not call(transcript).can_be_redone
    transcript.add_message(note)
    assert not lines(transcript)[0].can_be_redone
    saved = [
        CheckpointedCall("m", "w", "c", restored=True),
        CheckpointedCall("m", "w", "r", is_redo=True, note_id=note.id),
    ]
    assert transcript.mark_saved_calls(saved) == [Updated(1, "state"), Updated(0, "state")]
    assert (call(transcript).can_be_redone, lines(transcript)[0].can_be_redone) == (True, True)
    assert call(transcript).is_undone
    assert transcript.mark_saved_calls(saved) == []
    assert apply_events(transcript, CheckpointRestored("r")) == [Updated(0, "state"), Updated(1, "state")]
    assert (call(transcript).can_be_redone, lines(transcript)[0].can_be_redone) == (False, False)
    transcript.mark_saved_calls([CheckpointedCall("m", "w", "again")])
    assert (call(transcript).can_be_undone, call(transcript).is_undone) == (True, False)


def test_what_is_folded_says_the_same_as_what_is_read_again() -> None:
    transcript, note = transcript_with(USE), noted()
    apply_events(transcript, ended())
    transcript.add_message(note)
    transcript.mark_saved_calls(
        [CheckpointedCall("m", "w", "c", restored=True), CheckpointedCall("m", "w", "r", is_redo=True, note_id=note.id)]
    )
    reopened = transcript_with(USE)
    reopened.add_message(note)
    reopened.mark_saved_calls(transcript.saved_calls)
    assert reopened.saved_calls == transcript.saved_calls
    assert lines(reopened) == lines(transcript)
    assert call(reopened).redos == call(transcript).redos == {"r": False}


def test_two_undoings_of_one_file_have_a_line_each() -> None:
    transcript = Transcript([noted(), noted()])
    assert len({line.message_id for line in lines(transcript)}) == 2


def test_a_redoing_says_so_and_asks_for_no_answer() -> None:
    note, answer = noted(redo=True), Message(role=Role.ASSISTANT, blocks=(Text(text="done"),))
    (line,) = lines(Transcript([note]))
    assert str(line.sentence).startswith("Changes were redone.")
    assert line.folded == (Sentence("These files were put back:"), "", "- `a`: as it was")
    assert last_message_but_undo_notes([answer, note]) is answer
    assert undo_note({}, ["a"], is_redo=True) is None
