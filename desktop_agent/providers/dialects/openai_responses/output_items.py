"""Read one output item of the Responses API: messages, reasoning, calls, and steps of the server's own."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from desktop_agent.data_files import load_table
from desktop_agent.providers.dialects.answer_pictures import parse_picture
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.text_builder import TextBuilder
from desktop_agent.providers.transport.json_codec import (
    array_in,
    dumps,
    is_object,
    object_in,
    objects_in,
    offset_in,
    repair_json,
    repair_text,
    text_in,
)
from desktop_agent.types.blocks import Base64Source, Citation, Image, ServerStep, Unknown

PROVIDER = "openai-responses"
"""The mark of this dialect's blocks; a message's origin names their server and model."""

_STEP_TYPES = frozenset(load_table(__name__, "step_types.toml")["types"])
_MAX_TEXT_LENGTH = 2000


_PICTURE = "image_generation_call"


def parse_step(item: dict[str, Any]) -> ServerStep | Image | Unknown:
    """Return the item as a block."""
    name = item.get("type")
    raw = repair_json(item)
    if name == _PICTURE and (picture := _parse_picture_item(raw)) is not None:
        return picture
    if isinstance(name, str) and name in _STEP_TYPES:
        return ServerStep(provider=PROVIDER, name=name, text=_step_text(item)[:_MAX_TEXT_LENGTH], raw=raw)
    return Unknown(raw=raw, provider=PROVIDER)


def _parse_picture_item(item: dict[str, Any]) -> Image | None:
    """Return the picture that the server made; None where it made none. The rest of the item goes back with it."""
    rest = {name: value for name, value in item.items() if name != "result"}
    return parse_picture(item.get("result"), PROVIDER, {"item": rest})


def picture_item(picture: Image) -> dict[str, Any] | None:
    """Return the whole item of a picture again; None where its server did not make it, or its bytes are not here."""
    item, source = picture.metadata.get("item"), picture.source
    if picture.provider != PROVIDER or not is_object(item) or not isinstance(source, Base64Source):
        return None
    return {**item, "result": source.data}


def _step_text(item: dict[str, Any]) -> str:
    """Return what was searched, run or called, from the item's own text, in a few lines."""
    action = object_in(item, "action")
    candidates = (
        _lines(array_in(action, "queries")) or action.get("query") or action.get("url") or action.get("pattern"),
        _lines(array_in(action, "commands")) or _lines(array_in(action, "command"), " "),
        _lines(array_in(item, "queries")),
        item.get("code"),
        item.get("revised_prompt"),
        _call_text(item),
        item.get("result") if item.get("type") == "program_output" else None,
        _lines([value.get("name") for value in array_in(item, "tools") if is_object(value)], ", "),
    )
    return next((repair_text(value) for value in candidates if isinstance(value, str) and value), "")


def _call_text(item: dict[str, Any]) -> str:
    """Return a call on another server: server, name and arguments."""
    name, label, arguments = item.get("name"), item.get("server_label"), item.get("arguments")
    if not isinstance(name, str) or not name:
        return ""
    where = f"{label}: " if isinstance(label, str) and label else ""
    return f"{where}{name} {arguments if isinstance(arguments, str) else ''}".rstrip()


def _lines(values: list[Any], separator: str = "\n") -> str:
    return separator.join(value for value in values if isinstance(value, str) and value)


CALLS = frozenset({"function_call", "custom_tool_call"})
MAX_PARTS = 1024
"""The parts of one item that get numbers of their own."""
OUTPUT_ORDER = "output_order"
"""In an answer's details: the ids of its items in their order, if they arrived in another one."""


def item_reader_for(kind: str, item: dict[str, Any], number: int, builder: PartBuilder) -> "ItemReader":
    """Return the reader for an item of this type; `number` is that of its first part.

    The reader gets each event of its item, named without `response.`, and ignores those it does not need. Its `finish`
    takes the final form of the item, which counts and is kept, or None if the server never sent it; `cut` says that the
    answer ended before the item was done.
    """
    match kind:
        case "message":
            return MessageReader(item, number, builder)
        case "reasoning":
            return ReasoningReader(number, builder)
        case "function_call" | "custom_tool_call":
            return ToolCallReader(kind, item, number, builder)
        case _:
            return ServerStepReader(number, builder)


@dataclass(slots=True, eq=False)
class TextPart:
    """One part of a message being read. `pieces` were received; `is_done`: no more will follow."""

    open: TextBuilder
    pieces: list[str] = field(default_factory=list[str])
    is_done: bool = False
    is_closed: bool = False


