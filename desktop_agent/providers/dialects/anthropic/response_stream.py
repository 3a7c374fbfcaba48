"""Read the events of the Messages API: blocks, deltas, server steps, citations and usage.

Unknown events, blocks and deltas are expected and skipped or kept. A whole message in place of a stream is read the
same way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.dialects.response_stream import BaseFrameReader, failure_for, finish_word, stop_reason_for
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport import error_responses
from desktop_agent.providers.transport.json_codec import (
    dumps,
    is_array,
    is_object,
    loads_object,
    nonempty_text,
    object_in,
    objects_in,
    read_count,
    repair_json,
    text_in,
)
from desktop_agent.providers.transport.sse import Frame
from desktop_agent.types.blocks import Citation, ServerStep, Unknown
from desktop_agent.types.provider_events import StopReason, Usage

_USAGE_FIELDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class UsageCounter:
    """Combines the reports of one answer: each is cumulative, so its values replace earlier ones; nulls do not."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def take(self, report: Mapping[str, Any]) -> Usage | None:
        """Add one report. None while nothing is known."""
        counts = {name: read_count(report.get(name)) for name in _USAGE_FIELDS}
        counts["thinking"] = read_count(object_in(report, "output_tokens_details").get("thinking_tokens"))
        self._counts |= {name: value for name, value in counts.items() if value is not None}
        return self._usage() if self._counts else None

    def _usage(self) -> Usage:
        """Return the usage. The server leaves cached tokens out of `input_tokens`; ours is the whole prompt."""
        get = self._counts.get
        uncached, written = get("input_tokens"), get("cache_creation_input_tokens")
        read, output = get("cache_read_input_tokens"), get("output_tokens")
        prompt = None if uncached is None else uncached + (read or 0) + (written or 0)
        return Usage(
            input_tokens=prompt,
            output_tokens=output,
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=get("thinking"),
            total_tokens=None if prompt is None or output is None else prompt + output,
        )


PROVIDER = "anthropic"
"""The mark of this dialect's blocks and answers."""

_MAX_TEXT_LENGTH = 2000
_INPUT_FIELDS = ("query", "url", "command", "code", "pattern", "path")


def parse_block(raw: dict[str, Any]) -> ServerStep | Unknown:
    """Parse a block that is neither text, thinking nor a call: a step of the servers', or of unknown type."""
    clean = repair_json(raw)
    kind = text_in(clean, "type")
    if not is_step(kind):
        return Unknown(raw=clean, provider=PROVIDER)
    name = clean.get("name")
    return ServerStep(
        provider=PROVIDER,
        name=name if isinstance(name, str) and name else kind,
        text=_request_text(clean) if kind.endswith("tool_use") else _result_text(clean),
        raw=clean,
    )


def is_step(kind: str) -> bool:
    """Whether blocks of this type are steps of the provider's own servers."""
    return kind in ("server_tool_use", "container_upload") or kind.endswith("_tool_result") or kind.startswith("mcp_")


def parse_citation(raw: dict[str, Any]) -> Citation:
    """Parse a citation. Its positions are those of the source, so they are left out."""
    return Citation(
        title=nonempty_text(raw.get("document_title")) or nonempty_text(raw.get("title")),
        url=nonempty_text(raw.get("url")) or nonempty_text(raw.get("source")),
        quoted=nonempty_text(raw.get("cited_text")),
    )


def _request_text(raw: dict[str, Any]) -> str:
    arguments = object_in(raw, "input")
    text = next((arguments[name] for name in _INPUT_FIELDS if isinstance(arguments.get(name), str)), None)
    return (text if text is not None else dumps(arguments).decode() if arguments else "")[:_MAX_TEXT_LENGTH]


def _result_text(raw: dict[str, Any]) -> str:
    """Return titles and addresses of search results, what a program printed, or how it failed."""
    content = raw.get("content")
    if isinstance(content, str):
        return content[:_MAX_TEXT_LENGTH]
    entries = objects_in(raw, "content") or ([content] if is_object(content) else [])
    lines = [line for entry in entries for line in _result_lines(entry)]
    if not lines and isinstance(raw.get("file_id"), str):
        lines = [raw["file_id"]]
    return "\n".join(lines)[:_MAX_TEXT_LENGTH]


