"""Read the parts of a Gemini answer: text, thoughts, signatures, calls, server steps, and grounding citations.

Positions on the wire are bytes of the answer in UTF-8 (Segment); ours are characters of the piece of text.
"""

from collections.abc import Iterable
from typing import Any

from desktop_agent.providers.dialects.answer_pictures import parse_picture
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.json_codec import (
    array_in,
    dumps,
    is_array,
    is_object,
    nonempty_text,
    object_in,
    objects_in,
    repair_json,
    repair_text,
)
from desktop_agent.types.blocks import Citation, Image, ServerStep, Unknown

_Span = tuple[int, int, str]


class Grounding:
    """Collects what the chunks of one answer report about sources. Chunks repeat it or bring it in parts."""

    def __init__(self) -> None:
        self._search: dict[str, Any] = {}
        self._pages: dict[str, Any] = {}
        self._sources: list[dict[str, Any]] = []

    def add(self, candidate: dict[str, Any]) -> None:
        """Add what one candidate carries."""
        self._search |= {name: value for name, value in object_in(candidate, "groundingMetadata").items() if value}
        self._pages |= {name: value for name, value in object_in(candidate, "urlContextMetadata").items() if value}
        cited = object_in(candidate, "citationMetadata")
        for source in [*objects_in(cited, "citationSources"), *objects_in(cited, "citations")]:
            if source not in self._sources:
                self._sources.append(source)

    def citations(self, before: str, text: str) -> tuple[Citation, ...]:
        """Return the citations for the last piece of text; `before` is the text of the answer before it.

        Citations of an earlier piece, or without a place, have no offsets.
        """
        supported = [*self._supported_citations(), *self._copied_citations()]
        offsets = _OffsetMap(before, text, [span for span, _ in supported if span is not None])
        citations = [source.model_copy(update=offsets.of(span)) for span, source in supported]
        return tuple(dict.fromkeys(citations))

    def steps(self) -> list[ServerStep]:
        """Return what the server did for this answer: its searches, and the pages that it read."""
        steps: list[ServerStep] = []
        queries = [query for query in array_in(self._search, "webSearchQueries") if isinstance(query, str)]
        if queries or "searchEntryPoint" in self._search:
            raw = {"groundingMetadata": repair_json(self._search)}
            text = repair_text("\n".join(queries))
            steps.append(ServerStep(provider=PROVIDER, name="google_search", text=text, raw=raw))
        if self._pages:
            read = [entry.get("retrievedUrl") for entry in objects_in(self._pages, "urlMetadata")]
            raw = {"urlContextMetadata": repair_json(self._pages)}
            text = repair_text("\n".join(url for url in read if isinstance(url, str)))
            steps.append(ServerStep(provider=PROVIDER, name="url_context", text=text, raw=raw))
        return steps

    def _supported_citations(self) -> list[tuple[_Span | None, Citation]]:
        """Return supports with each of their chunks, then the chunks without a support."""
        chunks = [_chunk_citation(chunk) for chunk in array_in(self._search, "groundingChunks")]
        citations: list[tuple[_Span | None, Citation]] = []
        used: set[int] = set()
        for support in objects_in(self._search, "groundingSupports"):
            span = _span(object_in(support, "segment"))
            for index in array_in(support, "groundingChunkIndices"):
                chunk = chunks[index] if type(index) is int and 0 <= index < len(chunks) else None
                if chunk is not None:
                    used.add(index)
                    citations.append((span, chunk))
        unused = (chunk for index, chunk in enumerate(chunks) if index not in used)
        return [*citations, *((None, chunk) for chunk in unused if chunk is not None)]

    def _copied_citations(self) -> list[tuple[_Span | None, Citation]]:
        return [
            (_span(source), Citation(title=nonempty_text(source.get("title")), url=nonempty_text(source.get("uri"))))
            for source in self._sources
        ]


