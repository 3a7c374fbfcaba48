"""Read the events of the Responses API, and find which open output item each belongs to.

Only the type is a required field. Items may be open side by side, so each has its own parts. The last event repeats the
whole output: what was shown is not shown again, what was lost is shown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.data_files import load_table
from desktop_agent.providers.dialects.openai_chat import response_stream as chat
from desktop_agent.providers.dialects.openai_responses.output_items import (
    CALLS,
    MAX_PARTS,
    OUTPUT_ORDER,
    ItemReader,
    MessageReader,
    item_reader_for,
)
from desktop_agent.providers.dialects.response_stream import BaseFrameReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport import error_responses
from desktop_agent.providers.transport.json_codec import (
    is_array,
    is_object,
    object_in,
    objects_in,
    repair_json,
    text_in,
)
from desktop_agent.providers.transport.sse import DONE, Frame
from desktop_agent.types.errors import Sentence, ServerFailed
from desktop_agent.types.provider_events import StopReason, Usage

_MAX_ITEMS = 1 << 16
# Their pieces have the same event names, and possibly only the end shows which one it is.
_KIND_GROUPS = {"custom_tool_call": "function_call"}


@dataclass(slots=True, eq=False)
class Slot:
    """One output item. `number` places it and its parts in the answer; see PartBuilder.part.

    `call_id` is empty if it is no call, or its call's id is not known yet; `end` is the item as its end event had it.
    """

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
        self._open_count = 0
        self._is_in_order = True

    @property
    def is_empty(self) -> bool:
        return not self._all

    def find_or_open(self, item: dict[str, Any], index: int | None) -> Slot:
        """Return the slot of an item that begins: one that its own pieces opened before, or a new one."""
        kind, ids = _kind(item), ids_of(item)
        # A new item is not a finished one, unless it has the same call id.
        known = (slot for slot in self._named(item) if not slot.is_done or slot.call_id)
        slot = next(known, None)
        if slot is None and index is not None:
            guess = self._by_index.get((_kind_group(kind), index))
            slot = guess if guess is not None and not guess.ids and not guess.is_done else None
        return self._with_call_id(slot, item) if slot is not None else self.open_slot(kind, item, index, ids)

    def find_for_piece(self, kind: str, ids: tuple[str, ...], index: int | None) -> Slot | None:
        """Return the slot of a piece of an item of this kind."""
        known = [slot for item_id in ids for slot in self._by_id.get((_kind_group(kind), item_id), ())]
        numbered = self._numbered(kind, ids, index)
        if known:
            # Of several open ones with one id: the numbered one, else the newest.
            open_slots = [slot for slot in known if not slot.is_done] or known
            return numbered if numbered in open_slots else open_slots[-1]
        if numbered is None and index is None:
            return next((slot for slot in reversed(self._all) if slot.kind == kind and not slot.is_done), None)
        return numbered

    def find_for_end(self, item: dict[str, Any], index: int | None) -> Slot:
        """Return the slot of an item that is over."""
        kind, ids = _kind(item), ids_of(item)
        named = self._named(item)
        slot = next((candidate for candidate in named if not candidate.is_done), None)
        slot = slot or next((candidate for candidate in named if candidate.call_id or candidate.end == item), None)
        if slot is None and not named:
            slot = self._numbered(kind, ids, index)
        if slot is None and index is None:
            unfinished = (candidate for candidate in self._all if candidate.kind == kind and not candidate.is_done)
            slot = next((candidate for candidate in unfinished if not (candidate.ids and ids)), None)
        slot = self._with_call_id(slot, item) if slot is not None else self.open_slot(kind, item, index, ids)
        slot.end = slot.end or item
        return slot

    def match_output(self, output: list[dict[str, Any]]) -> list[Slot]:
        """Return the slots of the final output, which may have more items, or name them differently."""
        slots: list[Slot | None] = []
        for item in output:
            free = (self._if_free(candidate, item, slots) for candidate in self._named(item))
            slots.append(next(filter(None, free), None))
        for index, item in enumerate(output):
            if slots[index] is None:
                numbered = self._by_index.get((_kind_group(_kind(item)), index))
                alike = (candidate for candidate in self._all if candidate.kind == _kind(item))
                guesses = (self._if_free(candidate, item, slots) for candidate in (numbered, *alike))
                slots[index] = next(filter(None, guesses), None)
        return [
            self.open_slot(_kind(item), item, index, ids_of(item)) if slot is None else slot
            for index, (item, slot) in enumerate(zip(output, slots, strict=True))
        ]

    def open_slot(self, kind: str, item: dict[str, Any], index: int | None, ids: Iterable[str]) -> Slot:
        """Open a new slot."""
        count = len(self._all)
        number = _order_number(count if index is None else index, count)
        slot = Slot(number, kind, item_reader_for(kind, dict(item), number, self._builder))
        self._with_call_id(slot, item)
        is_next = not self._all or number > self._all[-1].number
        self._is_in_order = self._is_in_order and is_next and not self._open_count
        self._open_count += 1
        self._all.append(slot)
        if index is not None:
            self._by_index[_kind_group(kind), index] = slot
        self.add_ids(slot, ids)
        return slot

    def add_ids(self, slot: Slot, ids: Iterable[str]) -> None:
        """Add ids by which the server names this item."""
        for item_id in ids:
            slot.ids.add(item_id)
            slots = self._by_id.setdefault((_kind_group(slot.kind), item_id), [])
            if slot not in slots:
                slots.append(slot)

    def finish(self, slot: Slot, item: dict[str, Any] | None) -> None:
        """Record that an item is done; `item` is its final form, if it was received."""
        slot.end = slot.end or item
        slot.is_done = True
        self._open_count -= 1

    @property
    def output_order(self) -> list[str]:
        """Return the ids of all items in the order of the output; none if they arrived in that order."""
        if self._is_in_order:
            return []
        slots = sorted(self._all, key=lambda slot: slot.number)
        return [item_id for slot in slots for item_id in sorted({*slot.ids, *ids_of(slot.end or {})})]

    def unfinished(self) -> list[Slot]:
        """Return what is not done, in the order of the output."""
        return sorted((slot for slot in self._all if not slot.is_done), key=lambda slot: slot.number)

    @staticmethod
    def _if_free(slot: Slot | None, item: dict[str, Any], assigned: Iterable[Slot | None]) -> Slot | None:
        is_free = slot is not None and slot.kind == _kind(item) and slot not in assigned
        return slot if slot is not None and is_free and _is_possible(slot, item) else None

    def _named(self, item: dict[str, Any]) -> list[Slot]:
        """Return the slots that an item's ids name, the surest first; a call has no other call id."""
        slots = [slot for item_id in ids_of(item) for slot in self._by_id.get((_kind_group(_kind(item)), item_id), ())]
        return sorted((slot for slot in slots if _is_possible(slot, item)), key=lambda slot: not slot.call_id)

    @staticmethod
    def _with_call_id(slot: Slot, item: dict[str, Any]) -> Slot:
        call_id = item.get("call_id")
        if not slot.call_id and isinstance(call_id, str):
            slot.call_id = call_id
        return slot

    def _numbered(self, kind: str, ids: Iterable[str], index: int | None) -> Slot | None:
        """Return a slot by number; a new id with the number of a finished item is another item."""
        slot = None if index is None else self._by_index.get((_kind_group(kind), index))
        return None if slot is not None and slot.is_done and any(ids) else slot


