"""A waiting call in one line for a notification, and whether it may be allowed from there.

A notification is small and seen in passing: a call that it cannot show completely and exactly is decided in the window,
which shows everything.
"""

from desktop_agent.types.lookalikes import find_lookalike
from desktop_agent.types.tool_calls import CommandPreview, DiffPreview, Effect
from ui.bridge.permissions import PendingApproval
from ui.bridge.waiting_calls import WaitingDetails
from ui.style.text import labelled, one_line, truncate
from ui.style.text_display import in_logical_order
from ui.style.tool_labels import tool_title

MAX_LENGTH = 120
_BETWEEN = " · "
_MARKUP = frozenset("<>&")
"""Characters that a notification server may read as markup, even if it does not announce that."""
_UNSEEN_EFFECTS = frozenset({Effect.EXECUTE, Effect.NETWORK, Effect.DELEGATE})


def name_call(call: PendingApproval) -> str:
    """Return the tool and what it is about, such as a path, on one line of at most MAX_LENGTH characters."""
    title = tool_title(call.tool)
    return truncate(one_line(labelled(title, call.subject) if call.subject else title, MAX_LENGTH), MAX_LENGTH)


def describe_call(call: PendingApproval) -> str | None:
    """Return the tool and all its arguments on one line of at most MAX_LENGTH characters; None if they do not fit."""
    parts = _parts(call)
    exact = labelled(tool_title(call.tool), _BETWEEN.join(parts)) if parts else tool_title(call.tool)
    # The exact line stays as it is only if it has no line breaks, no spaces in a row and nothing hidden.
    is_exact = one_line(exact, len(exact)) == exact == in_logical_order(exact) and len(exact) <= MAX_LENGTH
    return exact if parts is not None and is_exact else None


def _parts(call: PendingApproval) -> list[str] | None:
    """Return the main argument, then each other one with its name; None if a line may not show the whole call."""
    arguments = call.arguments
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    length = sum(len(name) + len(value) for name, value in texts.items())
    if len(texts) < len(arguments) or length > MAX_LENGTH or not all(texts.values()):
        return None
    if len(texts) > 1 and any(_BETWEEN.strip() in text for pair in texts.items() for text in pair):
        return None
    subject = next((name for name, value in texts.items() if len(texts) == 1 or value == call.subject), "")
    further = [f"{name}: {value}" for name, value in texts.items() if name != subject]
    return [*filter(None, (texts.get(subject),)), *further]


def may_allow_unseen(details: WaitingDetails) -> bool:
    """Return whether its line says all that the approval dialog would: no part missing, no risk, no outside content."""
    call, line = details.call, describe_call(details.call)
    return (
        line is not None
        and not _MARKUP.intersection(line)
        and all(
            find_lookalike(word, is_name=True) is None for word in (call.tool, *" ".join(_parts(call) or ()).split())
        )
        and not details.has_outside_content
        # Only the dialog shows why the person is asked, the words of a server, and that nothing is stored.
        and not (call.reasons or call.untrusted_sources or call.server or call.server_description or call.is_in_memory)
        and not _has_risk(call)
    )


def _has_risk(call: PendingApproval) -> bool:
    match call.preview:
        case CommandPreview() as command:
            is_marked = any(part.risks or part.lookalikes for part in command.parts)
            return is_marked or not command.parts or not command.understood or bool(command.hosts)
        case DiffPreview(before=before):
            # Only the diff shows what a file loses.
            return before is not None or bool(_UNSEEN_EFFECTS & call.effects)
        case None:
            return bool(_UNSEEN_EFFECTS & call.effects)
        case _:
            return True
