"""Output items to fragments: one class for each kind of item, told of its events and of its end."""

from typing import Any, Protocol

from desktop_agent.providers.dialects.openai_responses.parts import OrderedParts, Part
from desktop_agent.providers.dialects.openai_responses.server_steps import PROVIDER, kept
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.json_text import is_object, mended_json, object_in, objects_in
from desktop_agent.vocabulary.blocks import Citation, Unknown


class Fold(Protocol):
    """One output item in the making."""

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """An event of this item, named without `response.`; what does not concern it is passed over."""
        ...

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:
        """The item is over. `item` is its final form, which is kept and believed; None: the server never sent it.

        `cut`: the whole answer was cut before this item was done.
        """
        ...


def fold_for(kind: str, item: dict[str, Any], place: int, builder: PartBuilder) -> Fold:
    """What reads an item of this type; `place` tells the calls of one answer apart."""
    match kind:
        case "message":
            return MessageFold(item, builder)
        case "reasoning":
            return ReasoningFold(builder)
        case "function_call" | "custom_tool_call":
            return CallFold(kind, item, place, builder)
        case _:
            return StepFold(builder)


class MessageFold:
    """A message: text and refusals, part by part, each with its annotations."""

    def __init__(self, item: dict[str, Any], builder: PartBuilder) -> None:
        self.refused = False
        self.parts = OrderedParts(builder.text, self._opened, self._closed)
        self._builder = builder
        self._state = _text_state(item)
        self._annotations: dict[int, list[Any]] = {}
        self._refusals: set[int] = set()
        self._current = 0

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """Text, a refusal, an annotation, or the end of a part."""
        index = self._index(event, data)
        match event:
            case "output_item.added":
                self._state |= _text_state(object_in(data, "item"))
            case "output_text.delta" | "refusal.delta":
                if event == "refusal.delta":
                    self._refusals.add(index)
                self.parts.add(index, _string(data.get("delta")))
            case "output_text.done":
                self.parts.complete(index, _string(data.get("text")))
            case "refusal.done":
                self._take(index, {**data, "type": "refusal"})
            case "content_part.done":
                self._take(index, object_in(data, "part"))
            case "output_text.annotation.added":
                self._annotations.setdefault(index, []).append(data.get("annotation"))
            case _:
                pass

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:
        """Close the last part; parts of an unknown type are kept as a message of their own under the same id."""
        self._state |= _text_state(item or ({"status": "incomplete"} if cut else {}))
        unknown: list[dict[str, Any]] = []
        for index, part in enumerate(objects_in(item, "content")):
            if not self._take(index, part):
                unknown.append(part)
        self.parts.finish()
        if item is not None and unknown:
            self._builder.block(Unknown(raw=mended_json({**item, "content": unknown}), provider=PROVIDER))
        self._builder.phase = None

    def _take(self, index: int, part: dict[str, Any]) -> bool:
        """A finished part. False when its type is not known here."""
        kind = part.get("type")
        if kind == "refusal":
            self._refusals.add(index)
        annotations = part.get("annotations")
        if isinstance(annotations, list) and annotations:
            self._annotations[index] = annotations
        if kind not in ("output_text", "refusal"):
            return False
        self.parts.complete(index, _string(part.get("refusal" if kind == "refusal" else "text")))
        return True

    def _index(self, event: str, data: dict[str, Any]) -> int:
        """Servers that do not number parts send one after another."""
        index = data.get("content_index")
        if type(index) is int:
            return index
        if event == "content_part.added" and self.parts.open is not None:
            self._current += 1
        return self._current

    def _opened(self, part: Part) -> None:  # noqa: ARG002  the same for every part
        phase = self._state.get("phase")
        self._builder.phase = phase if isinstance(phase, str) else None

    def _closed(self, part: Part) -> None:
        state = dict(self._state)
        if state.get("status") == "in_progress":
            del state["status"]
        annotations = [each for each in self._annotations.get(part.index, []) if is_object(each)]
        if annotations:
            state["annotations"] = annotations
        if part.index in self._refusals:
            state["refusal"] = self.refused = True
        self._builder.end_text(tuple(map(_citation, annotations)), **state)


