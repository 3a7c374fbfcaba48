"""The events of the Responses API to fragments: says whose each piece is, assembles nothing.

No field is required but the type: servers that offer the same API leave out numbers, ids and whole events. Items may
be open side by side (llama.cpp ends its reasoning behind all the text: tools/server/server-task.cpp), so each has parts
of its own and is shown as it comes. The last event repeats the whole output: what was shown is not shown again, what
was lost is.
"""

from collections.abc import Callable, Mapping
from typing import Any

from desktop_agent.providers.dialects.openai_responses.output_items import CALLS, MessageReader, item_reader_for
from desktop_agent.providers.dialects.openai_responses.slots import Slot, Slots
from desktop_agent.providers.dialects.openai_responses.usage import parse_usage
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport import failures
from desktop_agent.providers.transport.json_text import is_array, is_object, object_in, objects_in, repair_json
from desktop_agent.providers.transport.sse import DONE, Frame
from desktop_agent.vocabulary.errors import ProviderError, ServerFailed
from desktop_agent.vocabulary.provider_events import StopReason

_PREFIX = "response."
_TEXT = "response.output_text.delta"
_NO_ITEM = object()
_STARTS = frozenset({"created", "queued", "in_progress"})
_STATUS_BY_END: Mapping[str, str] = {
    "completed": "completed",
    "incomplete": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
    "done": "completed",  # OpenRouter's word
}
# Which item the pieces belong to; everything else is progress that is not shown.
_ITEM_BY_PIECE: Mapping[str, str] = {
    "content_part.added": "message",
    "content_part.done": "message",
    "output_text.delta": "message",
    "output_text.done": "message",
    "output_text.annotation.added": "message",
    "refusal.delta": "message",
    "refusal.done": "message",
    "reasoning_summary_text.delta": "reasoning",
    "reasoning_summary_text.done": "reasoning",
    "reasoning_text.delta": "reasoning",
    "reasoning_text.done": "reasoning",
    "function_call_arguments.delta": "function_call",
    "function_call_arguments.done": "function_call",
}
_ITEM_DONE = "output_item.done"
_ITEM_CUT = "output_item.cut"  # ours: the answer ended without the item's own end
_REPORTED_FIELDS = ("input_transformations", "prompt_cache_diagnostics")


class FrameReader:
    """Reads the frames of one answer into a PartBuilder; see answering.FrameReader.

    `redact_key` takes the key out of an error that a server wrote.
    """

    def __init__(
        self, builder: PartBuilder, headers: Mapping[str, str], redact_key: Callable[[Any], Any] = lambda data: data
    ) -> None:
        self.done = False
        self.failure: ProviderError | None = None
        self.recognised = False
        self.end_mark = "response.completed"
        self._builder = builder
        self._headers = headers
        self._redact_key = redact_key
        self._slots = Slots(builder)
        self._is_over = False
        self._is_marked = False
        self._refused = False
        self._ending: dict[str, Any] = {}
        # The text part that grew last: nearly every event is one more piece of it.
        self._text_id: Any = _NO_ITEM
        self._text_part: Any = _NO_ITEM
        self._text = builder.text
        self._text_pieces: list[str] = []

    def read(self, frame: Frame) -> None:
        """Fold one frame in."""
        name, data = frame
        try:
            if data["type"] == _TEXT and data["item_id"] == self._text_id and data["content_index"] == self._text_part:
                piece = data["delta"]
                if piece.__class__ is str:
                    self._text_pieces.append(piece)
                    self._text(piece)
                    return
        except (KeyError, TypeError):
            pass
        self._text_id = _NO_ITEM
        if data is DONE:
            # Gateways write Chat Completions' end mark here, too, some of them in place of the last event.
            self._is_marked = not self._slots.is_empty
            self.done = self.done or (self._is_marked and not self._slots.unfinished())
        else:
            self._read(name, data)

    @property
    def has_finished(self) -> bool:
        """Whether the server said that nothing more comes, though it may not have ended every item."""
        return self.done or self._is_marked

    @property
    def has_ended(self) -> bool:
        """Whether the last event came, or the end mark behind items that all ended."""
        return self.done

    def end(self) -> bool:
        """The clean end. False when it was said already."""
        if self._is_over:
            return False
        self._is_over = True
        if not self._ending:
            self._finish_items([], was_cut=False)
        reason, raw = self._reason()
        told = {name: self._ending[name] for name in _REPORTED_FIELDS if self._ending.get(name)}
        self._builder.end(reason, raw, repair_json(self._redact_key(told)) if told else None)
        return True

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
            # Only the end of the answer says whether such a call was cut.
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
                return  # of what, only the pieces themselves will tell
            slot = self._slots.open_slot(kind, {}, index, ids)
        self._feed_item(slot, event, data)
        fold = slot.reader
        if event == "output_text.delta" and ids and not slot.is_done and isinstance(fold, MessageReader):
            number = data.get("content_index")
            part = fold.part_for(number) if type(number) is int else None
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
            slot.reader.finish(None, cut=True)  # what seemed to be one thing turned out to be another
            slot.kind = str(item["type"])
            slot.reader = item_reader_for(slot.kind, item, slot.number, self._builder)
        slot.reader.finish(item, cut=event == _ITEM_CUT)
        slot.is_done = True
        self._builder.end_item(slot.number)
        if isinstance(slot.reader, MessageReader):
            self._refused = self._refused or slot.reader.refused

    def _end_of_answer(self, said: str, response: dict[str, Any]) -> None:
        status = response.get("status")
        status = status if isinstance(status, str) and status else said
        self._builder.set_response_id(response.get("id"))
        if status in ("failed", "cancelled"):
            error = response.get("error")
            self._fail({"error": error} if error else {}, f"the server says that the answer {status}")
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
        """Bring every item to its end: by its own event, by the final output, or without either."""
        event = _ITEM_CUT if was_cut else _ITEM_DONE
        items = {slot.number: item for slot, item in zip(self._slots.match_output(output), output, strict=True)}
        for slot in self._slots.unfinished():
            self._feed_item(slot, event, {"item": items.get(slot.number)})

    def _fail(self, data: Any, otherwise: str = "") -> None:
        if self.failure is not None:
            return
        if data or not otherwise:
            self.failure = failures.error_from_stream(self._redact_key(data), self._headers)
        else:
            self.failure = ServerFailed(otherwise, request_id=failures.request_id(self._headers))

    def _reason(self) -> tuple[StopReason, str | None]:
        """The stop reason and the server's word. An incomplete answer was cut, whatever cut it: no call of it runs."""
        status = str(self._ending["status"]) if self._ending else None
        if status is None or status == "completed":
            refused = self._refused and not self._builder.calls.ended_count
            return (StopReason.REFUSAL if refused else StopReason.END_TURN), status
        why = object_in(self._ending, "incomplete_details").get("reason")
        raw = f"{status}:{why}" if isinstance(why, str) and why else status
        return (StopReason.CONTENT_FILTER if why == "content_filter" else StopReason.MAX_TOKENS), raw


def _is_error(data: dict[str, Any]) -> bool:
    """An error without a type of its own, as gateways send it."""
    if isinstance(data.get("type"), str) and str(data["type"]).startswith(_PREFIX):
        return False
    is_answer = data.get("object") == "response"
    return data.get("object") == "error" or (not is_answer and bool(data.get("error") or "detail" in data))


def _index(data: dict[str, Any]) -> int | None:
    index = data.get("output_index")
    return index if type(index) is int else None