class MessageReader:
    """Reads a message: text and refusals, part by part, each with its annotations."""

    def __init__(self, item: dict[str, Any], number: int, builder: PartBuilder) -> None:
        self.refused = False
        self._number = number
        self._builder = builder
        self._state = _text_state(item)
        self._parts: dict[int, TextPart] = {}
        self._annotations: dict[int, list[Any]] = {}
        self._refusals: set[int] = set()
        self._current = 0

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """Read text, a refusal, an annotation, or the end of a part."""
        index = self._index(event, data)
        match event:
            case "output_item.added":
                self._state |= _text_state(object_in(data, "item"))
            case "output_text.delta" | "refusal.delta":
                if event == "refusal.delta":
                    self._refusals.add(index)
                self._add(index, text_in(data, "delta"))
            case "output_text.done":
                self._complete(index, text_in(data, "text"))
            case "refusal.done":
                self._take(index, {**data, "type": "refusal"})
            case "content_part.done":
                self._take(index, object_in(data, "part"))
            case "output_text.annotation.added":
                self._annotations.setdefault(index, []).append(data.get("annotation"))
            case _:
                pass

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:
        """Close every part; those of an unknown type are kept as a message of their own under the same id."""
        self._state |= _text_state(item or ({"status": "incomplete"} if cut else {}))
        unknown: list[dict[str, Any]] = []
        for index, part in enumerate(objects_in(item, "content")):
            if not self._take(index, part):
                unknown.append(part)
        for part in self._parts.values():
            part.is_done = True
        self._close_done()
        if item is not None and unknown:
            block = Unknown(raw=repair_json({**item, "content": unknown}), provider=PROVIDER)
            self._builder.add_block(block, self._number)

    def part_for(self, index: int) -> TextPart:
        """Return the part with this number; if it is new, those that are done are closed."""
        part = self._parts.get(index)
        if part is None:
            self._close_done()
            part = TextPart(self._builder.part(self._number + min(max(index, 0), MAX_PARTS - 1)))
            phase = self._state.get("phase")
            part.open.phase = phase if isinstance(phase, str) else None
            self._parts[index] = part
        return part

    def _add(self, index: int, piece: str) -> None:
        part = self.part_for(index) if piece else None
        if part is not None and not part.is_closed:
            part.pieces.append(piece)
            part.open.text(piece)

    def _complete(self, index: int, whole: str) -> None:
        """Complete a part by its whole text: the lost end is shown now, and nothing twice."""
        self._add(index, _missing_text(self._parts[index].pieces if index in self._parts else [], whole))
        if index in self._parts:
            self._parts[index].is_done = True

    def _take(self, index: int, part: dict[str, Any]) -> bool:
        """Read a finished part. False if its type is unknown."""
        kind = part.get("type")
        if kind == "refusal":
            self._refusals.add(index)
        annotations = part.get("annotations")
        if isinstance(annotations, list) and annotations:
            self._annotations[index] = annotations
        if kind not in ("output_text", "refusal"):
            return False
        self._complete(index, text_in(part, "refusal" if kind == "refusal" else "text"))
        return True

    def _index(self, event: str, data: dict[str, Any]) -> int:
        """Return the part's number; servers that do not number parts send one after another."""
        index = data.get("content_index")
        if type(index) is int:
            return index
        if event == "content_part.added" and self._current in self._parts:
            self._current += 1
        return self._current

    def _close_done(self) -> None:
        for index in sorted(self._parts):
            part = self._parts[index]
            if part.is_done and not part.is_closed:
                part.is_closed = True
                self._close(index, part)

    def _close(self, index: int, part: TextPart) -> None:
        state = dict(self._state)
        if state.get("status") == "in_progress":
            del state["status"]
        annotations = [annotation for annotation in self._annotations.get(index, []) if is_object(annotation)]
        if annotations:
            state["annotations"] = annotations
        if index in self._refusals:
            state["refusal"] = self.refused = True
        part.open.end_text(tuple(map(_citation, annotations)), **state)


class ReasoningReader:
    """Reads reasoning: its summary, or its raw text if a server sends that; never both, since they are equal.

    Its parts are shown as they arrive, with a blank line before each, and kept in order.
    """

    def __init__(self, number: int, builder: PartBuilder) -> None:
        self._part = builder.part(number)
        self._pieces: dict[int, list[str]] = {}
        self._shows: str | None = None
        self._is_in_order = True

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """Read a piece, or the whole, of one part."""
        match event:
            case "reasoning_summary_text.delta" | "reasoning_text.delta":
                if self._is_shown(event):
                    self._add(_part_number(event, data), text_in(data, "delta"))
            case "reasoning_summary_text.done" | "reasoning_text.done":
                if self._is_shown(event):
                    self._complete(_part_number(event, data), text_in(data, "text"))
            case _:
                pass

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:  # noqa: ARG002  nothing of it is run
        """Keep only the final item: the one that was announced may hold an incomplete state."""
        for event, name in (("reasoning_summary_text", "summary"), ("reasoning_text", "content")):
            for index, part in enumerate(objects_in(item, name)):
                if self._is_shown(event) and part.get("text"):
                    self._complete(index, text_in(part, "text"))
        # In order, the pieces that were shown are the text: of repeated pieces only one was shown.
        whole = None if self._is_in_order else self._sorted_text()
        if item is None:
            self._part.end_thinking(whole)
        else:
            self._part.end_thinking(whole, item=item)

    def _add(self, index: int, piece: str) -> None:
        if not piece:
            return
        if self._pieces and index not in self._pieces:
            self._part.thinking("\n\n")
        self._is_in_order = self._is_in_order and index >= max(self._pieces, default=index)
        self._pieces.setdefault(index, []).append(piece)
        self._part.thinking(piece)

    def _sorted_text(self) -> str:
        return repair_text("\n\n".join("".join(self._pieces[index]) for index in sorted(self._pieces)))

    def _complete(self, index: int, whole: str) -> None:
        self._add(index, _missing_text(self._pieces.get(index, []), whole))

    def _is_shown(self, event: str) -> bool:
        kind = event.partition(".")[0]
        self._shows = self._shows or kind
        return self._shows == kind


