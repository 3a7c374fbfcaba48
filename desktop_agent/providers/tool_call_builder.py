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

When a call is whole: at the end. Pieces without a call belong to the empty call before them, if they form one object
with it; if not, that call has failed: it never runs with empty arguments while others are unused.

What may be one call or two: neighbours of one name that no index, list or rule distinguishes. If one has arguments, the
empty ones among them have failed, and if two are equal, the second has: what runs is right in either case, and the
model is told about the rest. If each has its own id they are separate calls, as from servers that give all calls
index 0; only those without any arguments, not even `{}`, have failed beside others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, groupby
from operator import attrgetter
from typing import Any

from desktop_agent.providers.tool_arguments import (
    MAX_REPARSED_SIZE,
    as_object,
    is_blank,
    is_empty,
    is_piece,
    is_repeat,
    only_reading,
    split_objects,
)
from desktop_agent.providers.transport.json_codec import dumps, is_strict_json, loads_object, repair_json, repair_text
from desktop_agent.types.blocks import JsonObject, ToolUse
from desktop_agent.types.provider_events import ToolArgsDelta

UNNAMED_TOOL = "unnamed"
# No server takes tool names of more than 64 characters, or gives ids of more than a few dozen.
MAX_NAME_LENGTH = 256
# Beyond so many calls in one answer, a call without an id gets one right away.
MAX_UNNAMED_CALLS = 1_000