def ids_of(item: dict[str, Any]) -> tuple[str, ...]:
    """Return the ids of an item. In its pieces some servers name a call by the call's id, not the item's."""
    return tuple(item_id for name in ("id", "call_id") if isinstance(item_id := item.get(name), str) and item_id)


def _is_possible(slot: Slot, item: dict[str, Any]) -> bool:
    """Whether the slot may be this item's: one call has one call id."""
    call_id = item.get("call_id")
    return not (slot.call_id and isinstance(call_id, str) and call_id and call_id != slot.call_id)


def _order_number(index: int, count: int) -> int:
    """Order by the output; by the opening, if servers number no items or all of them equally."""
    return (min(max(index, 0), _MAX_ITEMS) * _MAX_ITEMS + min(count, _MAX_ITEMS - 1)) * MAX_PARTS + 1


def _kind(item: dict[str, Any]) -> str:
    return text_in(item, "type")


def _kind_group(kind: str) -> str:
    return _KIND_GROUPS.get(kind, kind)


def parse_usage(data: dict[str, Any]) -> Usage:
    """Parse tokens and cost. What is missing, negative or not a number is unknown.

    The object is that of Chat Completions under other names; output includes reasoning in both.
    """
    return chat.parse_usage(
        {
            **data,
            "prompt_tokens": data.get("input_tokens"),
            "completion_tokens": data.get("output_tokens"),
            "prompt_tokens_details": data.get("input_tokens_details"),
            "completion_tokens_details": data.get("output_tokens_details"),
        }
    )


