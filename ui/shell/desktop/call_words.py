"""A waiting call in one line for a notification, and whether it may be allowed from there.

A notification is small, and seen in passing: what it does not show whole, as it is and without any doubt is decided in
the window, which shows everything.
"""

import json
from dataclasses import dataclass

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.lookalikes import find_lookalike
from desktop_agent.types.tool_calls import CommandPreview, DiffPreview, Effect
from ui.bridge.permissions import PendingApproval
from ui.bridge.waiting_calls import WaitingDetails
from ui.style.text import labelled, one_line, truncate
from ui.style.text_display import in_logical_order
from ui.style.tool_labels import tool_title

MAX_LENGTH = 120
_MARKUP = frozenset("<>&")
"""What a server may read as markup that does not say so."""
_UNSEEN_EFFECTS = frozenset({Effect.EXECUTE, Effect.NETWORK, Effect.DELEGATE})


@dataclass(frozen=True, slots=True)
class CallWords:
    """A call on one line. `is_whole`: nothing of it is left out or shown as anything else than it is."""

    line: str
    is_whole: bool


def name_call(call: PendingApproval) -> str:
    """Return the tool and what it is about, such as a path, on one line of at most MAX_LENGTH characters."""
    title = tool_title(call.tool)
    return truncate(one_line(labelled(title, call.subject) if call.subject else title, MAX_LENGTH), MAX_LENGTH)


def describe_call(call: PendingApproval) -> CallWords:
    """Return the tool and its arguments on one line of at most MAX_LENGTH characters."""
    if not _is_short(call.arguments):
        return CallWords(name_call(call), is_whole=False)
    exact = f"{tool_title(call.tool)}: {_arguments(call.arguments)}"
    # The exact line stays as it is only if it has no line breaks, no spaces in a row and nothing hidden.
    shown = one_line(exact, len(exact))
    is_whole = shown == exact and len(exact) <= MAX_LENGTH and in_logical_order(exact) == exact
    return CallWords(truncate(shown, MAX_LENGTH), is_whole)


def may_allow_unseen(details: WaitingDetails) -> bool:
    """Return whether its line says all that the approval dialog would: whole, without a risk, nothing from outside."""
    call, words = details.call, describe_call(details.call)
    return (
        words.is_whole
        and not _MARKUP.intersection(words.line)
        and all(find_lookalike(word, is_name=True) is None for word in (call.tool, *_arguments(call.arguments).split()))
        and not details.has_outside_content
        # Why the person is asked, the words of a server, and that nothing is stored stand only in the dialog.
        and not (call.reasons or call.untrusted_sources or call.server or call.server_description or call.is_in_memory)
        and not _has_risk(call)
    )


def _has_risk(call: PendingApproval) -> bool:
    match call.preview:
        case CommandPreview() as command:
            is_marked = any(part.risks or part.lookalikes for part in command.parts)
            return is_marked or not command.parts or not command.understood or bool(command.hosts)
        case DiffPreview(before=before):
            # What a file loses stands in the diff alone.
            return before is not None or bool(_UNSEEN_EFFECTS & call.effects)
        case None:
            return bool(_UNSEEN_EFFECTS & call.effects)
        case _:
            return True


def _arguments(arguments: JsonObject) -> str:
    """Return the arguments as JSON; a single text as it is."""
    values = list(arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(arguments, ensure_ascii=False)


def _is_short(arguments: JsonObject) -> bool:
    """Return whether all of it may fit, without writing it down: arguments may have megabytes."""
    room, left = MAX_LENGTH, list[object]([arguments])
    while left and room >= 0:
        value = left.pop()
        if isinstance(value, dict):
            if len(value) > room:  # pyright: ignore[reportUnknownArgumentType]  # JSON
                return False
            left += [part for pair in value.items() for part in pair]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(value, list):
            if len(value) > room:  # pyright: ignore[reportUnknownArgumentType]
                return False
            left += value
        room -= len(value) if isinstance(value, str) else 1
    return room >= 0
