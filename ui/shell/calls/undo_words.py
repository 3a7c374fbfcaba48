"""What the banner above the transcript says of an undoing or a redoing."""

from collections.abc import Sequence

from desktop_agent.vocabulary.errors import Sentence
from ui.bridge.calls.checkpoints import UndoResult
from ui.look.visible_text import show_hidden

_MAX_NAMED_FILES = 3
_MAX_TEXT_LENGTH = 60


def result_sentence(result: UndoResult, *, redo: bool) -> Sentence:
    """What came of it."""
    if redo:
        if not result.files and not result.left:
            return Sentence("Nothing was left to redo: the files are already as they were before it was undone.")
        if not result.files:
            return Sentence("Nothing was redone.")
        return Sentence("Redone: {files}.", {"files": _file_names(result.files)})
    said = show_hidden(" ".join(result.said))
    files = result.files
    if not files and not said:
        if result.left:
            return Sentence("Nothing was undone.")
        return Sentence("Nothing was left to undo: the files are already as they were before.")
    if not files:
        return Sentence("Undone. {words}", {"words": said})
    values = {"files": _file_names(files), "words": said}
    return Sentence("Undone: {files}. {words}", values) if said else Sentence("Undone: {files}.", values)


def not_undone_sentence(result: UndoResult, *, redo: bool) -> Sentence | None:
    """That not all of it came; what and why stands in the transcript, and in the dialog."""
    if not result.left:
        return None
    return Sentence("Not all of it was redone.") if redo else Sentence("Not all of it was undone.")


def _file_names(paths: Sequence[str]) -> str:
    shown = show_hidden(", ".join(paths[:_MAX_NAMED_FILES]))
    return shown if len(paths) <= _MAX_NAMED_FILES else f"{shown}, … ({len(paths)})"


def shorten(text: str) -> str:
    """The beginning of a text, in one line."""
    line = show_hidden(" ".join(text[: 4 * _MAX_TEXT_LENGTH].split()))
    return line if len(line) <= _MAX_TEXT_LENGTH else line[: _MAX_TEXT_LENGTH - 1] + "…"
