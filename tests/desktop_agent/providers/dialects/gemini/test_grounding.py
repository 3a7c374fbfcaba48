"""Sources: bytes on the wire, characters here."""

from typing import Any

from desktop_agent.types.blocks import Citation, ServerStep
from desktop_agent.types.provider_events import TextClosed, ThinkingBlock
from tests.desktop_agent.providers.dialects.gemini.stream import answer, blocks, chunk, ending, read, sse

TEXT = "Zürich 🌍 liegt am See. Es regnet."
PAGES = [{"web": {"uri": "https://a.example", "title": "A"}}, {"web": {"uri": "https://b.example", "title": "B"}}]


def at(words: str, text: str = TEXT) -> dict[str, Any]:
    """The segment of these words, as the server counts."""
    start = len(text[: text.index(words)].encode())
    segment = {"endIndex": start + len(words.encode()), "text": words}
    return {**segment, "startIndex": start} if start else segment


def grounded(*supports: tuple[dict[str, Any], list[int]], **more: Any) -> dict[str, Any]:
    listed = [{"segment": segment, "groundingChunkIndices": indices} for segment, indices in supports]
    return {"groundingMetadata": {"groundingChunks": PAGES, "groundingSupports": listed, **more}}


def cited(data: bytes) -> list[tuple[str | None, str]]:
    """Each citation's page, and the words it stands at."""
    message = answer(data)
    return [
        (citation.url, block.text[citation.start : citation.end] if citation.start is not None else "")
        for block in message.blocks
        if block.type == "text"
        for citation in block.citations
    ]


def test_bytes_become_characters() -> None:
    found = grounded((at("Zürich 🌍"), [0]), (at("Es regnet."), [1, 0]))
    data = sse(chunk({"text": TEXT[:9]}), chunk({"text": TEXT[9:]}), chunk(finish="STOP", **found))
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
    data = sse(chunk({"text": TEXT}), chunk(signature), chunk(finish="STOP", **grounded((at("Es regnet."), [0]))))
    kinds = [type(each) for each in read(data)[0] if isinstance(each, (TextClosed, ThinkingBlock))]
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
    found = grounded((at("Zürich"), [0]), (at("Es regnet."), [1]))
    data = sse(chunk({"text": TEXT[:9]}, code, {"text": TEXT[9:]}), chunk(finish="STOP", **found))
    assert cited(data) == [("https://a.example", ""), ("https://b.example", "Es regnet.")]


def test_sources_without_text_stand_in_the_details() -> None:
    data = sse(chunk(finish="STOP", **grounded()))
    details = ending(data).details
    assert details is not None
    assert [each["url"] for each in details["citations"]] == ["https://a.example", "https://b.example"]


def test_the_search_is_a_step() -> None:
    entry = {"renderedContent": "<div>chips</div>"}
    first: dict[str, Any] = {"groundingMetadata": {"webSearchQueries": ["wetter zürich", "regen"]}}
    last = grounded((at("Es regnet."), [0]), searchEntryPoint=entry)
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
    found = blocks(sse(chunk({"text": "x"}, finish="STOP", urlContextMetadata=pages)))
    assert [(each.name, each.text) for each in found if isinstance(each, ServerStep)] == [
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
        {"segment": at("Es regnet."), "groundingChunkIndices": [0, 1, 2, 9, -1, "x"]},
        {"segment": None},
    ]
    metadata: dict[str, Any] = {"groundingMetadata": {"groundingChunks": chunks, "groundingSupports": supports}}
    events = read(sse(chunk({"text": TEXT}, finish="STOP", **metadata)))[0]
    (closed,) = [each for each in events if isinstance(each, TextClosed)]
    start = TEXT.index("Es")
    assert closed.citations == (
        Citation(title="T", url="f", quoted="said", start=start, end=start + 10),
        Citation(title="M"),
    )
