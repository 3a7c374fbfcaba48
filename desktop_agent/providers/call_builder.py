"""Calls whose name, id and arguments come in pieces, from servers that disagree about which piece is whose."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.transport.json_text import dumps, is_strict, loads_object, mended, mended_json
from desktop_agent.vocabulary.blocks import JsonObject, ToolUse
from desktop_agent.vocabulary.provider_events import ToolArgsDelta

NAMELESS = "unnamed"
# Servers that tell their calls apart by whole arguments alone send short ones; looking again and again at long ones
# would cost the square of their length.
LONGEST_LOOKED_AT = 64 * 1024
# No server takes tool names of more than 64 characters, or gives ids of more than a few dozen.
LONGEST_NAME = 256
# From so many calls of one answer on, one without an id is given one right away.
MOST_UNNAMED = 1_000


@dataclass(slots=True, eq=False)
class _Call:
    """One call in the making. `id` is what the rest of the program sees; `wire_id` what the server calls it."""

    index: int | None
    place: int
    wire_id: str = ""
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    size: int = 0
    shown: int = -1  # pieces shown; -1 before the call itself was
    state: JsonObject | None = None
    metadata: JsonObject = field(default_factory=dict[str, Any])

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        return self.size <= LONGEST_LOOKED_AT and loads_object(self.arguments) is not None


class CallBuilder:
    """Assembles the calls of one answer.

    Whose piece it is: by index; a new id on a known index opens a new call; without an index by id; else a name opens
    a call; else the last one goes on. Empty ids and names never overwrite. `ended` counts the calls handed out.
    `provider` is what calls with metadata are marked with; `keeps_arguments` puts arguments that would be written
    differently here into it.
    """

    def __init__(self, provider: str, call_id: Callable[[], str], *, keeps_arguments: bool = False) -> None:
        self.ended = 0
        self.characters = 0  # of all arguments that came
        self._opened = 0
        self._provider = provider
        self._keeps_arguments = keeps_arguments
        self._new_id = call_id
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_wire_id: dict[str, _Call] = {}
        self._used_ids: set[str] = set()

    def fragment(
        self,
        *,
        index: int | None = None,
        id: str | None = None,  # noqa: A002  the wire's own word
        name: str | None = None,
        arguments: Any = None,
    ) -> list[ToolArgsDelta]:
        """Take one piece; `arguments` is a string to append, an object to take, or None. Returns what can be shown."""
        wire_id = "" if id in (None, "null") else mended(id)
        name = name or ""
        piece = arguments if isinstance(arguments, str) else ""
        call = self._whose(index, wire_id, name, has_arguments=bool(piece) or isinstance(arguments, dict))
        if wire_id and not call.wire_id:
            call.wire_id = wire_id
            self._by_wire_id[wire_id] = call
            call.id = call.id or self._public_id(wire_id)
        if name and not call.name:
            call.name = mended(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…")
        if arguments is not None and not isinstance(arguments, str):
            call.pieces, call.shown = [dumps(arguments).decode()], min(call.shown, 0)
            call.size = len(call.pieces[0])
        elif piece:
            call.pieces.append(piece)
            call.size += len(piece)
        self.characters += len(piece) or (arguments is not None and not isinstance(arguments, str))
        if not call.id and (call.size > LONGEST_LOOKED_AT or self._opened > MOST_UNNAMED):
            # Nobody would see the pieces of a call that is never named, nor count them.
            call.id = self._new_id()
        return self._showable(call)

    def attach(self, wire_id: str | None, state: JsonObject) -> None:
        """Replay state of the call with this id, or of the last one."""
        call = self._by_wire_id.get(wire_id or "") or (self._calls[-1] if self._calls else None)
        if call is not None:
            call.state = {**(call.state or {}), **state}

    def keep(self, wire_id: str | None, metadata: JsonObject) -> None:
        """What the call with this id, or the last one, carries with it."""
        call = self._by_wire_id.get(wire_id or "") or (self._calls[-1] if self._calls else None)
        if call is not None:
            call.metadata.update(mended_json(metadata))

    def end(self, *, cut: bool = False, index: int | None = None) -> list[tuple[JsonObject | None, ToolUse]]:
        """All open calls in the order of their indices, each with its replay state, and forget them.

        With an index only that call.

        Empty arguments are `{}`. What is no JSON object is malformed and kept as it came; after a cut such a call is
        dropped, and so is one with empty arguments: it had not begun to say what it wants.
        """
        calls = [call for call in self._calls if index is None or call.index == index]
        calls.sort(key=lambda call: call.place if call.index is None else call.index)
        ended: list[tuple[JsonObject | None, ToolUse]] = []
        for call in calls:
            block = self._block(call, cut=cut)
            if block is not None:
                ended.append((call.state, block))
        self._forget(calls)
        self.ended += len(ended)
        return ended

    def drop(self, index: int) -> None:
        """Forget the open call with this index, as if it had never begun."""
        calls = [call for call in self._calls if call.index == index]
        self._used_ids.difference_update(call.id for call in calls)
        self._forget(calls)

    def _block(self, call: _Call, *, cut: bool) -> ToolUse | None:
        text = call.arguments
        arguments = loads_object(text)
        if arguments is None and not text.strip() and not cut:
            arguments = {}
        if cut and (arguments is None or not call.name):
            return None
        name, call_id = call.name or NAMELESS, call.id or self._new_id()
        if self._keeps_arguments and arguments is not None and text != dumps(arguments).decode() and is_strict(text):
            call.metadata["arguments"] = mended(text)
        return ToolUse(
            id=call_id,
            name=name,
            input={} if arguments is None or not call.name else arguments,
            malformed=mended(text) if arguments is None or not call.name else None,
            provider=self._provider if call.metadata else "",
            metadata=call.metadata,
        )

    def _forget(self, calls: list[_Call]) -> None:
        gone = set(calls)
        self._calls = [call for call in self._calls if call not in gone]
        self._by_index = {index: call for index, call in self._by_index.items() if call not in gone}
        self._by_wire_id = {wire_id: call for wire_id, call in self._by_wire_id.items() if call not in gone}

    def _whose(self, index: int | None, wire_id: str, name: str, *, has_arguments: bool) -> _Call:
        if index is not None:
            call = self._by_index.get(index)
            if call is None or self._is_another(call, wire_id, name, has_arguments=has_arguments):
                known = self._by_wire_id.get(wire_id) if wire_id else None
                return known if known is not None and known.index == index else self._open(index)
            return call
        if wire_id:
            return self._by_wire_id.get(wire_id) or self._open(None)
        last = self._calls[-1] if self._calls else None
        if last is None:
            return self._open(None)
        if not name or (name == last.name and last.pieces and not last.is_whole):
            return last
        return self._open(None)

    def _is_another(self, call: _Call, wire_id: str, name: str, *, has_arguments: bool) -> bool:
        """Whether a piece with the index of this call belongs to another one all the same."""
        if wire_id and call.wire_id:
            return wire_id != call.wire_id
        if not name or wire_id:
            return False
        # No ids at all and the same index for every call: a name that comes again, beside whole arguments.
        return bool(call.name) and (name != call.name or (has_arguments and call.is_whole))

    def _open(self, index: int | None) -> _Call:
        self._opened += 1
        call = _Call(index, self._opened)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _public_id(self, wire_id: str) -> str:
        """The server's own id, unless it used it twice in this answer or it is a novel."""
        is_usable = len(wire_id) <= LONGEST_NAME and wire_id not in self._used_ids
        chosen = wire_id if is_usable else self._new_id()
        self._used_ids.add(chosen)
        return chosen

    def _showable(self, call: _Call) -> list[ToolArgsDelta]:
        """Pieces not shown yet; none before the id is known, because the id is how a screen finds the call."""
        if not call.id or call.shown == len(call.pieces):
            return []
        fresh = "".join(call.pieces[max(call.shown, 0) :])
        call.shown = len(call.pieces)
        return [ToolArgsDelta(call.id, call.name or None, mended(fresh))]
