"""Parse server-sent events incrementally: bytes in, parsed JSON out, however the bytes are chunked.

The framing follows the WHATWG text (HTML, section 9.2.6) with the workarounds that real servers need; each has a
comment. Lines are split on bytes before anything is decoded: a chunk may end inside a character, and Python's own line
splitting also splits at U+2028, which is legal inside JSON.
"""

import re
from typing import Any

import orjson

from desktop_agent.providers.transport.json_codec import is_object, loads
from desktop_agent.types.errors import Sentence, UnreadableAnswer

DONE = object()
"""The data of a `[DONE]` event."""

Frame = tuple[str, Any]
"""Name of the event (often empty) and its JSON, or DONE."""

MAX_EVENT_SIZE = 32 * 1024 * 1024
# Objects and lists of one event. Whole answers have thousands; reading a million would keep the loop for seconds.
_MAX_CONTAINERS = 100_000
_START_SIZE = 4_000_000
_TINY_CHUNK = 64
_MAX_UNEXPECTED_LINE = 8192  # longer than what is shown: only a whole key is redacted
_LINE_COST = 48  # added to each pending line's bytes: otherwise millions of empty ones would cost nothing
_BOM = b"\xef\xbb\xbf"
# Possessive, and the end may be missing: a line full of quotes is scanned once.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?')
_STRING_IN_BYTES = re.compile(_STRING.pattern.encode())
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[][{}]')