@dataclass(slots=True, eq=False)
class _PartialCall:
    """One call being built. `id` is what the rest of the program sees; `wire_id` what the server calls it.

    `is_object`: its arguments came as an object, not as text. `is_named_again`: a piece without an id named it again.
    `is_beside_others`: pieces without a call follow it. `is_ambiguous`: it may be a piece of its neighbour.
    `is_incomplete`: its server reported that.
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
    is_incomplete: bool = False
    is_begun: bool = False
    ends_as_object: bool = False
    list_number: int | None = None
    state: JsonObject | None = None
    metadata: JsonObject = field(default_factory=dict[str, Any])

    @property
    def order(self) -> int:
        return self.place if self.index is None else self.index

    @property
    def is_untouched(self) -> bool:
        return self.shown < 0 and not self.pieces

    @property
    def is_orphan(self) -> bool:
        return not self.name and not self.wire_id

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

    @property
    def reading(self) -> str | None:
        """The text of its arguments, if they are one object or can be read as one in one way only."""
        text = self.arguments
        is_object = loads_object(text) is not None
        return text if is_object else only_reading(self.pieces, may_be_two=self.is_named_again)

    def has_other_id(self, wire_id: str) -> bool:
        return bool(wire_id and self.wire_id) and wire_id != self.wire_id

    def is_contradicted_by(self, arguments: Any) -> bool:
        """Whether it has all of its arguments, at least one, and these differ."""
        parsed = self.parsed
        return bool(parsed) and not is_repeat(parsed, arguments)

    def is_repeated_by(self, arguments: Any) -> bool:
        """Whether these arguments are its own, perhaps with more of them; or there are none on either side."""
        parsed = self.parsed
        return is_repeat(parsed, arguments) if parsed else is_empty(arguments)

    def add(self, arguments: Any) -> int:
        """Add a piece of text, or an object, and return its length. Repeated whole arguments replace those before."""
        if isinstance(arguments, str):
            piece = arguments
            is_replaced = not is_piece(piece) and self.is_whole and is_repeat(self.parsed, piece)
            self.is_object = False
        else:
            piece = dumps(arguments).decode()
            is_replaced = not self.is_whole or is_repeat(self.parsed, arguments)
            self.is_object = self.is_object or is_replaced
        if is_replaced:
            self.pieces, self.shown, self.size, self.ends_as_object = [], min(self.shown, 0), 0, False
        self.pieces.append(piece)
        self.size += len(piece)
        text = piece.rstrip()
        self.ends_as_object = text.endswith("}") if text else self.ends_as_object
        return len(piece)


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
        self._is_name_a_head = False  # a server without ids names only the first piece of a call
        self._provider = provider
        self._keeps_arguments = keeps_arguments
        self._new_id = call_id
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_wire_id: dict[str, _PartialCall] = {}
        self._used_ids: set[str] = set()
        self._returned: dict[str, tuple[str, JsonObject, str | None]] = {}  # by the wire's id

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
        name = _bounded_name(name)
        call = self._find_call(index, wire_id, name, arguments)
        if call.is_untouched:
            call.list_number = list_number
        self._identify(call, wire_id, name)
        if arguments not in (None, ""):
            self.characters += call.add(arguments)
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
        return not is_open and is_empty(arguments)

    def continues_last(self, name: str | None, arguments: Any) -> bool:
        """Whether this repeats the last call."""
        last = self._last
        return last is not None and last.name == name and is_repeat(last.parsed if last.pieces else {}, arguments)

    def has_call(self, name: str, arguments: Any) -> bool:
        """Whether an equal call is open; ids are ignored, for servers that repeat calls at the end under other ids."""
        text = (arguments if isinstance(arguments, str) else dumps(arguments or {}).decode()) or "{}"
        expected = loads_object(text)
        # Long ones are parsed only against long ones: once for each repetition.
        longest = max(MAX_REPARSED_SIZE, 2 * len(text))
        candidates = [call.arguments or "{}" for call in self._calls if call.name == name and call.size <= longest]
        return text in candidates or (expected is not None and expected in map(loads_object, candidates))

    def attach_state(self, wire_id: str | None, state: JsonObject) -> None:
        """Attach replay state, of which a block is placed right before the call, to this call or the last one."""
        call = self._by_wire_id.get(wire_id or "") or self._last
        if call is not None:
            call.state = {**(call.state or {}), **state}

    def attach_metadata(self, wire_id: str | None, metadata: JsonObject) -> None:
        """Attach metadata to the call with this id, or to the last one."""
        call = self._by_wire_id.get(wire_id or "") or self._last
        if call is not None:
            call.metadata.update(repair_json(metadata))

    def mark_incomplete(self, index: int) -> None:
        """Record that the server reports the call with this index as incomplete: it must not run."""
        for call in self._calls:
            call.is_incomplete |= call.index == index

    def end(self, *, cut: bool = False, index: int | None = None) -> list[tuple[JsonObject | None, ToolUse]]:
        """Return all open calls by index, each with its replay state, and forget them; with an index only that call.

        Empty arguments are `{}`. What is no JSON object is malformed and kept unchanged, and so is a call without a
        name or one that its server reports as incomplete. After a cut such a call is dropped, and so is one with empty
        arguments: its arguments had not begun.
        """
        calls = [call for call in self._calls if index is None or call.index == index]
        calls.sort(key=attrgetter("order"))
        ended: list[tuple[JsonObject | None, ToolUse]] = []
        for call in calls if cut else _separate_calls(calls):
            block = self._block(call, cut=cut)
            if block is not None and not self._was_returned(call, block):
                ended.append((call.state, block))
        self._forget(calls)
        self.ended_count += len(ended)
        return ended

    def drop(self, index: int) -> None:
        """Forget the open call with this index, as if it had never begun."""
        calls = [call for call in self._calls if call.index == index]
        self._used_ids.difference_update(call.id for call in calls)
        self._forget(calls)

    def _was_returned(self, call: _PartialCall, block: ToolUse) -> bool:
        """Whether this repeats a finished call: the same id, name and input in one answer must not run twice."""
        if not call.wire_id:
            return False
        content = (block.name, block.input, block.malformed)
        earlier = self._returned.setdefault(call.wire_id, content)
        return earlier is not content and earlier == content

    def _block(self, call: _PartialCall, *, cut: bool) -> ToolUse | None:
        text, arguments = _final_arguments(call, cut=cut)
        metadata = call.metadata
        if self._keeps_arguments and _is_written_differently(text, arguments):
            metadata["arguments"] = repair_text(text)
        if not call.name:
            arguments = None
        if cut and arguments is None:
            return None
        return ToolUse(
            id=call.id or self._new_id(),
            name=call.name or UNNAMED_TOOL,
            input=arguments or {},
            malformed=repair_text(text) if arguments is None else None,
            provider=self._provider if metadata else "",
            metadata=metadata,
        )

    def _forget(self, calls: list[_PartialCall]) -> None:
        forgotten = set(calls)
        self._calls = [call for call in self._calls if call not in forgotten]
        self._by_index = {index: call for index, call in self._by_index.items() if call not in forgotten}
        self._by_wire_id = {wire_id: call for wire_id, call in self._by_wire_id.items() if call not in forgotten}

    @property
    def _last(self) -> _PartialCall | None:
        return self._calls[-1] if self._calls else None

    def _find_call(self, index: int | None, wire_id: str, name: str, arguments: Any) -> _PartialCall:
        selected = self._select_call(index, wire_id, name)
        if selected and not self._is_different_call(selected, wire_id, name, arguments):
            return selected
        known = self._by_wire_id.get(wire_id)
        if known and known is not selected and self._is_same(known, index, name, arguments):
            return known
        return self._open(index)

    def _select_call(self, index: int | None, wire_id: str, name: str) -> _PartialCall | None:
        """Return the call that a piece selects by its index, id or place."""
        known = self._by_wire_id.get(wire_id)
        if index is None:
            return known or self._last
        if known and known.index == index and not name:
            return known
        return self._by_index.get(index)

    def _is_different_call(self, call: _PartialCall, wire_id: str, name: str, arguments: Any) -> bool:
        """Whether a piece that selects this call by index, id or place still belongs to another one."""
        has_other_id = call.has_other_id(wire_id)
        if not call.name:
            return has_other_id
        if not name:
            return has_other_id and not is_empty(arguments) and call.is_contradicted_by(arguments)
        if name != call.name:
            return True
        if has_other_id:
            return not is_piece(arguments) or call.is_whole
        return self._is_next_call(call, wire_id, arguments)

    def _is_next_call(self, call: _PartialCall, wire_id: str, arguments: Any) -> bool:
        """Whether a piece that names the call again, without another id, begins another one."""
        has_id = wire_id or call.wire_id
        if self._is_name_a_head and not has_id:
            return True
        if is_blank(arguments):
            return False
        if has_id:
            # A server that gives ids gives the next call one, too; arguments distinguish two calls of one id.
            return as_object(arguments) is not None and call.is_contradicted_by(arguments)
        # No ids at all: a repeated name with whole arguments.
        return call.is_whole and not call.is_repeated_by(arguments)

    @staticmethod
    def _is_same(call: _PartialCall, index: int | None, name: str, arguments: Any) -> bool:
        """Whether a call's id under another index means that call."""
        return call.index == index or not name or (name == call.name and is_repeat(call.parsed, arguments))

    def _open(self, index: int | None) -> _PartialCall:
        self._opened += 1
        call = _PartialCall(index, self._opened, is_begun=self._is_name_a_head)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _identify(self, call: _PartialCall, wire_id: str, name: str) -> None:
        """Give the call the name and id of a piece; record what that shows about this server's way to name calls."""
        if wire_id and not call.wire_id:
            call.wire_id = wire_id
            self._by_wire_id[wire_id] = call
            call.id = call.id or self._public_id(wire_id)
        if not call.wire_id:
            self._is_name_a_head |= bool(call.name and not name)
            call.is_named_again |= bool(name and call.pieces)
        call.name = call.name or name

    def _public_id(self, wire_id: str) -> str:
        """Return the server's own id, unless it was used twice in this answer or is too long."""
        is_usable = len(wire_id) <= MAX_NAME_LENGTH and wire_id not in self._used_ids
        public_id = wire_id if is_usable else self._new_id()
        self._used_ids.add(public_id)
        return public_id

    def _visible_deltas(self, call: _PartialCall) -> list[ToolArgsDelta]:
        """Return pieces not shown yet; none before the id is known, because the window finds the call by its id."""
        if not call.id or call.shown == len(call.pieces):
            return []
        unseen = "".join(call.pieces[max(call.shown, 0) :])
        call.shown = len(call.pieces)
        return [ToolArgsDelta(call.id, call.name or None, repair_text(unseen))]


