"""What the banner above the transcript says of an undoing or a redoing."""

from collections.abc import Sequence

from desktop_agent.vocabulary.errors import Sentence
from ui.bridge.calls.checkpoints import UndoResult
from ui.look.visible_text import with_hidden_shown

_NAMED = 3
_LONGEST = 60


def done(result: UndoResult, *, redo: bool) -> Sentence:
    """What came of it."""
    if redo:
        if not result.files and not result.left:
            return Sentence("Nothing was left to redo: the files are already as they were before it was undone.")
        if not result.files:
            return Sentence("Nothing was redone.")
        return Sentence("Redone: {files}.", {"files": _named(result.files)})
    said = with_hidden_shown(" ".join(result.said))
    files = result.files
    if not files and not said:
        if result.left:
            return Sentence("Nothing was undone.")
        return Sentence("Nothing was left to undo: the files are already as they were before.")
    if not files:
        return Sentence("Undone. {words}", {"words": said})
    values = {"files": _named(files), "words": said}
    return Sentence("Undone: {files}. {words}", values) if said else Sentence("Undone: {files}.", values)


def left(result: UndoResult, *, redo: bool) -> Sentence | None:
    """That not all of it came; what and why stands in the transcript, and in the dialog."""
    if not result.left:
        return None
    return Sentence("Not all of it was redone.") if redo else Sentence("Not all of it was undone.")


def _named(paths: Sequence[str]) -> str:
    shown = with_hidden_shown(", ".join(paths[:_NAMED]))
    return shown if len(paths) <= _NAMED else f"{shown}, … ({len(paths)})"


def short(text: str) -> str:
    """The beginning of a text, in one line."""
    line = with_hidden_shown(" ".join(text[: 4 * _LONGEST].split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