class SseDecoder:
    """Feed chunks as they come, then call `finish` once at the end of the body.

    `bad_events` counts events whose data was not JSON. `unexpected_line` is the first line that is no field of an event
    stream, which distinguishes a login page from a model; `is_web_page`: it is a tag before any event, so nothing after
    it counts. `frames` counts the returned frames. `ended_mid_event`: the body ended in the middle of an event.
    """

    def __init__(self, limit: int = MAX_EVENT_SIZE) -> None:
        self.bad_events = 0
        self.frames = 0
        self.unexpected_line = ""
        self.is_web_page = False
        self.ended_mid_event = False
        self._limit = limit
        self._partial_line = bytearray()  # a line without its end
        self._skip_lf = False
        self._first = True
        self._idle = False  # nothing is open, and this is not the start
        self._name = ""
        self._data: list[bytes] = []
        self._data_size = 0
        self._bare: list[bytes] = []
        self._bare_depth = 0
        self._is_array_begun = False  # elements of the bare array were returned
        self._out: list[Frame] = []
        self._failure: UnreadableAnswer | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the events that this chunk completes. Raises UnreadableAnswer above the size limit.

        Events completed before that are returned first, so that it does not matter how the bytes were cut.
        """
        if self._failure is not None:
            raise self._failure
        if len(chunk) <= _TINY_CHUNK and b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._skip_lf = self._idle = False
                self._buffer_piece(chunk)
            return []
        if self._idle and chunk.startswith(b"data: {") and chunk.find(b"\n") == len(chunk) - 2 and chunk[-1] == 10:
            # A single event, as most servers send them. A raw CR would end a line within it.
            try:
                if b"\r" not in chunk:
                    frame = ("", orjson.loads(chunk[6:]))
                    self.frames += 1
                    return [frame]
            except orjson.JSONDecodeError:
                pass
        try:
            self._feed(chunk)
        except UnreadableAnswer as error:
            self._failure = error
            if not self._out:
                raise
        frames = self._take_frames()
        self._idle = not (self._partial_line or self._data or self._name or self._bare or self._skip_lf)
        return frames

    def _feed(self, chunk: bytes) -> None:
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == 10:
                chunk = chunk[1:]
        if b"\r" in chunk:
            # A CR at the very end ends its line now; the LF that may follow is swallowed with the next chunk.
            self._skip_lf = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            self._buffer_piece(chunk)
            return
        lines = chunk[:cut]
        if self._partial_line:
            lines = bytes(self._partial_line) + lines
            self._partial_line.clear()
        self._take_lines(lines)
        if cut < len(chunk):
            self._buffer_piece(chunk[cut:])

    def finish(self, *, is_cut: bool = False) -> list[Frame]:
        """Return what the end of the body completes: an event without its blank line counts only if its data is whole.

        `is_cut`: the connection broke, so incomplete data is not counted as damaged. Raises like `feed`.
        """
        bad_events = self.bad_events
        if self._failure is not None:
            raise self._failure
        line = bytes(self._partial_line).strip()
        is_begun = bool(self._name) or line[:1] not in (b"", b":")
        if self._partial_line:
            self._read_line(bytes(self._partial_line))
            self._partial_line.clear()
        if self._bare:
            self._close_bare()
        if self._data:
            self._dispatch()
        self.ended_mid_event = self.bad_events > bad_events or (is_begun and not self._out)
        if is_cut:
            self.bad_events = bad_events
        return self._take_frames()

    def _take_frames(self) -> list[Frame]:
        out = self._out
        if out:
            self._out = []
            if self.is_web_page:
                return []
            self.frames += len(out)
        return out

    def _buffer_piece(self, piece: bytes) -> None:
        self._partial_line += piece
        self._check_size(len(self._partial_line))

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            values = {"size": str(self._limit // (1024 * 1024))}
            raise UnreadableAnswer(Sentence("one event is larger than {size} MB", values), retryable=False)

    def _take_lines(self, lines: bytes) -> None:
        """Read whole lines. The ordinary event, one data line between blank lines, needs no work per line."""
        events = lines.split(b"\n\n")
        unended = events.pop()
        out = self._out
        is_small = len(lines) <= self._limit
        is_between = is_small and not (self._first or self._data or self._name or self._bare)
        for event in events:
            if is_between and (frame := _parse_simple_event(event)) is not None:
                out.append(frame)
                continue
            for line in event.split(b"\n"):
                self._read_line(line)
            self._read_line(b"")
            is_between = is_small and not (self._data or self._name or self._bare)
        if unended:
            for line in unended[:-1].split(b"\n"):
                self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        self._check_size(len(line))
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if self._bare and line.startswith((b"data:", b"event:", b":")):
            self._close_bare()  # it never balanced; the stream goes on
        if self._bare:
            self._append_bare_json(line)
        elif not line:
            self._dispatch()
        elif line[0] != 58:
            self._read_field(line)

    def _read_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._close_single(value.startswith((b"{", b"[DONE]")))
            self._data.append(value)
            self._data_size += len(value) + _LINE_COST
            self._check_size(self._data_size)
        elif field == b"event":
            self._close_single(another=True)
            self._name = value.decode("utf-8", "replace")
        elif field == b"error":
            # llama.cpp before September 2025 sent failures as a field of this name, at status 200.
            self._out.append(("error", _as_error(value)))
        elif line.lstrip().startswith(b"[DONE]"):
            self._out.append(("", DONE))
        elif line.lstrip().startswith((b"{", b"[")):
            self._append_bare_json(line)
        elif field not in (b"id", b"retry") and not self.unexpected_line:
            self.unexpected_line = line[:_MAX_UNEXPECTED_LINE].decode("utf-8", "replace")
            self.is_web_page = line.lstrip().startswith(b"<") and not (self.frames or self._out)

    def _close_single(self, another: bool) -> None:  # noqa: FBT001  private, and read once
        """End an event at a single newline: some gateways separate whole documents like that."""
        if another and len(self._data) == 1 and (self._data[0][:1] == b"{" or self._data[0].startswith(b"[DONE]")):
            frame = _parse_frame(self._name, self._data[0])
            if frame is not None:
                self._out.append(frame)
                self._reset_event()

    def _append_bare_json(self, line: bytes) -> None:
        """Add a line of JSON without `data:`: an error in the middle, or a whole answer in place of a stream."""
        self._bare.append(line)
        self._data_size += len(line) + _LINE_COST
        self._check_size(self._data_size)
        rest = _STRING.sub("", line.decode("utf-8", "replace"))
        depth = self._bare_depth
        self._bare_depth += rest.count("{") + rest.count("[") - rest.count("}") - rest.count("]")
        if (self._is_array_begun or self._bare_depth > 0) and self._bare[0].lstrip().startswith(b"["):
            self._emit_elements(line, _end_of_elements(line, depth))
        if self._bare_depth <= 0:
            self._close_bare()

    def _emit_elements(self, line: bytes, end: int) -> None:
        """Emit the whole elements of a stream that is one array, as Gemini writes it without alt=sse."""
        if not end:
            return
        self._bare[-1] = line[:end]
        frame = _parse_frame("", b"[" + b"\n".join(self._bare).lstrip(b"[, \t\n") + b"]")
        if frame is None:
            self._count_bad_json()
        else:
            self._out.extend(("", element) for element in frame[1])
        self._bare = [b"[" + line[end:]]
        self._data_size = 0
        self._is_array_begun = True

    def _close_bare(self) -> None:
        if self._is_array_begun:
            self._is_array_begun = False
            self.bad_events += bool(b"".join(self._bare).strip(b"[], \t"))
            self._reset_bare()
            return
        frame = _parse_frame("", b"\n".join(self._bare))
        if frame is None:
            self._count_bad_json()
        else:
            self._out.append(frame)
        self._reset_bare()

    def _count_bad_json(self) -> None:
        self.bad_events += 1
        line = self._bare[0][:_MAX_UNEXPECTED_LINE]
        self.unexpected_line = self.unexpected_line or line.decode("utf-8", "replace")

    def _reset_bare(self) -> None:
        self._bare.clear()
        self._bare_depth = 0
        self._data_size = 0

    def _dispatch(self) -> None:
        data, name = self._data, self._name
        self._reset_event()
        joined = b"\n".join(data)
        if not joined.strip():
            return
        frame = _parse_frame(name, joined)
        if frame is not None:
            self._out.append(frame)
            return
        frames: list[Frame] = []
        for line in data if len(data) > 1 else ():
            if line.strip():
                frame = _parse_frame(name, line)
                if frame is None:
                    frames.clear()
                    break
                frames.append(frame)
        self._out.extend(frames)
        self.bad_events += not frames

    def _reset_event(self) -> None:
        self._data = []
        self._name = ""
        self._data_size = 0


def _parse_simple_event(event: bytes) -> Frame | None:
    """Parse an event of `data: {…}`, alone or after one `event: name`; None for every other form."""
    name = ""
    if event.startswith(b"event: "):
        head, _, event = event.partition(b"\n")
        name = head[7:].decode("utf-8", "replace")
    if not event.startswith(b"data: {") or b"\n" in event:
        return None
    if len(event) >= _MAX_CONTAINERS and _has_too_much(event):
        return None
    try:
        return (name, orjson.loads(event[6:]))
    except orjson.JSONDecodeError:
        return None


def _parse_frame(name: str, data: bytes) -> Frame | None:
    if data.lstrip().startswith(b"[DONE]"):
        return (name, DONE)
    if _has_too_much(data):
        return None
    try:
        return (name, loads(data))
    except ValueError:
        return None


def _has_too_much(data: bytes) -> bool:
    """Whether JSON has more objects and lists than may be read at once."""
    if len(data) < _MAX_CONTAINERS or _count_containers(data) <= _MAX_CONTAINERS:
        return False
    # The text of an answer may be full of brackets. The start is mostly enough, and the whole takes long.
    parts = (data[:_START_SIZE], data)
    return any(_count_containers(_STRING_IN_BYTES.sub(b"", part)) > _MAX_CONTAINERS for part in parts)


def _count_containers(data: bytes) -> int:
    return data.count(b"{") + data.count(b"[")


def _end_of_elements(line: bytes, depth: int) -> int:
    """Return where the last element of an array that the line completes ends; 0 if it completes none."""
    end = 0
    for match in _STRING_OR_BRACKET.finditer(line):
        if match[0] in b"{[":
            depth += 1
        elif match[0] in b"}]":
            depth -= 1
            if depth == 1:
                end = match.end()
    return end


def _as_error(value: bytes) -> Any:
    try:
        parsed = loads(value)
    except ValueError:
        parsed = value.decode("utf-8", "replace")
    return parsed if is_object(parsed) and "error" in parsed else {"error": parsed}