def _separate_calls(calls: list[_PartialCall]) -> list[_PartialCall]:
    """Return the calls that these pieces form, once all of them are there."""
    return _mark_ambiguous(list(chain.from_iterable(map(_split_call, _assign_orphans(calls)))))


def _assign_orphans(calls: list[_PartialCall]) -> list[_PartialCall]:
    """Give pieces that have neither id nor name, but their own indices, to the call before them."""
    families: list[list[_PartialCall]] = []
    for call in calls:
        if families and call.is_orphan:
            families[-1].append(call)
        else:
            families.append([call])
    assigned = [call for family in families for call in _adopt_orphans(*family)]
    are_beside_others = not all(call.name for call in assigned)
    for call in assigned:
        call.is_beside_others = are_beside_others
    return assigned


def _adopt_orphans(owner: _PartialCall, *orphans: _PartialCall) -> list[_PartialCall]:
    pieces = [piece for call in (owner, *orphans) for piece in call.pieces]
    if orphans and owner.name and not loads_object(owner.arguments or "{}") and _is_object_of(pieces):
        return [replace(owner, pieces=pieces, size=sum(map(len, pieces)))]
    return [owner, *orphans]


def _is_object_of(pieces: list[str]) -> bool:
    return bool(loads_object("".join(pieces))) or only_reading(pieces) is not None


