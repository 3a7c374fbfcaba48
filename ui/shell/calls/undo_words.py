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
        if not result.files:
            return Sentence("Nothing was redone.")
        return Sentence("Redone: {files}.", {"files": _named(result.files)})
    said = with_hidden_shown(" ".join(result.said))
    files = result.files
    if not files and not said:
        if result.left:
            return Sentence("Nothing was undone.")
        return Sentence("It was undone already: everything is as it was before.")
    if not files:
        return Sentence("Undone. {words}", {"words": said})
    values = {"files": _named(files), "words": said}
    return Sentence("Undone: {files}. {words}", values) if said else Sentence("Undone: {files}.", values)


def left(result: UndoResult, *, redo: bool) -> Sentence | None:
    """What did not come of it."""
    if not result.left:
        return None
    if len(result.left) == 1:
        return result.left[0].why
    values = {"files": _named([each.path for each in result.left])}
    return Sentence("Not redone: {files}.", values) if redo else Sentence("Not undone: {files}.", values)


def _named(paths: Sequence[str]) -> str:
    shown = with_hidden_shown(", ".join(paths[:_NAMED]))
    return shown if len(paths) <= _NAMED else f"{shown}, … ({len(paths)})"


def short(text: str) -> str:
    """The beginning of a text, in one line."""
    line = with_hidden_shown(" ".join(text[: 4 * _LONGEST].split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
