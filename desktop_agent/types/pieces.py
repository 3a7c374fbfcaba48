"""Pieces of a streamed text: neighbouring pieces are joined into one event, and taken apart again."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, cast, get_args

from desktop_agent.types.engine_events import Envelope, Event, ToolProgress
from desktop_agent.types.provider_events import ContentDelta, ThinkingDelta, ToolArgsDelta

Piece = ContentDelta | ThinkingDelta | ToolArgsDelta | ToolProgress
PIECES: tuple[type[Piece], ...] = get_args(Piece)


# What neighbouring pieces of one text have in common.
_KEYS: dict[type[Event], Callable[[Any], Hashable]] = {
    ContentDelta: attrgetter("phase", "part"),
    ThinkingDelta: attrgetter("part"),
    ToolArgsDelta: attrgetter("id"),
    ToolProgress: attrgetter("id"),
}


def text_key(event: Event) -> Hashable:
    """Return what neighbouring pieces of one text have in common; None for an event that is no piece."""
    key = _KEYS.get(type(event))
    return None if key is None else (type(event), key(event))


def text_of(piece: Piece) -> str:
    """Return the text of a piece."""
    return piece.fragment if isinstance(piece, ToolArgsDelta) else piece.text


def append_text(piece: Piece, more: str) -> Piece:
    """Return the piece with more text at its end."""
    if isinstance(piece, ToolArgsDelta):
        return replace(piece, fragment=piece.fragment + more)
    return replace(piece, text=piece.text + more)


def joined(events: Sequence[Event]) -> Iterator[tuple[Event, tuple[Event, ...]]]:
    """Yield the events in order, neighbouring pieces of one text as one event.

    Each comes with the pieces that were joined into it; with none where it came as it is.
    """
    start, count = 0, len(events)
    while start < count:
        event, end = events[start], start + 1
        kind = type(event)
        key = _KEYS.get(kind)
        if key is not None:
            common = key(event)
            while end < count and type(events[end]) is kind and key(events[end]) == common:
                end += 1
        if end - start > 1:
            pieces = tuple(events[start:end])
            yield _join(pieces), pieces
        else:
            yield event, ()
        start = end


def _join(pieces: Sequence[Event]) -> Event:
    first = pieces[0]
    if isinstance(first, ToolArgsDelta):
        fragments = cast("Sequence[ToolArgsDelta]", pieces)
        # The name of a call may come late.
        name = next((piece.name for piece in fragments if piece.name), None)
        return replace(first, name=name, fragment="".join([piece.fragment for piece in fragments]))
    texts = cast("Sequence[ContentDelta]", pieces)
    return replace(texts[0], text="".join([piece.text for piece in texts]))


def single_envelopes(envelope: Envelope, pieces: Sequence[Event]) -> Sequence[Envelope]:
    """Return an envelope for each of the pieces that are joined in this one, whose number is that of the last."""
    if not pieces:
        return (envelope,)
    first = envelope.seq - len(pieces) + 1
    return [replace(envelope, seq=seq, event=piece) for seq, piece in enumerate(pieces, first)]