def _split_call(call: _PartialCall) -> list[_PartialCall]:
    """Split a call of a server without ids into one call for each JSON document."""
    documents = split_objects(call.arguments) if call.is_named_again and call.reading is None else []
    if len(documents) < 2:
        return [call]
    first, *later_calls = (replace(call, pieces=[document], metadata=dict(call.metadata)) for document, _ in documents)
    return [first, *(replace(later_call, id="") for later_call in later_calls)]


def _mark_ambiguous(calls: list[_PartialCall]) -> list[_PartialCall]:
    """Mark calls that may be a repetition of their neighbour, and return all."""
    group_numbers = dict(zip(map(id, calls), accumulate(call.is_begun for call in calls), strict=True))
    for _, group in groupby(calls, key=lambda call: (call.index, call.name, group_numbers[id(call)])):
        neighbours = list(group)
        list_numbers = {call.list_number for call in neighbours}
        if len(list_numbers) > 1 or None in list_numbers:
            _mark_neighbours(neighbours)
    return calls


def _mark_neighbours(calls: list[_PartialCall]) -> None:
    have_own_ids = len({call.wire_id for call in calls} - {""}) == len(calls)
    parsed = [loads_object(call.arguments.strip() or "{}") for call in calls]
    is_any_full = any(parsed)
    seen: set[bytes] = set()
    for call, arguments in zip(calls, parsed, strict=True):
        key = dumps(arguments)
        is_less = is_any_full and (is_blank(call.arguments) if have_own_ids else arguments == {})
        call.is_ambiguous = is_less or (key in seen and not have_own_ids)
        seen.add(key)


def _final_arguments(call: _PartialCall, *, cut: bool) -> tuple[str, JsonObject | None]:
    """Return the text of a call's arguments, and its value: None if that is no object, or not certain."""
    text = (None if cut else call.reading) or call.arguments
    arguments = loads_object(text if cut or text.strip() else "{}")
    is_doubtful = call.is_incomplete or call.is_ambiguous or (call.is_beside_others and not arguments)
    return text, None if is_doubtful else arguments


def _bounded_name(name: str | None) -> str:
    if not name:
        return ""
    return repair_text(name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…")


def _is_written_differently(text: str, arguments: JsonObject | None) -> bool:
    return arguments is not None and text != dumps(arguments).decode() and is_strict_json(text)
