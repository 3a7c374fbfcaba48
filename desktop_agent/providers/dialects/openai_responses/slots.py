"""Whose an event is: the open output items of one answer, found by id or by their place in the output.

Servers differ: some number no items, some give one item several ids, some announce none before its end, and some use
one number, or one id, for all. Of the items of its own kind, the one whose id is known decides, then the number, then
what is open: a piece never goes to an item that cannot read it. Calls with different call ids are different calls.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.dialects.openai_responses.output_items import MAX_PARTS, ItemReader, item_reader_for
from desktop_agent.providers.part_builder import PartBuilder

_MAX_ITEMS = 1 << 16
# Pieces of both are named alike, and a server may settle which one it is only at the end.
_KIND_GROUPS = {"custom_tool_call": "function_call"}


@dataclass(slots=True, eq=False)
class Slot:
    """One output item. `number` says where it and its parts stand in the answer; see PartBuilder.part.

    `call_id` is empty where it is no call, or its call's id is not known yet; `end` is the item as its end said it.
    """

    place: int
    number: int
    kind: str
    reader: ItemReader
    ids: set[str] = field(default_factory=set[str])
    call_id: str = ""
    end: dict[str, Any] | None = None
    is_done: bool = False


class Slots:
    """All items of one answer, in the order in which they were opened."""

    def __init__(self, builder: PartBuilder) -> None:
        self._builder = builder
        self._all: list[Slot] = []
        self._by_id: dict[tuple[str, str], list[Slot]] = {}
        self._by_index: dict[tuple[str, int], Slot] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no item was opened."""
        return not self._all

    def find_or_open(self, item: dict[str, Any], index: int | None) -> Slot:
        """The slot of an item that begins: one that its own pieces opened before, or a new one."""
        kind, ids = _kind(item), ids_of(item)
        # What begins is not what is over, unless the call's own id says so.
        known = (slot for slot in self._named(item) if not slot.is_done or slot.call_id)
        slot = next(known, None)
        if slot is None and index is not None:
            guess = self._by_index.get((_kind_group(kind), index))
            slot = guess if guess is not None and not guess.ids and not guess.is_done else None
        return self._with_call_id(slot, item) if slot is not None else self.open_slot(kind, item, index, ids)

    def find_for_piece(self, kind: str, ids: tuple[str, ...], index: int | None) -> Slot | None:
        """The slot of a piece of an item of this kind."""
        known = [slot for each in ids for slot in self._by_id.get((_kind_group(kind), each), ())]
        numbered = self._numbered(kind, ids, index)
        if known:
            # The newest of several with one id that are open, unless the number says which.
            still = [slot for slot in known if not slot.is_done] or known
            return numbered if numbered in still else still[-1]
        if numbered is None and index is None:
            return next((each for each in reversed(self._all) if each.kind == kind and not each.is_done), None)
        return numbered

    def find_for_end(self, item: dict[str, Any], index: int | None) -> Slot:
        """The slot of an item that is over."""
        kind, ids = _kind(item), ids_of(item)
        named = self._named(item)
        slot = next((each for each in named if not each.is_done), None)
        slot = slot or next((each for each in named if each.call_id or each.end == item), None)
        if slot is None and not named:
            slot = self._numbered(kind, ids, index)
        if slot is None and index is None:
            unfinished = (each for each in self._all if each.kind == kind and not each.is_done)
            slot = next((each for each in unfinished if not (each.ids and ids)), None)
        slot = self._with_call_id(slot, item) if slot is not None else self.open_slot(kind, item, index, ids)
        slot.end = slot.end or item
        return slot

    def match_output(self, output: list[dict[str, Any]]) -> list[Slot]:
        """The slots of the final output, which may name items differently than their events did, or hold more."""
        found: list[Slot | None] = []
        for item in output:
            free = (self._if_free(each, item, found) for each in self._named(item))
            found.append(next(filter(None, free), None))
        for place, item in enumerate(output):
            if found[place] is None:
                numbered = self._by_index.get((_kind_group(_kind(item)), place))
                alike = (each for each in self._all if each.kind == _kind(item))
                guesses = (self._if_free(each, item, found) for each in (numbered, *alike))
                found[place] = next(filter(None, guesses), None)
        return [
            self.open_slot(_kind(item), item, place, ids_of(item)) if slot is None else slot
            for place, (item, slot) in enumerate(zip(output, found, strict=True))
        ]

    def open_slot(self, kind: str, item: dict[str, Any], index: int | None, ids: Iterable[str]) -> Slot:
        """A new slot."""
        place = len(self._all)
        number = _order_number(place if index is None else index, place)
        slot = Slot(place, number, kind, item_reader_for(kind, dict(item), number, self._builder))
        self._with_call_id(slot, item)
        self._all.append(slot)
        if index is not None:
            self._by_index[_kind_group(kind), index] = slot
        self.add_ids(slot, ids)
        return slot

    def add_ids(self, slot: Slot, ids: Iterable[str]) -> None:
        """The server calls this item so, too."""
        for each in ids:
            slot.ids.add(each)
            slots = self._by_id.setdefault((_kind_group(slot.kind), each), [])
            if slot not in slots:
                slots.append(slot)

    def unfinished(self) -> list[Slot]:
        """What is not done, in the order of the output."""
        return sorted((slot for slot in self._all if not slot.is_done), key=lambda slot: slot.number)

    @staticmethod
    def _if_free(slot: Slot | None, item: dict[str, Any], taken: Iterable[Slot | None]) -> Slot | None:
        is_free = slot is not None and slot.kind == _kind(item) and slot not in taken
        return slot if slot is not None and is_free and _is_possible(slot, item) else None

    def _named(self, item: dict[str, Any]) -> list[Slot]:
        """Those that an item's ids name, the surest first; a call has no other call id."""
        found = [slot for each in ids_of(item) for slot in self._by_id.get((_kind_group(_kind(item)), each), ())]
        return sorted((slot for slot in found if _is_possible(slot, item)), key=lambda slot: not slot.call_id)

    @staticmethod
    def _with_call_id(slot: Slot, item: dict[str, Any]) -> Slot:
        """The slot, which knows the item's call id from now on."""
        call_id = item.get("call_id")
        if not slot.call_id and isinstance(call_id, str):
            slot.call_id = call_id
        return slot

    def _numbered(self, kind: str, ids: Iterable[str], index: int | None) -> Slot | None:
        """By number; a new id on the number of a finished item is another item."""
        slot = None if index is None else self._by_index.get((_kind_group(kind), index))
        return None if slot is not None and slot.is_done and any(ids) else slot


def ids_of(item: dict[str, Any]) -> tuple[str, ...]:
    """The names of an item. Some servers name a call in its pieces by the call's id, not the item's."""
    return tuple(each for name in ("id", "call_id") if isinstance(each := item.get(name), str) and each)


def _is_possible(slot: Slot, item: dict[str, Any]) -> bool:
    """Whether it may be this item's: one call has one call id."""
    call_id = item.get("call_id")
    return not (slot.call_id and isinstance(call_id, str) and call_id and call_id != slot.call_id)


def _order_number(index: int, place: int) -> int:
    """The order of the output; of the opening, where servers number no items or all alike."""
    return (min(max(index, 0), _MAX_ITEMS) * _MAX_ITEMS + min(place, _MAX_ITEMS - 1)) * MAX_PARTS + 1


def _kind(item: dict[str, Any]) -> str:
    kind = item.get("type")
    return kind if isinstance(kind, str) else ""


def _kind_group(kind: str) -> str:
    return _KIND_GROUPS.get(kind, kind)