class _OffsetMap:
    """Maps bytes of the whole text to characters of its last piece; each text is walked once."""

    def __init__(self, before: str, text: str, spans: Iterable[_Span]) -> None:
        self._before, self._text = before, text
        data = (before + text).encode("utf-8", "surrogatepass")
        self._size = len(data)
        self._characters: dict[int, int] = {}
        position, count = 0, 0
        for offset in sorted({edge for start, end, _ in spans for edge in (start, end) if edge <= self._size}):
            count += len(data[position:offset].decode("utf-8", "ignore"))
            position = offset
            self._characters[offset] = count

    def of(self, span: _Span | None) -> dict[str, int]:
        """Return `start` and `end` in the last piece, or nothing."""
        if span is None:
            return {}
        start, end, quoted = span
        first, last = self._characters.get(start), self._characters.get(end)
        if first is not None and last is not None:
            shift = len(self._before)
            if first >= shift and (not quoted or (self._before + self._text)[first:last] == quoted):
                return {"start": first - shift, "end": last - shift}
        # The offsets have another origin: search for the words, if they occur once.
        if quoted and self._text.count(quoted) == 1:
            start_index = self._text.index(quoted)
            return {"start": start_index, "end": start_index + len(quoted)}
        return {}


def _span(segment: dict[str, Any]) -> _Span | None:
    """Return start (omitted by the server when it is 0), end, and the words in between if they are given."""
    start, end, quoted = segment.get("startIndex", 0), segment.get("endIndex"), segment.get("text")
    if type(start) is not int or type(end) is not int or not 0 <= start < end:
        return None
    return start, end, quoted if isinstance(quoted, str) else ""


def _chunk_citation(chunk: Any) -> Citation | None:
    """Parse a source: `web`, `retrievedContext`, `maps` or `image`, each with uri, title and text."""
    for source in chunk.values() if is_object(chunk) else ():
        if is_object(source) and (source.get("uri") or source.get("title")):
            quoted = nonempty_text(source.get("text"))
            return Citation(
                title=nonempty_text(source.get("title")), url=nonempty_text(source.get("uri")), quoted=quoted
            )
    return None


PROVIDER = "gemini"