def _result_lines(entry: dict[str, Any]) -> list[str]:
    page = " ".join(text for name in ("title", "url") if isinstance(text := entry.get(name), str) and text)
    texts = [entry.get(name) for name in ("text", "stdout", "stderr", "error_code")]
    return [text for text in (page, *texts) if isinstance(text, str) and text]


_REPORTED = ("input_transformations", "diagnostics", "container")
_EMPTY_CALL, _BROKEN_CALL = "call without input", "call with broken input"
_CALLS = frozenset({"tool_use", _EMPTY_CALL, _BROKEN_CALL})
# Blocks built only from their deltas; "": never started.
_ASSEMBLED = _CALLS | {"", "text", "thinking", "redacted_thinking"}
_CALL_FIELDS = ("type", "id", "name", "input", "cache_control")


@dataclass(slots=True)
class _OpenBlock:
    """A block that was started and not stopped. `raw` as received; `pieces` of its input.

    `number` is its place in the answer: blocks may be open side by side, and each is shown as it arrives.
    """

    kind: str
    number: int
    raw: dict[str, Any]
    pieces: list[str] = field(default_factory=list[str])
    citations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def input(self) -> dict[str, Any] | None:
        """Return the whole input; None if there are no pieces, or if they are no object."""
        return loads_object("".join(self.pieces))

    @property
    def has_input_in_start(self) -> bool:
        """Whether its start contained the whole input, and its pieces nothing more."""
        return bool(self.raw.get("input")) and "".join(self.pieces).strip() in ("", "{}")


