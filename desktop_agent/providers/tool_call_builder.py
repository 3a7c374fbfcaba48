"""Build tool calls from pieces of name, id and arguments, from servers that disagree about whose piece is whose.

Which call a piece belongs to:
1. A piece without id, name and arguments is ignored; it opens no call.
2. The index selects the call; without an index the id; without either the last call. With an index and without a name,
a known id selects among the calls of that index.
3. Another name is another call. A piece without a name continues the selected call; it opens a new one only if it has
another id and the call is whole.
4. The same name with another id is another call, unless it brings a piece of arguments to a call that lacks some.
5. The same name without an id continues the call, unless it brings other arguments to a call that has all of its own:
then it is another call, or the same with more arguments. `{}` beside arguments is another one. If pieces came without
name and id, each name begins a call.

When a call is whole: at the end. Pieces without a call belong to the empty call before them, if they make one object
with it; if not, that call has failed: it never runs with empty arguments while others are left over.

What may be one call or two: neighbours of one name that no index, list or rule tells apart. If one has arguments, the
empty ones among them have failed, and if two are equal, the second has: what runs is right in either case, and the
model is told about the rest. If each has an id of its own they are separate calls, as from servers that give all calls
index 0; only those without any arguments, not even `{}`, have failed beside others.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, groupby, pairwise
from typing import Any

from desktop_agent.providers.transport.json_codec import dumps, is_strict_json, loads_object, repair_json, repair_text
from desktop_agent.types.blocks import JsonObject, ToolUse
from desktop_agent.types.provider_events import ToolArgsDelta

UNNAMED_TOOL = "unnamed"
# Servers that tell their calls apart by whole arguments alone send short ones; parsing long ones again and again
# would cost the square of their length.
MAX_REPARSED_SIZE = 64 * 1024
# No server takes tool names of more than 64 characters, or gives ids of more than a few dozen.
MAX_NAME_LENGTH = 256
# Arguments repeated more often than that are malformed.
_MAX_DOCUMENTS = 1_000
# Beyond so many calls in one answer, a call without an id gets one right away.
MAX_UNNAMED_CALLS = 1_000


@dataclass(slots=True, eq=False)
class _PartialCall:
    """One call being built. `id` is what the rest of the program sees; `wire_id` what the server calls it.

    `is_object`: its arguments came as an object, not as text. `is_named_again`: a piece without an id named it again.
    `is_beside_others`: pieces without a call follow it. `is_ambiguous`: it may be a piece of its neighbour.
    `list_number`: which list of several calls it came in. `is_begun`: a call certainly begins here. `ends_as_object`:
    its last non-blank piece ends like an object.
    """

    index: int | None
    place: int
    wire_id: str = ""
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    size: int = 0
    shown: int = -1  # pieces shown; -1 before the call itself was
    is_object: bool = False
    is_named_again: bool = False
    is_beside_others: bool = False
    is_ambiguous: bool = False
    is_begun: bool = False
    ends_as_object: bool = False
    list_number: int | None = None
    state: JsonObject | None = None
    metadata: JsonObject = field(default_factory=dict[str, Any])

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def parsed(self) -> JsonObject | None:
        # Parsed only if they end like an object: parsing at each piece would cost the square of the length.
        return loads_object(self.arguments) if self.ends_as_object else None

    @property
    def is_whole(self) -> bool:
        return self.is_object or (self.size <= MAX_REPARSED_SIZE and self.parsed is not None)

    def append(self, piece: str) -> None:
        self.pieces.append(piece)
        self.size += len(piece)
        text = piece.rstrip()
        self.ends_as_object = text.endswith("}") if text else self.ends_as_object

    def clear(self) -> None:
        self.pieces, self.shown, self.size, self.ends_as_object = [], min(self.shown, 0), 0, False


class ToolCallBuilder:
    """Builds the calls of one answer.

    Empty ids and names never overwrite. A call that is repeated, whole or with more arguments, is the same call.
    `ended_count` counts the finished calls. `provider` marks calls with metadata; `keeps_arguments` keeps arguments
    there that would be written differently here.
    """

    def __init__(self, provider: str, call_id: Callable[[], str], *, keeps_arguments: bool = False) -> None:
        self.ended_count = 0
        self.characters = 0  # of all arguments that came
        self._opened = 0
        self._is_name_a_head = False  # a server without ids that names only the first piece of a call
        self._provider = provider
        self._keeps_arguments = keeps_arguments
        self._new_id = call_id
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_wire_id: dict[str, _PartialCall] = {}
        self._used_ids: set[str] = set()
        self._handed_out: dict[str, tuple[str, JsonObject, str | None]] = {}  # by the wire's id

    def add_fragment(
        self,
        *,
        index: int | None = None,
        id: str | None = None,  # noqa: A002  the wire's own word
        name: str | None = None,
        arguments: Any = None,
        list_number: int | None = None,
    ) -> list[ToolArgsDelta]:
        """Add one piece and return what can be shown; `arguments` is a string to append, an object, or None.

        `list_number`: pieces of one list that have names are calls side by side.
        """
        if self.is_empty_fragment(index=index, id=id, name=name, arguments=arguments):
            return []
        wire_id = "" if id in (None, "null") else repair_text(id)
        name = repair_text(name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…") if name else ""
        piece = arguments if isinstance(arguments, str) else ""
        call = self._find_call(index, wire_id, name, arguments)
        call.list_number = list_number if call.shown < 0 and not call.pieces else call.list_number
        if wire_id and not call.wire_id:
            call.wire_id = wire_id
            self._by_wire_id[wire_id] = call
            call.id = call.id or self._public_id(wire_id)
        self._is_name_a_head = self._is_name_a_head or bool(call.name and not (name or wire_id or call.wire_id))
        call.is_named_again = call.is_named_again or bool(name and call.pieces and not (wire_id or call.wire_id))
        if name and not call.name:
            call.name = name
        if arguments is not None and not isinstance(arguments, str):
            piece = dumps(arguments).decode()
            if not call.is_whole or _is_repeat(call.parsed, arguments):
                call.clear()
                call.is_object = True
        elif piece:
            if loads_object(piece) is not None and call.is_whole and _is_repeat(call.parsed, piece):
                call.clear()
            call.is_object = False
        if piece:
            call.append(piece)
        self.characters += len(piece)
        if not call.id and (call.size > MAX_REPARSED_SIZE or self._opened > MAX_UNNAMED_CALLS):
            # Without an id its pieces would be neither shown nor counted.
            call.id = self._new_id()
        return self._visible_deltas(call)

    def is_empty_fragment(self, *, index: int | None, id: str | None, name: str | None, arguments: Any) -> bool:  # noqa: A002
        """Whether this is filler, as gateways write beside text. Blanks may belong to an open call."""
        if name or id not in (None, "", "null"):
            return False
        if arguments in (None, ""):
            return True
        is_open = bool(self._calls) if index is None else index in self._by_index
        return not is_open and _is_empty(arguments)

    def continues_last(self, name: str | None, arguments: Any) -> bool:
        """Whether this repeats the last call."""
        last = self._calls[-1] if self._calls else None
        return last is not None and last.name == name and _is_repeat(last.parsed if last.pieces else {}, arguments)

    def has_call(self, name: str, arguments: Any) -> bool:
        """Whether an equal call is open; ids are ignored, for servers that repeat calls at the end under other ids."""
        text = arguments if isinstance(arguments, str) else dumps(arguments or {}).decode()
        wanted = loads_object(text or "{}")
        # Long ones are parsed only against long ones: once for each repetition.
        longest = max(MAX_REPARSED_SIZE, 2 * len(text))
        candidates = [call.arguments for call in self._calls if call.name == name and call.size <= longest]
        return text in candidates or (
            wanted is not None and any(loads_object(candidate or "{}") == wanted for candidate in candidates)
        )

    def attach_state(self, wire_id: str | None, state: JsonObject) -> None:
        """Attach replay state to the call with this id, or to the last one."""
        call = self._by_wire_id.get(wire_id or "") or (self._calls[-1] if self._calls else None)
        if call is not None:
            call.state = {**(call.state or {}), **state}

    def attach_metadata(self, wire_id: str | None, metadata: JsonObject) -> None:
        """Attach metadata to the call with this id, or to the last one."""
        call = self._by_wire_id.get(wire_id or "") or (self._calls[-1] if self._calls else None)
        if call is not None:
            call.metadata.update(repair_json(metadata))

    def end(self, *, cut: bool = False, index: int | None = None) -> list[tuple[JsonObject | None, ToolUse]]:
        """Return all open calls by index, each with its replay state, and forget them; with an index only that call.

        Empty arguments are `{}`. What is no JSON object is malformed and kept as it came; after a cut such a call is
        dropped, and so is one with empty arguments: its arguments had not begun.
        """
        calls = [call for call in self._calls if index is None or call.index == index]
        calls.sort(key=lambda call: call.place if call.index is None else call.index)
        ended: list[tuple[JsonObject | None, ToolUse]] = []
        for call in (
            calls if cut else _mark_ambiguous(list(chain.from_iterable(map(_split_call, _assign_orphans(calls)))))
        ):
            block = self._block(call, cut=cut)
            if block is not None and not self._was_handed_out(call, block):
                ended.append((call.state, block))
        self._forget(calls)
        self.ended_count += len(ended)
        return ended

    def drop(self, index: int) -> None:
        """Forget the open call with this index, as if it had never begun."""
        calls = [call for call in self._calls if call.index == index]
        self._used_ids.difference_update(call.id for call in calls)
        self._forget(calls)

    def _was_handed_out(self, call: _PartialCall, block: ToolUse) -> bool:
        """Whether this repeats a finished call: the same id, name and input in one answer must not run twice."""
        if not call.wire_id:
            return False
        content = (block.name, block.input, block.malformed)
        return (
            self._handed_out.setdefault(call.wire_id, content) is not content
            and self._handed_out[call.wire_id] == content
        )

    def _block(self, call: _PartialCall, *, cut: bool) -> ToolUse | None:
        text = call.arguments
        arguments = loads_object(text)
        if arguments is None and not cut:
            text = _only_reading(call.pieces, may_be_two=call.is_named_again) or text
            arguments = loads_object(text)
        if arguments is None and not text.strip() and not cut:
            arguments = {}
        if call.is_ambiguous or (call.is_beside_others and not arguments):
            arguments = None
        if cut and (arguments is None or not call.name):
            return None
        name, call_id = call.name or UNNAMED_TOOL, call.id or self._new_id()
        if (
            self._keeps_arguments
            and arguments is not None
            and text != dumps(arguments).decode()
            and is_strict_json(text)
        ):
            call.metadata["arguments"] = repair_text(text)
        return ToolUse(
            id=call_id,
            name=name,
            input={} if arguments is None or not call.name else arguments,
            malformed=repair_text(text) if arguments is None or not call.name else None,
            provider=self._provider if call.metadata else "",
            metadata=call.metadata,
        )

    def _forget(self, calls: list[_PartialCall]) -> None:
        forgotten = set(calls)
        self._calls = [call for call in self._calls if call not in forgotten]
        self._by_index = {index: call for index, call in self._by_index.items() if call not in forgotten}
        self._by_wire_id = {wire_id: call for wire_id, call in self._by_wire_id.items() if call not in forgotten}

    def _find_call(self, index: int | None, wire_id: str, name: str, arguments: Any) -> _PartialCall:
        known = self._by_wire_id.get(wire_id) if wire_id else None
        if index is not None:
            call = self._by_index.get(index)
            if known is not None and not name and known.index == index:
                return known
            if call is not None and not self._is_different_call(call, wire_id, name, arguments):
                return call
            is_known = known is not None and self._is_same(known, index, name, arguments)
            return known if known is not None and is_known and known is not call else self._open(index)
        call = known or (self._calls[-1] if self._calls else None)
        is_new = call is None or self._is_different_call(call, wire_id, name, arguments)
        return self._open(None) if call is None or is_new else call

    def _is_different_call(self, call: _PartialCall, wire_id: str, name: str, arguments: Any) -> bool:
        """Whether a piece that selects this call by index, id or place belongs to another one all the same."""
        has_other_id = bool(wire_id and call.wire_id and wire_id != call.wire_id)
        if name and call.name and name != call.name:
            return True
        if not name:
            return has_other_id and not (
                call.name and (not call.parsed or _is_empty(arguments) or self._repeats_call(call, arguments))
            )
        if has_other_id:
            is_piece = isinstance(arguments, str) and bool(arguments) and loads_object(arguments) is None
            return not (is_piece and call.name and not call.is_whole)
        if call.name and self._is_name_a_head and not (wire_id or call.wire_id):
            return True
        if not call.name or _is_blank(arguments):
            return False
        if wire_id or call.wire_id:
            # A server that gives ids gives the next call one, too; arguments tell apart two calls of one id.
            return _as_object(arguments) is not None and bool(call.parsed) and not self._repeats_call(call, arguments)
        # No ids at all: a repeated name with whole arguments.
        is_said_again = _is_empty(arguments) and not call.parsed
        return call.is_whole and not is_said_again and not self._repeats_call(call, arguments)

    @staticmethod
    def _is_same(call: _PartialCall, index: int, name: str, arguments: Any) -> bool:
        """Whether a call's id under another index means that call."""
        return call.index == index or not name or (name == call.name and _is_repeat(call.parsed, arguments))

    @staticmethod
    def _repeats_call(call: _PartialCall, arguments: Any) -> bool:
        """Whether arguments with a name but no id repeat those of this call. Empty ones may be another's."""
        return bool(call.parsed) and _is_repeat(call.parsed, arguments)

    def _open(self, index: int | None) -> _PartialCall:
        self._opened += 1
        call = _PartialCall(index, self._opened, is_begun=self._is_name_a_head)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _public_id(self, wire_id: str) -> str:
        """Return the server's own id, unless it was used twice in this answer or is too long."""
        is_usable = len(wire_id) <= MAX_NAME_LENGTH and wire_id not in self._used_ids
        chosen = wire_id if is_usable else self._new_id()
        self._used_ids.add(chosen)
        return chosen

    def _visible_deltas(self, call: _PartialCall) -> list[ToolArgsDelta]:
        """Return pieces not shown yet; none before the id is known, because the window finds the call by its id."""
        if not call.id or call.shown == len(call.pieces):
            return []
        fresh = "".join(call.pieces[max(call.shown, 0) :])
        call.shown = len(call.pieces)
        return [ToolArgsDelta(call.id, call.name or None, repair_text(fresh))]


