"""What the model hears of a restoring."""

from collections.abc import Sequence

from desktop_agent.conversation.folding.undo_notes import redo_note, undo_note
from desktop_agent.tools.file_keeper import RestoreReport
from desktop_agent.vocabulary.conduct.checkpoints import FileState
from desktop_agent.vocabulary.messages import Message

_UNDONE_TEXTS = ("as it was before", "removed, as it was not there before")
_REDONE_TEXTS = ("as it was before it was undone", "removed, as it was not there before it was undone")


def undo_note_for(done: Sequence[RestoreReport], note_id: str) -> Message | None:
    """About several that were restored one after the other, all of them undone or all redone; None for nothing."""
    is_redo = any(each.checkpoint.is_redo for each in done)
    back, removed = _REDONE_TEXTS if is_redo else _UNDONE_TEXTS
    again: dict[str, str] = {}
    for each in done:
        was = {displayed_path(file.path): file.before for file in each.checkpoint.files}
        for path in each.restored:
            again[path] = back if path in was and was[path] != FileState() else removed
    left = [path for each in done for path in (*each.conflicts, *each.failed)]
    if is_redo:
        note = redo_note(again, left)
    else:
        note = undo_note(again, left, [each.undone for each in done if each.is_new_undo])
    return note and note.model_copy(update={"id": note_id})


def displayed_path(path: str) -> str:
    """A path as people and models read it: names on disk need not be Unicode."""
    return path.encode("utf-8", "replace").decode()
