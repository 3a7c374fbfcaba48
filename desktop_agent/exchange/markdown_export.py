"""A conversation as Markdown that reads well in any viewer: the branch in view, without ids."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from desktop_agent.exchange.archive import picture_name, pictures_of
from desktop_agent.exchange.branch_view import (
    ShownCall,
    Speaker,
    Turn,
    branch_turns,
    cited_sources,
    duration_words,
    models_of,
    one_line,
    plain_output,
)
from desktop_agent.types.blocks import (
    Block,
    Citation,
    Image,
    Json,
    Outcome,
    ResultPart,
    ServerStep,
    StoredSource,
    Summary,
    Text,
    Thinking,
    UrlSource,
)
from desktop_agent.types.conversation_tree import UNTITLED, ConversationTree
from desktop_agent.types.hidden_characters import mark_hidden
from desktop_agent.types.messages import split_attached

_SPEAKERS = {Speaker.PERSON: "You", Speaker.ASSISTANT: "Assistant", Speaker.PROGRAM: "Program"}
OUTCOME_WORDS = {
    Outcome.SUCCEEDED: "done",
    Outcome.FAILED: "failed",
    Outcome.DENIED: "denied",
    Outcome.CANCELLED: "cancelled",
    Outcome.TIMED_OUT: "timed out",
    Outcome.LIMIT: "limit reached",
    Outcome.UNKNOWN: "unknown",
}
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_SIGNIFICANT = re.compile(r"([\\`*_\[\]<>&|~#$])")


@dataclass(frozen=True, slots=True)
class MarkdownExport:
    """The text, and the stored pictures that it shows: they belong beside it, under `archive.picture_name`."""

    text: str
    pictures: tuple[StoredSource, ...]


def export_markdown(tree: ConversationTree, *, with_pictures: bool = True) -> MarkdownExport:
    """Return the branch in view. Without pictures they are named only."""
    sources: dict[str, StoredSource] = {}
    if with_pictures:
        for image in (image for message in tree.branch() for image in pictures_of(message)):
            if isinstance(image.source, StoredSource):
                sources.setdefault(picture_name(image.source), image.source)
    parts = [f"# {escape_markdown(one_line(tree.title)) or UNTITLED}", _details(tree)]
    parts += (part for turn in branch_turns(tree) for part in _turn(turn, with_pictures=with_pictures))
    text = "\n\n".join(part for part in parts if part) + "\n"
    return MarkdownExport(text.encode("utf-8", "replace").decode(), tuple(sources.values()))


def _details(tree: ConversationTree) -> str:
    words = [f"{tree.created_at:%Y-%m-%d}", *map(escape_markdown, models_of(tree))]
    return f"*{' · '.join(words)}*"


def _turn(turn: Turn, *, with_pictures: bool) -> Iterator[str]:
    yield f"## {_SPEAKERS[turn.speaker]}"
    for part in turn.parts:
        yield from _part(part, turn.speaker, with_pictures=with_pictures)
    if not turn.is_whole:
        yield "*Not finished*"


def _part(part: Block | ShownCall, speaker: Speaker, *, with_pictures: bool) -> Iterator[str]:
    match part:
        case Text():
            text, attached = split_attached(part.text) if speaker is Speaker.PERSON else (part.text, ())
            yield close_fence(_plain_lines(text))
            for file in attached:
                yield f"**Attached: {code_span(file.title)}**"
                yield fenced(file.text)
            yield _sources(part.citations)
        case Thinking():
            if part.text:
                time = f" ({duration_words(part.seconds)})" if part.seconds is not None else ""
                yield _quote(f"**Thinking**{time}\n\n{part.text}")
        case Image():
            yield _image(part, with_pictures=with_pictures)
        case ShownCall():
            yield from _call(part, with_pictures=with_pictures)
        case ServerStep():
            yield f"**Server step: {code_span(part.name)}**"
            yield fenced(part.text) if part.text else ""
        case Summary():
            yield _quote(f"**Summary of what came before**\n\n{part.text}")
        case _:
            raw: Any = getattr(part, "raw", None)
            yield "**Content that this program does not know**"
            yield fenced(pretty_json(raw), "json")


def _call(shown: ShownCall, *, with_pictures: bool) -> Iterator[str]:
    outcome = OUTCOME_WORDS[shown.result.outcome] if shown.result else "no result"
    yield f"**Tool call: {code_span(shown.call.name)}** · {outcome}"
    malformed = shown.call.malformed
    yield fenced(malformed) if malformed is not None else fenced(pretty_json(shown.arguments), "json")
    if shown.result and shown.result.content:
        yield "Result:"
        for part in shown.result.content:
            yield _result_part(part, with_pictures=with_pictures)


def _result_part(part: ResultPart, *, with_pictures: bool) -> str:
    if isinstance(part, Image):
        return _image(part, with_pictures=with_pictures)
    if isinstance(part, Json):
        return fenced(pretty_json(part.value), "json")
    return "\n\n".join(filter(None, (fenced(plain_output(part.text)), _sources(part.citations))))


def _image(image: Image, *, with_pictures: bool) -> str:
    name = escape_markdown(one_line(image.name or "")) or "Picture"
    if isinstance(image.source, UrlSource):
        return f"[{name}]({_target(image.source.url)})"
    if isinstance(image.source, StoredSource) and with_pictures:
        return f"![{name}]({picture_name(image.source)})"
    return f"*[{name}]*"


def _sources(citations: Sequence[Citation]) -> str:
    lines = ["Sources:", ""]
    for number, source in enumerate(cited_sources(tuple(citations)), 1):
        title = escape_markdown(one_line(source.title or source.url or ""))
        is_link = source.url is not None and source.url.startswith(("http://", "https://"))
        lines.append(f"{number}. [{title}]({_target(source.url or '')})" if is_link else f"{number}. {title}")
    return "\n".join(lines) if len(lines) > 2 else ""


def _target(url: str) -> str:
    """Return an address that ends where the link's brackets do."""
    return quote(url, safe="!#$%&'*+,/:;=?@~", errors="replace")


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in _plain_lines(text).split("\n"))


def close_fence(text: str) -> str:
    """Return a text with its last code block closed, so that it does not take in what follows."""
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if not match:
            continue
        if not fence:
            fence = match[1]
        elif match[1][0] == fence[0] and len(match[1]) >= len(fence) and not line[match.end() :].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def fenced(text: str, language: str = "") -> str:
    """Return a code block whose fence is longer than any run of its sign inside."""
    runs = (len(run) for run in re.findall(r"`+", text))
    fence = "`" * max(3, max(runs, default=0) + 1)
    return f"{fence}{language}\n{_plain_lines(mark_hidden(text))}\n{fence}"


def code_span(text: str) -> str:
    """Return a text as code in a line."""
    text = " ".join(mark_hidden(text).split())[:200]
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    space = " " if "`" in text else ""
    return f"{fence}{space}{text or 'tool'}{space}{fence}"


def escape_markdown(text: str) -> str:
    """Return words on one line that mean nothing else in Markdown."""
    return _SIGNIFICANT.sub(r"\\\1", " ".join(mark_hidden(text).split()))


def pretty_json(value: object) -> str:
    """Return JSON over several lines, with lone surrogates as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)