class _BlockReader:
    """Reads the blocks of one answer, from start over deltas to stop.

    `index` is that of the block which was started last; `delta` and `field` are the type of its deltas and their field,
    both empty if it has none; `take` receives its pieces.
    """

    def __init__(self, builder: PartBuilder) -> None:
        self.index = -1
        self.delta = ""
        self.field = ""
        self.take: Callable[[str], None] = builder.main.text
        self._builder = builder
        self._started = 0
        self._open: dict[int, _OpenBlock] = {}

    def end_stopped_calls(self, *kinds: str) -> None:
        """End the calls that were stopped without a whole input, of these kinds."""
        for index, block in list(self._open.items()):
            if block.kind in kinds:
                del self._open[index]
                self._builder.end_calls(index=index, number=block.number)
                self._builder.end_item(block.number)

    def end(self) -> None:
        """End the answer: blocks that were not stopped are whole, except calls without all of their input."""
        for index, block in list(self._open.items()):
            if block.kind not in _CALLS or block.has_input_in_start:
                self.stop(index)

    def start(self, index: int, raw: dict[str, Any]) -> None:
        """Start a block; `raw` is the content of its start."""
        self.end_stopped_calls(_EMPTY_CALL, _BROKEN_CALL)
        before = self._open.get(index)
        if before is not None and (before.kind != "tool_use" or before.has_input_in_start):
            self.stop(index)
        kind = text_in(raw, "type")
        self.index, self.delta, self.field = index, "", ""
        self._started += 1
        block = self._open[index] = _OpenBlock(kind, _order_number(index, self._started), dict(raw))
        self._builder.open_item(block.number)
        part = self._builder.part(block.number)
        if kind == "text":
            self.delta, self.field, self.take = "text_delta", "text", part.text
            block.citations += objects_in(raw, "citations")
            part.text(text_in(raw, "text"))
        elif kind == "thinking":
            self.delta, self.field, self.take = "thinking_delta", "thinking", part.thinking
            part.thinking(text_in(raw, "thinking"), type=kind, signature=text_in(raw, "signature"))
        elif kind == "redacted_thinking":
            part.end_thinking(type=kind, data=text_in(raw, "data"))
        elif kind == "tool_use":
            call_id, name = text_in(raw, "id"), text_in(raw, "name")
            self.delta, self.field, self.take = "input_json_delta", "partial_json", self._add_input
            self._builder.add_call_fragment(index=index, id=call_id, name=name, arguments="")
            extras = {key: value for key, value in raw.items() if key not in _CALL_FIELDS and value is not None}
            if extras:
                self._builder.calls.attach_metadata(call_id, extras)

    def add_delta(self, index: int, delta: dict[str, Any]) -> None:
        """Add what the fast path did not handle. A piece of another type than its block is read by its own type."""
        block = self._open.get(index)
        kind = block.kind if block is not None else ""
        part = self._builder.part(block.number if block is not None else _order_number(index, 0))
        match delta.get("type"):
            case "text_delta" if kind in _ASSEMBLED:
                part.text(text_in(delta, "text"))
            case "thinking_delta" if kind in _ASSEMBLED:
                part.thinking(text_in(delta, "thinking"), type="thinking")
            case "signature_delta" if kind in _ASSEMBLED:
                part.thinking("", type="thinking", signature=text_in(delta, "signature"))
            case "input_json_delta" if block is not None and kind not in _ASSEMBLED - _CALLS:
                self._append_input(index, block, _json_in(delta, "partial_json"))
            case "input_json_delta":
                # A call that never began: it has no name, and is reported as malformed.
                self._builder.add_call_fragment(index=index, arguments=_json_in(delta, "partial_json"))
            case "citations_delta" if block is not None:
                block.citations += [object_in(delta, "citation")] if object_in(delta, "citation") else []
            case "compaction_delta" if block is not None:
                block.raw |= {name: value for name, value in delta.items() if name != "type" and value is not None}
            case ("text_delta" | "thinking_delta" | "signature_delta") as name if block is not None:
                name = name.removesuffix("_delta")
                block.raw[name] = text_in(block.raw, name) + text_in(delta, name)
            case _:
                pass

    def _add_input(self, piece: str) -> None:
        self._append_input(self.index, self._open[self.index], piece)

    def _append_input(self, index: int, block: _OpenBlock, piece: str) -> None:
        if piece:
            block.pieces.append(piece)
            if block.kind in _CALLS:
                self._builder.add_call_fragment(index=index, arguments=piece)

    def stop(self, index: int) -> None:
        """Stop a block. A call without a whole input waits: only the end of the answer shows whether it was cut."""
        block = self._open.pop(index, None)
        if block is None:
            return
        if index == self.index:
            self.delta, self.field = "", ""
        if block.kind == "text":
            state = {"wire_citations": block.citations} if block.citations else {}
            self._builder.part(block.number).end_text(tuple(map(parse_citation, block.citations)), **state)
        elif block.kind == "thinking":
            self._builder.part(block.number).end_thinking()
        elif block.kind == "tool_use":
            is_empty = not "".join(block.pieces).strip()
            if block.has_input_in_start:
                self._builder.add_call_fragment(index=index, arguments=block.raw["input"])
            elif block.input is None:
                self._open[index] = _OpenBlock(_EMPTY_CALL if is_empty else _BROKEN_CALL, block.number, {})
                return
            self._builder.end_calls(index=index, number=block.number)
        elif block.kind in (_EMPTY_CALL, _BROKEN_CALL):
            self._open[index] = block
            return
        elif block.kind != "redacted_thinking":
            self._end_raw(block)
        self._builder.end_item(block.number)

    def _end_raw(self, block: _OpenBlock) -> None:
        """Keep a block; a step whose input broke off never happened."""
        if "".join(block.pieces).strip():
            arguments = block.input
            if arguments is None and is_step(block.kind):
                return
            block.raw["input"] = arguments
        if block.citations:
            block.raw["citations"] = block.citations
        self._builder.add_block(parse_block(block.raw), block.number)