class ToolCallReader:
    """Reads a call of a function, or of a tool that takes free text: that one's input is `{"input": text}`."""

    def __init__(self, kind: str, item: dict[str, Any], number: int, builder: PartBuilder) -> None:
        self._builder = builder
        self._kind = kind
        self._number = number
        self._item = item
        self._pieces: list[str] = []

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """Read a piece of the arguments; free text is shown when it is whole."""
        if event == "output_item.added":
            self._item |= object_in(data, "item")
            self._fragment(None)
        elif event == "function_call_arguments.delta":
            piece = data.get("delta")
            self._add(piece if isinstance(piece, str) else "" if piece is None else dumps(piece).decode())
        elif event == "function_call_arguments.done":
            self._complete(data.get("arguments"))
        elif event == "custom_tool_call_input.delta":
            self._pieces.append(text_in(data, "delta"))
        elif event == "custom_tool_call_input.done":
            self._item["input"] = text_in(data, "input") or "".join(self._pieces)

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:
        """Finish the call. One that was cut is dropped: its arguments are incomplete."""
        calls = self._builder.calls
        self._item |= item or {}
        if cut:
            calls.drop(self._number)
            return
        if self._kind == "custom_tool_call":
            input_text = text_in(self._item, "input")
            if item is None and not input_text:
                calls.mark_incomplete(self._number)  # nothing tells whether these pieces are all of its text
            self._fragment({"input": input_text or "".join(self._pieces)})
        else:
            self._complete(self._item.get("arguments"))
        known_fields = ("call_id", "name", "arguments", "input")
        fields = {name: value for name, value in self._item.items() if name not in known_fields}
        calls.attach_metadata(self._call_id, {"item": {"type": self._kind, **fields}})
        if self._item.get("status") == "incomplete":
            calls.mark_incomplete(self._number)
        self._builder.end_calls(index=self._number, number=self._number)

    @property
    def _call_id(self) -> str | None:
        call_id = self._item.get("call_id")
        return call_id if isinstance(call_id, str) else None

    def _complete(self, arguments: Any) -> None:
        """Complete the arguments: a lost end is added, and different arguments replace the received ones."""
        received = "".join(self._pieces)
        if isinstance(arguments, str) and (arguments or not received):
            if not arguments.startswith(received):
                self._builder.calls.drop(self._number)
                self._pieces.clear()
                received = ""
            self._add(arguments[len(received) :])
        else:
            self._fragment(None if arguments == "" else arguments)

    def _add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._fragment(piece)

    def _fragment(self, arguments: Any) -> None:
        name = self._item.get("name")
        self._builder.add_call_fragment(
            index=self._number, id=self._call_id, name=name if isinstance(name, str) else None, arguments=arguments
        )


class ServerStepReader:
    """Keeps any other item whole."""

    def __init__(self, number: int, builder: PartBuilder) -> None:
        self._number = number
        self._builder = builder

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """Ignore progress."""

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:  # noqa: ARG002  nothing of it is run here
        """Keep the final item."""
        if item is not None:
            self._builder.add_block(parse_step(item), self._number)


ItemReader: TypeAlias = MessageReader | ReasoningReader | ToolCallReader | ServerStepReader


def _missing_text(pieces: list[str], whole: str) -> str:
    """Return the rest of the whole text after the pieces; nothing if they are no beginning of it."""
    shown, whole = repair_text("".join(pieces)), repair_text(whole)
    return whole[len(shown) :] if whole.startswith(shown) else ""


def _text_state(item: dict[str, Any]) -> dict[str, Any]:
    """Return what is sent back with every part of a message."""
    return {name: item[name] for name in ("id", "status", "phase") if isinstance(item.get(name), str)}


def _citation(annotation: dict[str, Any]) -> Citation:
    """Parse a place on the web or a file; offsets are characters of the text part."""
    title, url = annotation.get("title") or annotation.get("filename") or annotation.get("file_id"), None
    if isinstance(annotation.get("url"), str):
        url = annotation["url"]
    return Citation(
        title=title if isinstance(title, str) else None,
        url=url,
        start=offset_in(annotation, "start_index"),
        end=offset_in(annotation, "end_index"),
    )


def _part_number(event: str, data: dict[str, Any]) -> int:
    index = data.get("summary_index" if event.startswith("reasoning_summary") else "content_index")
    return index if type(index) is int else 0
