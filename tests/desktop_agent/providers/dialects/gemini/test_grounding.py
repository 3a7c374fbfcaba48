"""Grounding: offsets count bytes on the wire, and characters in our citations."""

from typing import Any

from desktop_agent.types.blocks import Citation, ServerStep
from desktop_agent.types.provider_events import TextClosed, ThinkingBlock
from tests.desktop_agent.providers.dialects.gemini.stream import answer, blocks, chunk, ending, read_events, sse

TEXT = "Zürich 🌍 liegt am See. Es regnet."
PAGES = [{"web": {"uri": "https://a.example", "title": "A"}}, {"web": {"uri": "https://b.example", "title": "B"}}]


def segment_of(quoted: str, text: str = TEXT) -> dict[str, Any]:
    """Return the segment of the quoted words, with byte offsets as the server counts them."""
    start = len(text[: text.index(quoted)].encode())
    segment = {"endIndex": start + len(quoted.encode()), "text": quoted}
    return {**segment, "startIndex": start} if start else segment


def grounded(*supports: tuple[dict[str, Any], list[int]], **more: Any) -> dict[str, Any]:
    listed = [{"segment": segment, "groundingChunkIndices": indices} for segment, indices in supports]
    return {"groundingMetadata": {"groundingChunks": PAGES, "groundingSupports": listed, **more}}


def cited(data: bytes) -> list[tuple[str | None, str]]:
    """Return each citation's page and the words that it cites."""
    message = answer(data)
    return [
        (citation.url, block.text[citation.start : citation.end] if citation.start is not None else "")
        for block in message.blocks
        if block.type == "text"
        for citation in block.citations
    ]


def test_bytes_become_characters() -> None:
    grounding = grounded((segment_of("Zürich 🌍"), [0]), (segment_of("Es regnet."), [1, 0]))
    data = sse(chunk({"text": TEXT[:9]}), chunk({"text": TEXT[9:]}), chunk(finish="STOP", **grounding))
    assert cited(data) == [
        ("https://a.example", "Zürich 🌍"),
        ("https://b.example", "Es regnet."),
        ("https://a.example", "Es regnet."),
    ]
    details = ending(data).details
    assert details is not None
    assert details["citations"][0] == {"title": "A", "url": "https://a.example", "start": 0, "end": 8}


def test_the_signature_stays_behind_its_text_and_its_citations() -> None:
    signature = {"text": "", "thoughtSignature": "S"}
    data = sse(
        chunk({"text": TEXT}), chunk(signature), chunk(finish="STOP", **grounded((segment_of("Es regnet."), [0])))
    )
    kinds = [type(event) for event in read_events(data)[0] if isinstance(event, (TextClosed, ThinkingBlock))]
    assert kinds == [TextClosed, ThinkingBlock]
    assert cited(data) == [("https://a.example", "Es regnet."), ("https://b.example", "")]


def test_words_that_stand_elsewhere_are_found() -> None:
    shifted = {"startIndex": 3, "endIndex": 13, "text": "Es regnet."}
    data = sse(
        chunk({"text": TEXT}, finish="STOP", **grounded((shifted, [0]), ({"startIndex": 900, "endIndex": 999}, [1])))
    )
    assert cited(data) == [("https://a.example", "Es regnet."), ("https://b.example", "")]


def test_offsets_count_from_the_first_text() -> None:
    code = {"executableCode": {"code": "1"}}
    grounding = grounded((segment_of("Zürich"), [0]), (segment_of("Es regnet."), [1]))
    data = sse(chunk({"text": TEXT[:9]}, code, {"text": TEXT[9:]}), chunk(finish="STOP", **grounding))
    assert cited(data) == [("https://a.example", ""), ("https://b.example", "Es regnet.")]


def test_sources_without_text_stand_in_the_details() -> None:
    data = sse(chunk(finish="STOP", **grounded()))
    details = ending(data).details
    assert details is not None
    assert [citation["url"] for citation in details["citations"]] == ["https://a.example", "https://b.example"]


def test_the_search_is_a_step() -> None:
    entry = {"renderedContent": "<div>chips</div>"}
    first: dict[str, Any] = {"groundingMetadata": {"webSearchQueries": ["wetter zürich", "regen"]}}
    last = grounded((segment_of("Es regnet."), [0]), searchEntryPoint=entry)
    data = sse(chunk({"text": TEXT}, **first), chunk(finish="STOP", **last))
    step = blocks(data)[-1]
    assert isinstance(step, ServerStep)
    assert (step.name, step.text) == ("google_search", "wetter zürich\nregen")
    assert step.raw["groundingMetadata"]["searchEntryPoint"] == entry
    assert step.raw["groundingMetadata"]["groundingChunks"] == PAGES


def test_pages_that_were_read() -> None:
    pages: Any = {
        "urlMetadata": [{"retrievedUrl": "https://a.example", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"}]
    }
    steps = blocks(sse(chunk({"text": "x"}, finish="STOP", urlContextMetadata=pages)))
    assert [(step.name, step.text) for step in steps if isinstance(step, ServerStep)] == [
        ("url_context", "https://a.example")
    ]


def test_copied_passages_of_both_spellings() -> None:
    for name in ("citationSources", "citations"):
        source = {"endIndex": 7, "uri": "https://c.example", "license": "mit"}
        metadata: dict[str, Any] = {"citationMetadata": {name: [source]}}
        data = sse(chunk({"text": TEXT}, **metadata), chunk(finish="STOP", **metadata))
        assert cited(data) == [("https://c.example", "Zürich")]


def test_sources_of_other_kinds_and_nonsense() -> None:
    chunks: list[Any] = [
        {"retrievedContext": {"uri": "f", "title": "T", "text": "said"}},
        {"web": {}},
        None,
        {"maps": {"title": "M"}},
    ]
    supports: list[Any] = [
        {"segment": segment_of("Es regnet."), "groundingChunkIndices": [0, 1, 2, 9, -1, "x"]},
        {"segment": None},
    ]
    metadata: dict[str, Any] = {"groundingMetadata": {"groundingChunks": chunks, "groundingSupports": supports}}
    events = read_events(sse(chunk({"text": TEXT}, finish="STOP", **metadata)))[0]
    (closed,) = [event for event in events if isinstance(event, TextClosed)]
    start = TEXT.index("Es")
    assert closed.citations == (
        Citation(title="T", url="f", quoted="said", start=start, end=start + 10),
        Citation(title="M"),
    )