class PartReader:
    """Reads the parts of one answer into a PartBuilder."""

    def __init__(self, builder: PartBuilder) -> None:
        self._builder = builder
        self._show = builder.main.text
        self._calls = 0
        self._call_id: str | None = None  # of the open call
        self._calls_read: list[tuple[str | None, Any]] = []
        self._before = ""  # the answer's text up to the piece that is open
        self._open: list[str] = []
        # A signature is kept until later: citations come after it, and belong to the text before it.
        self._signature: dict[str, Any] | None = None

    def text(self, piece: str) -> None:
        """Add a piece of text without a signature."""
        if not piece:
            return
        if self._signature is not None or self._call_id is not None:
            self.release()
        self._open.append(piece)
        self._show(piece)

    def part(self, part: dict[str, Any]) -> None:
        """Read any part."""
        signature = part.get("thoughtSignature")
        if not isinstance(signature, str) or not signature:
            signature = None
        call, text = part.get("functionCall"), part.get("text")
        if is_object(call) and not any(call.values()):  # the placeholder that gateways write beside a text
            part = {name: value for name, value in part.items() if name != "functionCall"}
            call = None
        if is_object(call) or is_array(call):
            for entry in call if is_array(call) else [call]:
                self._call(entry if is_object(entry) else {"args": entry}, signature)
        elif isinstance(text, str) or (text is None and not part.keys() - {"thought", "thoughtSignature"}):
            if part.get("thought") is True:
                self._thought(text or "", signature)
            elif signature is None:
                self.text(text or "")
            else:
                self._signed_text(text or "", signature)
        elif part.get("thought") is not True or "inlineData" not in part:  # else a draft of the picture that follows
            self.release()
            self._builder.add_block(_parse_block(part))

    def close(self, grounding: Grounding) -> tuple[Citation, ...]:
        """End the answer. Returns citations without an open text."""
        citations = grounding.citations(self._before, "".join(self._open))
        has_text = bool(self._open)
        if citations and has_text:
            self._builder.main.end_text(citations)
        self.release()
        return () if has_text else citations

    def release(self) -> None:
        """Close the open text, followed by its signature, and the open call, which may have been repeated."""
        if self._call_id is not None:
            self._call_id = None
            self._builder.end_calls(index=self._calls)
        if self._open:
            self._before += "".join(self._open)
            self._open.clear()
        if self._signature is not None:
            state, self._signature = self._signature, None
            self._builder.main.end_thinking()
            self._builder.main.end_thinking(**state)

    def _signed_text(self, text: str, signature: str) -> None:
        self.text(text)
        if self._signature is not None:
            self.release()
        self._signature = {"thoughtSignature": signature, "on": "text", "part_text": text}

    def _thought(self, text: str, signature: str | None) -> None:
        """Add a summary. One with a signature is a block of its own."""
        if not text and signature is None:
            return
        self.release()
        if signature is None:
            self._builder.main.thinking(text, thought=True)
            return
        self._builder.main.end_thinking()
        self._builder.main.thinking(text, thought=True, thoughtSignature=signature)
        self._builder.main.end_thinking()

    def _call(self, call: dict[str, Any], signature: str | None) -> None:
        """Add a call, which comes whole; missing arguments are none.

        Arguments in pieces (Vertex, if requested) are not read, and a call without them must not run.
        """
        call_id, name = call.get("id"), call.get("name")
        own = call_id if isinstance(call_id, str) and call_id else None
        named = name if isinstance(name, str) else None
        arguments: Any = call.get("args")
        if own is None and self._builder.main.has_repeated and (named, arguments) in self._calls_read:
            return  # a server that repeats everything
        self._calls_read.append((named, arguments))
        if own is None or own != self._call_id or not self._builder.calls.continues_last(named, arguments):
            self.release()
            self._calls += 1
        index = self._calls
        if call.get("partialArgs") or call.get("willContinue"):
            arguments = f"in pieces: {dumps(call).decode()}"
        self._builder.add_call_fragment(index=index, id=own, name=named, arguments=arguments)
        if own is not None:
            # Only ids that the server gave go back to it.
            self._builder.calls.attach_metadata(None, {"id": own})
        if signature is not None:
            self._builder.calls.attach_state(None, {"thoughtSignature": signature, "on": "functionCall"})
        if own is None:
            self._builder.end_calls(index=index)
        else:
            self._call_id = own


def _parse_block(part: dict[str, Any]) -> ServerStep | Image | Unknown:
    """Parse what is neither text nor a call: kept whole, with its signature."""
    signature = part.get("thoughtSignature")
    metadata = {"thoughtSignature": repair_text(signature)} if isinstance(signature, str) and signature else {}
    picture = parse_picture(object_in(part, "inlineData").get("data"), PROVIDER, metadata)
    if picture is not None:
        return picture
    raw = repair_json(part)
    code, outcome = object_in(part, "executableCode"), object_in(part, "codeExecutionResult")
    if code:
        return ServerStep(provider=PROVIDER, name="code_execution", text=_text(code.get("code")), raw=raw)
    if outcome:
        return ServerStep(provider=PROVIDER, name="code_execution_result", text=_text(outcome.get("output")), raw=raw)
    for name, field in (("toolCall", "args"), ("toolResponse", "response")):
        step = object_in(part, name)
        if step:
            tool = step.get("toolType")
            return ServerStep(
                provider=PROVIDER,
                name=repair_text(tool).lower() if isinstance(tool, str) and tool else name,
                text=_text(step.get(field)),
                raw=raw,
            )
    return Unknown(raw=raw, provider=PROVIDER)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return repair_text(value)
    return dumps(value).decode() if value else ""