_PREFIX = "response."
_TEXT = "response.output_text.delta"
_NO_ITEM = object()
_STARTS = frozenset({"created", "queued", "in_progress"})
_END_SENTENCES: Mapping[str, Sentence] = {
    "failed": Sentence("the server says that the answer failed"),
    "cancelled": Sentence("the server says that the answer was cancelled"),
}
_STATUS_BY_END: Mapping[str, str] = {
    "completed": "completed",
    "incomplete": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
    "done": "completed",  # OpenRouter's word
}
_ITEM_BY_PIECE: Mapping[str, str] = load_table(__name__, "step_types.toml")["item_by_piece"]
_ITEM_DONE = "output_item.done"
_ITEM_CUT = "output_item.cut"  # ours: the answer ended without the item's own end
_REPORTED_FIELDS = ("input_transformations", "prompt_cache_diagnostics")


class ResponsesReader(BaseFrameReader):
    """Reads the frames of one answer."""

    end_mark = "response.completed"

    def __init__(self, builder: PartBuilder, headers: Mapping[str, str]) -> None:
        super().__init__(builder, headers)
        self._slots = Slots(builder)
        self._is_marked = False
        self._refused = False
        self._ending: dict[str, Any] = {}
        # The text part that grew last: nearly every event is one more piece of it.
        self._text_id: Any = _NO_ITEM
        self._text_part: Any = _NO_ITEM
        self._text = builder.main.text
        self._text_pieces: list[str] = []

    def read(self, frame: Frame) -> bool:
        """Read one frame."""
        name, data = frame
        try:
            if data["type"] == _TEXT and data["item_id"] == self._text_id and data["content_index"] == self._text_part:
                piece = data["delta"]
                if piece.__class__ is str:
                    self._text_pieces.append(piece)
                    self._text(piece)
                    return True
        except (KeyError, TypeError):
            pass
        self._text_id = _NO_ITEM
        if data is DONE:
            # Gateways write the end mark of Chat Completions here too, some of them in place of the last event.
            self._is_marked = not self._slots.is_empty
            self.done = self.done or (self._is_marked and not self._slots.unfinished())
        else:
            self._read(name, data)
        return False

    @property
    def has_finished(self) -> bool:
        # The server may not have ended every item.
        return self.done or self._is_marked

    @property
    def has_ended(self) -> bool:
        return self.done

    def end(self) -> None:
        """End the builder with the server's reason, corrected by the content."""
        if not self._ending:
            self._finish_items([], was_cut=False)
        reason, raw = self._reason()
        details = {name: self._ending[name] for name in _REPORTED_FIELDS if self._ending.get(name)}
        if order := self._slots.output_order:
            details[OUTPUT_ORDER] = order
        self._builder.end(reason, raw, repair_json(self._redact_key(details)) if details else None)

    def _read(self, name: str, data: Any) -> None:
        if not is_object(data):
            if is_array(data) or name == "error":
                self._fail(data)
            return
        kind = data.get("type")
        event = kind.removeprefix(_PREFIX) if isinstance(kind, str) else ""
        if name == "error" or event == "error" or _is_error(data):
            self._fail(data)
        elif isinstance(kind, str) and kind.startswith(_PREFIX):
            self.recognised = True
            self._event(event, data)
        elif data.get("object") == "response":
            # The whole answer in place of a stream; some servers fill in no status.
            self.recognised = True
            self._end_of_answer("failed" if data.get("error") else "completed", data)

    def _event(self, event: str, data: dict[str, Any]) -> None:
        if event in _STARTS:
            self._builder.set_response_id(object_in(data, "response").get("id"))
        elif event in _STATUS_BY_END:
            self._end_of_answer(_STATUS_BY_END[event], object_in(data, "response"))
        elif event == "output_item.added":
            self._feed_item(self._slots.find_or_open(object_in(data, "item"), _index(data)), event, data)
        elif event == _ITEM_DONE:
            item = object_in(data, "item")
            slot = self._slots.find_for_end(item, _index(data))
            is_cut_call = slot.kind in CALLS and item.get("status") == "incomplete"
            # Only the end of the answer shows whether such a call was cut.
            self._feed_item(slot, "output_item.added" if is_cut_call else event, data)
        elif event in _ITEM_BY_PIECE:
            self._read_piece(event, data)

    def _read_piece(self, event: str, data: dict[str, Any]) -> None:
        item_id = data.get("item_id")
        ids = (item_id,) if isinstance(item_id, str) and item_id else ()
        kind, index = _ITEM_BY_PIECE[event], _index(data)
        slot = self._slots.find_for_piece(kind, ids, index)
        if slot is None:
            if event.startswith("content_part"):
                return  # its kind shows only with the pieces
            slot = self._slots.open_slot(kind, {}, index, ids)
        self._feed_item(slot, event, data)
        reader = slot.reader
        if event == "output_text.delta" and ids and not slot.is_done and isinstance(reader, MessageReader):
            number = data.get("content_index")
            part = reader.part_for(number) if type(number) is int else None
            if part is not None and not part.is_closed:
                self._text_id, self._text_part = item_id, number
                self._text, self._text_pieces = part.open.text, part.pieces

    def _feed_item(self, slot: Slot, event: str, data: dict[str, Any]) -> None:
        if not slot.is_done:
            self._builder.open_item(slot.number)
            self._apply_event(slot, event, data)

    def _apply_event(self, slot: Slot, event: str, data: dict[str, Any]) -> None:
        if event not in (_ITEM_DONE, _ITEM_CUT):
            slot.reader.feed(event, data)
            return
        item = object_in(data, "item") or None
        if item is not None and item.get("type") not in (slot.kind, None):
            slot.reader.finish(None, cut=True)  # the item turned out to be of another type
            slot.kind = str(item["type"])
            slot.reader = item_reader_for(slot.kind, item, slot.number, self._builder)
        slot.reader.finish(item, cut=event == _ITEM_CUT)
        self._slots.finish(slot, item)
        self._builder.end_item(slot.number)
        if isinstance(slot.reader, MessageReader):
            self._refused = self._refused or slot.reader.refused

    def _end_of_answer(self, event_status: str, response: dict[str, Any]) -> None:
        status = text_in(response, "status") or event_status
        self._builder.set_response_id(response.get("id"))
        if status in _END_SENTENCES:
            error = response.get("error")
            self._fail({"error": error} if error else {}, _END_SENTENCES[status])
            return
        if status not in ("completed", "incomplete"):
            return
        usage = response.get("usage")
        if usage and is_object(usage):
            self._builder.usage = parse_usage(usage)
        self._ending = {**response, "status": status}
        output = response.get("output")
        self._finish_items(
            [output] if is_object(output) else objects_in(response, "output"), was_cut=status == "incomplete"
        )
        self.done = True

    def _finish_items(self, output: list[dict[str, Any]], *, was_cut: bool) -> None:
        """End every item: by its own event, by the final output, or without either."""
        event = _ITEM_CUT if was_cut else _ITEM_DONE
        items = {slot.number: item for slot, item in zip(self._slots.match_output(output), output, strict=True)}
        for slot in self._slots.unfinished():
            self._feed_item(slot, event, {"item": items.get(slot.number)})

    def _fail(self, data: Any, otherwise: Sentence | None = None) -> None:
        if data or otherwise is None:
            super()._fail(data)
        elif self.failure is None:
            self.failure = ServerFailed(otherwise, request_id=error_responses.request_id(self._headers))

    def _reason(self) -> tuple[StopReason, str | None]:
        """Return the stop reason and the server's term. An incomplete answer was cut, so no call of it runs."""
        status = str(self._ending["status"]) if self._ending else None
        if status is None or status == "completed":
            refused = self._refused and not self._builder.calls.ended_count
            return (StopReason.REFUSAL if refused else StopReason.END_TURN), status
        cause = text_in(object_in(self._ending, "incomplete_details"), "reason")
        raw = f"{status}:{cause}" if cause else status
        return (StopReason.CONTENT_FILTER if cause == "content_filter" else StopReason.MAX_TOKENS), raw


def _is_error(data: dict[str, Any]) -> bool:
    """Whether this is an error without a type of its own, as gateways send it."""
    if isinstance(data.get("type"), str) and str(data["type"]).startswith(_PREFIX):
        return False
    is_answer = data.get("object") == "response"
    return data.get("object") == "error" or (not is_answer and bool(data.get("error") or "detail" in data))


def _index(data: dict[str, Any]) -> int | None:
    index = data.get("output_index")
    return index if type(index) is int else None