class ReasoningFold:
    """Reasoning: its summary, or its raw text where a server sends that; never both, they say the same."""

    def __init__(self, builder: PartBuilder) -> None:
        self._builder = builder
        self._parts = OrderedParts(builder.thinking, self._opened, lambda _: None)
        self._shows: str | None = None
        self._is_first = True

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """A piece, or the whole, of one part."""
        match event:
            case "reasoning_summary_text.delta" | "reasoning_text.delta":
                if self._is_shown(event):
                    self._parts.add(_number(event, data), _string(data.get("delta")))
            case "reasoning_summary_text.done" | "reasoning_text.done":
                if self._is_shown(event):
                    self._parts.complete(_number(event, data), _string(data.get("text")))
            case _:
                pass

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:  # noqa: ARG002  nothing of it is run
        """Only the final item goes back: the one that was announced may hold an incomplete state."""
        for event, name in (("reasoning_summary_text", "summary"), ("reasoning_text", "content")):
            for index, part in enumerate(objects_in(item, name)):
                if self._is_shown(event) and part.get("text"):
                    self._parts.complete(index, _string(part.get("text")))
        self._parts.finish()
        if item is None:
            self._builder.end_thinking()
        else:
            self._builder.end_thinking(item=item)

    def _is_shown(self, event: str) -> bool:
        kind = event.partition(".")[0]
        self._shows = self._shows or kind
        return self._shows == kind

    def _opened(self, part: Part) -> None:  # noqa: ARG002
        if not self._is_first:
            self._builder.thinking("\n\n")
        self._is_first = False


class CallFold:
    """A call of a function, or of a tool that takes free text: that one's input is `{"input": text}`."""

    def __init__(self, kind: str, item: dict[str, Any], place: int, builder: PartBuilder) -> None:
        self._builder = builder
        self._kind = kind
        self._place = place
        self._item = item
        self._pieces: list[str] = []

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """A piece of the arguments; free text is shown when it is whole."""
        if event == "output_item.added":
            self._item |= object_in(data, "item")
            self._fragment(None)
        elif event == "function_call_arguments.delta":
            self._add(_string(data.get("delta")))
        elif event == "function_call_arguments.done":
            self._complete(data.get("arguments"))

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:
        """Hand the call out. One that was cut is none: it never said all that it wanted."""
        calls = self._builder.calls
        self._item |= item or {}
        if cut or self._item.get("status") == "incomplete":
            self._builder.close_parts()
            calls.drop(self._place)
            return
        if self._kind == "custom_tool_call":
            self._fragment({"input": _string(self._item.get("input"))})
        else:
            self._complete(self._item.get("arguments"))
        told = ("call_id", "name", "arguments", "input")
        rest = {name: value for name, value in self._item.items() if name not in told}
        calls.keep(self._call_id, {"item": {"type": self._kind, **rest}})
        self._builder.end_calls(index=self._place)

    @property
    def _call_id(self) -> str | None:
        call_id = self._item.get("call_id")
        return call_id if isinstance(call_id, str) else None

    def _complete(self, arguments: Any) -> None:
        """All arguments: what was lost at the end is added, and what differs replaces what came."""
        came = "".join(self._pieces)
        if isinstance(arguments, str) and (arguments or not came):
            if not arguments.startswith(came):
                self._builder.calls.drop(self._place)
                self._pieces.clear()
                came = ""
            self._add(arguments[len(came) :])
        else:
            self._fragment(None if arguments == "" else arguments)

    def _add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._fragment(piece)

    def _fragment(self, arguments: Any) -> None:
        name = self._item.get("name")
        self._builder.call_fragment(
            index=self._place,
            id=self._call_id,
            name=name if isinstance(name, str) else None,
            arguments=arguments,
        )


class StepFold:
    """Anything else: kept whole."""

    def __init__(self, builder: PartBuilder) -> None:
        self._builder = builder

    def feed(self, event: str, data: dict[str, Any]) -> None:
        """Progress is not shown."""

    def finish(self, item: dict[str, Any] | None, *, cut: bool) -> None:  # noqa: ARG002  nothing of it is run here
        """Keep the final item."""
        if item is not None:
            self._builder.block(kept(item))


def _text_state(item: dict[str, Any]) -> dict[str, Any]:
    """What goes back with every part of a message."""
    return {name: item[name] for name in ("id", "status", "phase") if isinstance(item.get(name), str)}


def _citation(annotation: dict[str, Any]) -> Citation:
    """A place on the web or a file; offsets are characters of the text part."""
    title, url = annotation.get("title") or annotation.get("filename") or annotation.get("file_id"), None
    if isinstance(annotation.get("url"), str):
        url = annotation["url"]
    return Citation(
        title=title if isinstance(title, str) else None,
        url=url,
        start=_offset(annotation.get("start_index")),
        end=_offset(annotation.get("end_index")),
    )


def _offset(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _number(event: str, data: dict[str, Any]) -> int:
    index = data.get("summary_index" if event.startswith("reasoning_summary") else "content_index")
    return index if type(index) is int else 0


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