def _assign_orphans(calls: list[_PartialCall]) -> list[_PartialCall]:
    """Give pieces that have neither id nor name, under numbers of their own, to the call before them."""
    assigned: list[_PartialCall] = []
    strays: list[_PartialCall] = []
    for call in [*calls, None]:
        if call is not None and not call.name and not call.wire_id and assigned:
            strays.append(call)
            continue
        owner = assigned[-1] if assigned else None
        if strays and owner is not None:
            pieces = [*owner.pieces, *(piece for stray in strays for piece in stray.pieces)]
            if owner.name and loads_object("".join(owner.pieces) or "{}") in (None, {}) and _is_object_of(pieces):
                assigned[-1] = replace(owner, pieces=pieces, size=sum(map(len, pieces)))
            else:
                assigned += strays
            strays = []
        if call is not None:
            assigned.append(call)
    if any(not call.name for call in assigned):
        for call in assigned:
            call.is_beside_others = True
    return assigned


def _is_object_of(pieces: list[str]) -> bool:
    return bool(loads_object("".join(pieces))) or _only_reading(pieces) is not None


def _split_call(call: _PartialCall) -> list[_PartialCall]:
    """Split a call of a server without ids into one call for each JSON document."""
    if not call.is_named_again:
        return [call]
    text = call.arguments
    if loads_object(text) is not None or _only_reading(call.pieces, may_be_two=True) is not None:
        return [call]
    documents = _split_json_documents(text)
    if len(documents) < 2 or any(loads_object(document) is None for document in documents):
        return [call]
    first, *later_calls = (replace(call, pieces=[document], metadata=dict(call.metadata)) for document in documents)
    return [first, *(replace(later_call, id="") for later_call in later_calls)]


