"""Where an answer's claims come from: `groundingMetadata`, `urlContextMetadata` and `citationMetadata`.

Positions on the wire are bytes of the answer's text in UTF-8 (ai.google.dev/api/generate-content, Segment); ours are
characters of the piece of text that the citation stands in.
"""

from collections.abc import Iterable
from typing import Any

from desktop_agent.providers.transport.json_text import (
    array_in,
    is_object,
    object_in,
    objects_in,
    repair_json,
    repair_text,
)
from desktop_agent.vocabulary.blocks import Citation, ServerStep

_Span = tuple[int, int, str]


class Grounding:
    """Collects what the chunks of one answer say about sources. Chunks repeat it or bring it in parts."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._search: dict[str, Any] = {}
        self._pages: dict[str, Any] = {}
        self._sources: list[dict[str, Any]] = []

    def add(self, candidate: dict[str, Any]) -> None:
        """Take what one candidate carries."""
        self._search |= {name: value for name, value in object_in(candidate, "groundingMetadata").items() if value}
        self._pages |= {name: value for name, value in object_in(candidate, "urlContextMetadata").items() if value}
        cited = object_in(candidate, "citationMetadata")
        for source in [*objects_in(cited, "citationSources"), *objects_in(cited, "citations")]:
            if source not in self._sources:
                self._sources.append(source)

    def citations(self, before: str, text: str) -> tuple[Citation, ...]:
        """What is cited, for the last piece of text; `before` is the answer's text that came before it.

        What is said about an earlier piece, or has no place, stands without one.
        """
        wanted = [*self._supported_citations(), *self._copied_citations()]
        places = _OffsetMap(before, text, [span for span, _ in wanted if span is not None])
        found = [source.model_copy(update=places.of(span)) for span, source in wanted]
        return tuple(dict.fromkeys(found))

    def steps(self) -> list[ServerStep]:
        """What the server did for this answer: its searches, and the pages that it read."""
        steps: list[ServerStep] = []
        queries = [query for query in array_in(self._search, "webSearchQueries") if isinstance(query, str)]
        if queries or "searchEntryPoint" in self._search:
            raw = {"groundingMetadata": repair_json(self._search)}
            text = repair_text("\n".join(queries))
            steps.append(ServerStep(provider=self._provider, name="google_search", text=text, raw=raw))
        if self._pages:
            read = [entry.get("retrievedUrl") for entry in objects_in(self._pages, "urlMetadata")]
            raw = {"urlContextMetadata": repair_json(self._pages)}
            text = repair_text("\n".join(url for url in read if isinstance(url, str)))
            steps.append(ServerStep(provider=self._provider, name="url_context", text=text, raw=raw))
        return steps

    def _supported_citations(self) -> list[tuple[_Span | None, Citation]]:
        """Supports with each of their chunks, then the chunks that support nothing in particular."""
        chunks = [_chunk_citation(chunk) for chunk in array_in(self._search, "groundingChunks")]
        found: list[tuple[_Span | None, Citation]] = []
        used: set[int] = set()
        for support in objects_in(self._search, "groundingSupports"):
            span = _span(object_in(support, "segment"))
            for index in array_in(support, "groundingChunkIndices"):
                chunk = chunks[index] if type(index) is int and 0 <= index < len(chunks) else None
                if chunk is not None:
                    used.add(index)
                    found.append((span, chunk))
        return [*found, *((None, chunk) for at, chunk in enumerate(chunks) if at not in used and chunk is not None)]

    def _copied_citations(self) -> list[tuple[_Span | None, Citation]]:
        return [
            (_span(source), Citation(title=_text_in(source, "title"), url=_text_in(source, "uri")))
            for source in self._sources
        ]


class _OffsetMap:
    """Bytes of the whole text to characters of its last piece, each text walked once."""

    def __init__(self, before: str, text: str, spans: Iterable[_Span]) -> None:
        self._before, self._text = before, text
        data = (before + text).encode("utf-8", "surrogatepass")
        self._size = len(data)
        self._characters: dict[int, int] = {}
        at, count = 0, 0
        for offset in sorted({each for start, end, _ in spans for each in (start, end) if each <= self._size}):
            count += len(data[at:offset].decode("utf-8", "ignore"))
            at = offset
            self._characters[offset] = count

    def of(self, span: _Span | None) -> dict[str, int]:
        """`start` and `end` in the last piece, or nothing."""
        if span is None:
            return {}
        start, end, quoted = span
        first, last = self._characters.get(start), self._characters.get(end)
        if first is not None and last is not None:
            shift = len(self._before)
            if first >= shift and (not quoted or (self._before + self._text)[first:last] == quoted):
                return {"start": first - shift, "end": last - shift}
        # Counted from somewhere else: the words themselves say where they stand, if they stand there once.
        if quoted and self._text.count(quoted) == 1:
            found = self._text.index(quoted)
            return {"start": found, "end": found + len(quoted)}
        return {}


def _span(segment: dict[str, Any]) -> _Span | None:
    """Start (left out when it is 0), end, and the words in between where they are given."""
    start, end, quoted = segment.get("startIndex", 0), segment.get("endIndex"), segment.get("text")
    if type(start) is not int or type(end) is not int or not 0 <= start < end:
        return None
    return start, end, quoted if isinstance(quoted, str) else ""


def _chunk_citation(chunk: Any) -> Citation | None:
    """{web|retrievedContext|maps|image: {uri, title, text}}."""
    for source in chunk.values() if is_object(chunk) else ():
        if is_object(source) and (source.get("uri") or source.get("title")):
            quoted = _text_in(source, "text")
            return Citation(title=_text_in(source, "title"), url=_text_in(source, "uri"), quoted=quoted)
    return None


def _text_in(source: dict[str, Any], name: str) -> str | None:
    value = source.get(name)
    return repair_text(value) if isinstance(value, str) and value else None
