"""What the model reads of an undoing or a redoing: a message in the history that nobody wrote."""

from collections.abc import Iterable, Mapping, Sequence

from desktop_agent.vocabulary.messages import Message, Role

UNDO_AUTHOR = "undo"
REDO_AUTHOR = "redo"
_MAX_FILES = 50
_UNDO_HEAD = "The program notes: the person undid what calls of yours had changed."
_REDO_HEAD = "The program notes: the person redid what had been undone of your calls."
_READ_AGAIN = "Look at these files again before you rely on what you remember of them."


def undo_note(again: Mapping[str, str], left: Iterable[str], undone: Iterable[str]) -> Message | None:
    """The note about files that are `again` something, those that were `left`, and what tools say they undid.

    None where nothing was changed.
    """
    return _build_note(_UNDO_HEAD, UNDO_AUTHOR, again, left, list(undone))


def redo_note(again: Mapping[str, str], left: Iterable[str]) -> Message | None:
    """The same about files that are as they were before they were undone."""
    return _build_note(_REDO_HEAD, REDO_AUTHOR, again, left, [])


def _build_note(
    head: str, injected_by: str, again: Mapping[str, str], left: Iterable[str], said: Sequence[str]
) -> Message | None:
    if not again and not said:
        return None
    parts = [head]
    if again:
        parts.append(
            _bullet_list("These files were put back:", [f"{_as_code(path)}: {what}" for path, what in again.items()])
        )
    kept = [_as_code(path) for path in dict.fromkeys(left) if path not in again]
    if kept:
        parts.append(_bullet_list("These files were not put back, and are as they were left or changed since:", kept))
    if said:
        parts.append(_bullet_list("This was taken back by tools:", said))
    if again:
        parts.append(_READ_AGAIN)
    return Message.user("\n\n".join(parts)).model_copy(update={"injected_by": injected_by})


def is_undo_note(message: Message) -> bool:
    """Whether a message is such a note."""
    return message.role is Role.USER and message.injected_by in {UNDO_AUTHOR, REDO_AUTHOR}


def last_message_but_undo_notes(history: Sequence[Message]) -> Message | None:
    """The last message that is no such note: a note asks for no answer."""
    return next((each for each in reversed(history) if not is_undo_note(each)), None)


def _bullet_list(head: str, lines: Sequence[str]) -> str:
    shown = [f"- {line}" for line in lines[:_MAX_FILES]]
    more = [f"- and {len(lines) - _MAX_FILES} more"] if len(lines) > _MAX_FILES else []
    return "\n".join([head, "", *shown, *more])


def _as_code(path: str) -> str:
    return f"`{path.replace('`', chr(39))}`"