def _mark_ambiguous(calls: list[_PartialCall]) -> list[_PartialCall]:
    """Mark calls that may be a repetition of their neighbour, and return all."""
    group_numbers = dict(zip(map(id, calls), accumulate(call.is_begun for call in calls), strict=True))
    for _, group in groupby(calls, key=lambda call: (call.index, call.name, group_numbers[id(call)])):
        neighbours = list(group)
        of_one_list = neighbours[0].list_number is not None and len({call.list_number for call in neighbours}) == 1
        if of_one_list:
            continue
        have_own_ids = all(call.wire_id for call in neighbours) and len({call.wire_id for call in neighbours}) == len(
            neighbours
        )
        parsed = [loads_object(call.arguments.strip() or "{}") for call in neighbours]
        is_any_full = any(parsed)
        known: set[bytes] = set()
        for call, arguments in zip(neighbours, parsed, strict=True):
            key = b"" if arguments is None else dumps(arguments)
            is_less = is_any_full and (_is_blank(call.arguments) if have_own_ids else arguments == {})
            call.is_ambiguous = is_less or (key in known and not have_own_ids)
            known.add(key)
    return calls


def _is_blank(arguments: Any) -> bool:
    return arguments is None or (isinstance(arguments, str) and not arguments.strip())


def _is_empty(arguments: Any) -> bool:
    return _is_blank(arguments) or arguments == {} or (isinstance(arguments, str) and arguments.strip() == "{}")


