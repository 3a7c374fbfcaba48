"""Checkpoints find the calls that are shown, those of specialists by their time."""

from datetime import timedelta

from desktop_agent.engine.undo_forecast import match_saved_calls
from desktop_agent.types.blocks import ToolResult, ToolUse
from desktop_agent.types.checkpoints import Checkpoint, CheckpointedCall, FileState, SavedFile
from desktop_agent.types.messages import Message, Role, now

START = now()
CHANGED = SavedFile(path="a", before=FileState(), after=FileState(digest="0" * 64, mode=0o644))


def at_second(seconds: float, message: Message) -> Message:
    return message.model_copy(update={"created_at": START + timedelta(seconds=seconds)})


def asks(*names: str) -> Message:
    calls = tuple(ToolUse(id=f"id of {name}", name=name, input={}) for name in names)
    return Message(role=Role.ASSISTANT, blocks=calls)


def checkpoint(seconds: float, message_id: str, file: SavedFile = CHANGED) -> Checkpoint:
    return Checkpoint(
        id=f"saved at {seconds}",
        conversation_id="c",
        tool_use_id="call",
        message_id=message_id,
        workspace="/w",
        created_at=START + timedelta(seconds=seconds),
        files=(file,),
    )


def test_its_own_call_or_that_of_the_specialist_who_was_at_work() -> None:
    answer = at_second(1, asks("helper", "read_file"))
    history = [
        at_second(0, Message.user("go")),
        answer,
        at_second(5, Message.tool_results([ToolResult(tool_use_id="x")])),
    ]
    own, below = checkpoint(2, answer.id), checkpoint(3, "of the specialist")
    late = checkpoint(6, "of somebody")
    assert match_saved_calls([own, below, late], history, ["helper"]) == [
        CheckpointedCall(answer.id, "call", own.id),
        CheckpointedCall(answer.id, "id of helper", below.id),
    ]


def test_side_by_side_nobody_knows_whose_it_was() -> None:
    history = [at_second(0, asks("helper", "other"))]
    assert match_saved_calls([checkpoint(1, "below")], history, ["helper", "other"]) == []


def test_what_a_specialist_noted_counts_whatever_the_clock_says() -> None:
    answer, others = at_second(0, asks("helper", "other")), asks("helper")
    notes = {"caller_message_id": answer.id, "caller_tool_use_id": "id of other"}
    below = checkpoint(-5, "below").model_copy(update=notes)
    elsewhere = checkpoint(1, "below").model_copy(update={**notes, "caller_message_id": "of another branch"})
    assert match_saved_calls([below, elsewhere], [answer, at_second(1, others)], ["helper", "other"]) == [
        CheckpointedCall(answer.id, "id of other", below.id)
    ]


def test_of_what_changed_nothing_the_own_call_alone_is_told() -> None:
    answer = at_second(0, asks("write_file", "helper"))
    same = SavedFile(path="a", before=FileState(), after=FileState(), lines=(0, 0))
    own, below = checkpoint(1, answer.id, same), checkpoint(2, "of the specialist", same)
    redo = own.model_copy(update={"id": "redo", "undoes": own.id, "is_redo": True})
    assert match_saved_calls([own, below, redo], [answer], ["helper"]) == [
        CheckpointedCall(answer.id, "call", own.id, lines=(0, 0), changed_nothing=True)
    ]


def test_changed_lines_belong_to_the_call_itself() -> None:
    answer = at_second(0, asks("helper"))
    changed = CHANGED.model_copy(update={"lines": (2, 0)})
    own, below = checkpoint(1, answer.id, changed), checkpoint(2, "of the specialist", changed)
    assert [call.lines for call in match_saved_calls([own, below], [answer], ["helper"])] == [(2, 0), None]
