"""What the model reads of an undoing or a redoing: a message in the history that nobody wrote."""

from collections.abc import Iterable, Mapping, Sequence

from desktop_agent.vocabulary.messages import Message, Role

INJECTED_BY = "undo"
REDO = "redo"
_MOST_FILES = 50
_HEAD = "The program notes: the person undid what calls of yours had changed."
_REDO_HEAD = "The program notes: the person redid what had been undone of your calls."
_AGAIN = "Look at these files again before you rely on what you remember of them."


def undo_note(again: Mapping[str, str], left: Iterable[str], undone: Iterable[str]) -> Message | None:
    """The note about files that are `again` something, those that were `left`, and what tools say they undid.

    None where nothing was changed.
    """
    return _note(_HEAD, INJECTED_BY, again, left, list(undone))


def redo_note(again: Mapping[str, str], left: Iterable[str]) -> Message | None:
    """The same about files that are as they were before they were undone."""
    return _note(_REDO_HEAD, REDO, again, left, [])


def _note(
    head: str, injected_by: str, again: Mapping[str, str], left: Iterable[str], said: Sequence[str]
) -> Message | None:
    if not again and not said:
        return None
    parts = [head]
    if again:
        parts.append(_listed("These files were put back:", [f"{_code(path)}: {what}" for path, what in again.items()]))
    kept = [_code(path) for path in dict.fromkeys(left) if path not in again]
    if kept:
        parts.append(_listed("These files were not put back, and are as they were left or changed since:", kept))
    if said:
        parts.append(_listed("This was taken back by tools:", said))
    if again:
        parts.append(_AGAIN)
    return Message.user("\n\n".join(parts)).model_copy(update={"injected_by": injected_by})


def is_undo_note(message: Message) -> bool:
    """Whether a message is such a note."""
    return message.role is Role.USER and message.injected_by in {INJECTED_BY, REDO}


def last_said(history: Sequence[Message]) -> Message | None:
    """The last message that is no such note: a note asks for no answer."""
    return next((each for each in reversed(history) if not is_undo_note(each)), None)


def _listed(head: str, lines: Sequence[str]) -> str:
    shown = [f"- {line}" for line in lines[:_MOST_FILES]]
    more = [f"- and {len(lines) - _MOST_FILES} more"] if len(lines) > _MOST_FILES else []
    return "\n".join([head, "", *shown, *more])


def _code(path: str) -> str:
    return f"`{path.replace('`', chr(39))}`"