def _as_object(arguments: Any) -> JsonObject | None:
    if isinstance(arguments, str):
        return loads_object(arguments or "{}") if len(arguments) <= MAX_REPARSED_SIZE else None
    return {} if arguments is None else loads_object(dumps(arguments).decode())


def _is_repeat(before: JsonObject | None, arguments: Any) -> bool:
    """Whether these arguments contain those that came before; `{}` may become anything."""
    new = None if before is None else _as_object(arguments)
    return before is not None and new is not None and _contains(new, before)


def _contains(new: JsonObject, old: JsonObject) -> bool:
    return all(name in new and new[name] == value for name, value in old.items())


def _only_reading(pieces: list[str], *, may_be_two: bool = False) -> str | None:
    """Return the arguments in pieces that are not one object, if they can be read in one way only; else None.

    Each piece is the whole text so far; or documents follow each other, each containing the one before. Empty ones do
    not count, unless they may be another call's.
    """
    growing = [piece for piece in pieces if piece.strip() not in ("", "{}")]
    if growing and pieces and growing[0].strip() == "{":
        growing = [piece for piece in pieces if piece.strip()]
    is_growing = len(growing) > 1 and all(later.startswith(earlier) for earlier, later in pairwise(growing))
    if is_growing and loads_object(growing[-1]) is not None:
        return growing[-1]
    documents = _split_json_documents("".join(pieces))
    objects = [(text, value) for text in documents if (value := loads_object(text))]
    if not documents or any(loads_object(text) is None for text in documents):
        return None
    if any(not _contains(later, earlier) for (_, earlier), (_, later) in pairwise(objects)):
        return None
    if may_be_two and 0 < len(objects) < len(documents):
        return None
    return objects[-1][0] if objects else "{}"


def _split_json_documents(text: str) -> list[str]:
    """Return the JSON documents that follow each other; none if anything else is between them."""
    documents: list[str] = []
    reader = json.JSONDecoder(strict=False)
    position = 0
    while position < len(text) and len(documents) <= _MAX_DOCUMENTS:
        if text[position].isspace():
            position += 1
            continue
        try:
            _, end = reader.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        documents.append(text[position:end])
        position = end
    return documents if position >= len(text) else []