class FrameReader(BaseFrameReader):
    """Reads the frames of one answer."""

    end_mark = "message_stop"

    def __init__(self, builder: PartBuilder, headers: Mapping[str, str]) -> None:
        super().__init__(builder, headers)
        self._usage = UsageCounter()
        self._blocks = _BlockReader(builder)
        self._reason: str | None = None
        self._details: dict[str, Any] = {}

    @property
    def has_finished(self) -> bool:
        return self.has_ended

    @property
    def has_ended(self) -> bool:
        # No content follows a stop_reason.
        return self.done or self._reason is not None

    def read(self, frame: Frame) -> bool:
        """Read one frame."""
        name, data = frame
        blocks = self._blocks
        # Nearly every frame is one more piece of the newest block: this is the fast path.
        try:
            delta = data["delta"]
            piece = delta[blocks.field]
            is_next = delta["type"] == blocks.delta and data["index"] == blocks.index and type(piece) is str
        except (KeyError, TypeError):
            is_next, piece = False, ""
        if is_next:
            blocks.take(piece)
        elif is_object(data):
            self._read_event(text_in(data, "type") or name, data)
        elif is_array(data) or name == "error":
            self._fail(data)
        return is_next

    def end(self) -> None:
        """End the builder with the server's reason, corrected by the content."""
        raw = self._reason
        reason = StopReason.END_TURN if raw is None else stop_reason_for(raw)
        self._blocks.end()
        if reason is StopReason.REFUSAL:
            self._builder.end_calls(cut=True)
        self._builder.end(reason, raw, self._details or None)

    def _read_event(self, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "content_block_delta":
                self._blocks.add_delta(self._block_index(data), object_in(data, "delta"))
            case "content_block_start":
                self._blocks.start(self._block_index(data, 1), object_in(data, "content_block"))
            case "content_block_stop":
                self._blocks.stop(self._block_index(data))
            case "message_start":
                self._read_start(object_in(data, "message"))
            case "message_delta":
                self._read_report(object_in(data, "delta"), data)
            case "message_stop":
                self.done = True
            case "message":
                self._read_whole(data)
            case "ping":
                pass
            case _:
                if kind == "error" or data.get("error"):
                    self._fail(data)
                return
        self.recognised = True

    def _block_index(self, data: dict[str, Any], step: int = 0) -> int:
        index = data.get("index")
        return index if type(index) is int else self._blocks.index + step

    def _fail(self, data: Any) -> None:
        if self.failure is None:
            self._blocks.end_stopped_calls(_EMPTY_CALL)  # an error follows, so their input is empty
        super()._fail(data)

    def _read_start(self, message: dict[str, Any]) -> None:
        self._builder.set_response_id(message.get("id"))
        self._read_usage(message)
        self._details |= {name: repair_json(message[name]) for name in _REPORTED if message.get(name)}

    def _read_report(self, delta: dict[str, Any], data: dict[str, Any]) -> None:
        """Read the stop reason and the server's details; the last report with content counts."""
        reason = finish_word(delta.get("stop_reason"))
        if reason is not None:
            self._reason = reason
            self.failure = self.failure or failure_for(reason, error_responses.request_id(self._headers))
        self._details |= repair_json(object_in(delta, "stop_details"))
        fields = {name: value for name, value in delta.items() if name not in ("stop_reason", "stop_details")}
        self._details |= {name: repair_json(value) for name, value in fields.items() if value is not None}
        self._read_usage(data)

    def _read_usage(self, data: dict[str, Any]) -> None:
        self._builder.usage = self._usage.take(object_in(data, "usage")) or self._builder.usage

    def _read_whole(self, message: dict[str, Any]) -> None:
        self._read_start(message)
        for index, block in enumerate(objects_in(message, "content")):
            self._blocks.start(index, block)
            self._blocks.stop(index)
        self._read_report({name: message.get(name) for name in ("stop_reason", "stop_sequence", "stop_details")}, {})
        self.done = True


def _order_number(index: int, start_count: int) -> int:
    """Order by indices; by starts, if a server uses one index for all."""
    return (min(max(index, 0), 1 << 16) << 16) + min(start_count, 0xFFFF) + 1


def _json_in(data: dict[str, Any], name: str) -> str:
    """Return JSON in pieces of text; gateways put the whole object there instead."""
    value = data.get(name)
    return value if isinstance(value, str) else dumps(value).decode() if value is not None else ""
