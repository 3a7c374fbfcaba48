"""A conversation as one HTML file that looks like the window, light and dark, and loads nothing.

It has no script, and its policy allows none: styles by their digest, pictures from the file itself, nothing else.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from html import escape as escape_html
from importlib.util import find_spec
from typing import Any, Final

from desktop_agent.data_files import load_text
from desktop_agent.exchange.archive import ReadPicture
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
from desktop_agent.exchange.markdown_export import pretty_json
from desktop_agent.markdown.latex import COLOR, TypesetAnswer, TypesetFormula
from desktop_agent.processes.worker import Worker, WorkerFailed
from desktop_agent.processes.worker_process import WorkerLimits
from desktop_agent.types.blocks import (
    Base64Source,
    Block,
    Citation,
    Image,
    Json,
    Outcome,
    ResultPart,
    ServerStep,
    Summary,
    Text,
    Thinking,
    ToolUse,
    UrlSource,
    decode_base64,
)
from desktop_agent.types.conversation_tree import UNTITLED, ConversationTree
from desktop_agent.types.errors import ExtraMissing
from desktop_agent.types.hidden_characters import mark_hidden
from desktop_agent.types.messages import split_attached
from desktop_agent.types.tool_calls import tool_title

_SAID = {Speaker.PERSON: "You said", Speaker.ASSISTANT: "Assistant said", Speaker.PROGRAM: "The program noted"}
# Word, sign and colour: many people cannot tell the state by its colour alone.
_OUTCOMES = {
    Outcome.SUCCEEDED: ("✓ Done", "success"),
    Outcome.FAILED: ("✕ Failed", "danger"),
    Outcome.DENIED: ("✕ Denied", "danger"),
    Outcome.CANCELLED: ("■ Cancelled", "muted"),
    Outcome.TIMED_OUT: ("⚠ Timed out", "warning"),
    Outcome.LIMIT: ("⚠ Limit reached", "warning"),
    Outcome.UNKNOWN: ("? Unknown", "warning"),
}
_NO_RESULT = ("? No result", "warning")
_UNDONE = ("✓ Undone", "muted")
_MAX_LABEL = 110
_MAX_HIGHLIGHTED = 200_000
_MAX_FAILURES = 3
# Formulas are lowered below their line by so many steps of a sixteenth of an em.
_STEPS, _DEPTHS = 16, 97
_SVG = re.compile(
    r'<svg xmlns="http://www\.w3\.org/2000/svg" viewBox="[-\d. ]+">'
    r"(?:</?(?:g|path|rect|line|polyline|polygon|circle|ellipse)"
    r'(?: (?:d|fill|stroke|stroke-[a-z]+|points|transform|width|height|c?[xy][12]?|r[xy]?)="[-+\w.,() #]*")* ?/?>)*'
    r"</svg>"
)
_LIMITS: Final = WorkerLimits(memory=500_000_000, seconds=1.0, call_seconds=10.0, niceness=5)


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A file that a call changes: how many lines were added and removed, and a diff, or a text.

    `is_nothing`: the file certainly is as it was. `is_undone`: the call changed it, and was undone.
    """

    path: str
    counts: tuple[int, int]
    text: str
    is_diff: bool = True
    is_nothing: bool = False
    is_undone: bool = False


FindChanges = Callable[[ShownCall], Sequence[ShownChange]]
"""Returns the files that a call changes."""


def write_html(
    tree: ConversationTree,
    write: Callable[[bytes], object],
    read_picture: ReadPicture,
    find_changes: FindChanges,
    on_turn: Callable[[int, int], object],
) -> None:
    """Write the branch in view as a page, calling `on_turn` with how many of how many turns are written.

    It blocks, and raises ExtraMissing where the Markdown parser is missing, and what `on_turn` raises.
    """
    with open_page(read_picture, find_changes) as page:
        for piece in page.pieces(tree, on_turn):
            write(piece.encode("utf-8", "replace"))


@contextmanager
def open_page(read_picture: ReadPicture, find_changes: FindChanges) -> Generator["HtmlPage"]:
    """Open a writer of pages. Raises ExtraMissing where the Markdown parser is missing."""
    if not all(find_spec(name) for name in ("markdown_it", "mdit_py_plugins")):
        raise ExtraMissing.of("Exporting as HTML", "window")
    with closing(_Highlighter()) as highlighter, closing(_Typesetter()) as typesetter:
        yield HtmlPage(highlighter, typesetter, read_picture, find_changes)


class _WorkerClient:
    """Asks a worker process about texts. After three failures it stops: a text may be made to be slow."""

    def __init__(self, task: str, answers: type[list[Any]], library: str) -> None:
        self._failures = 0
        self._worker: Worker[Any] | None = None
        self._task, self._answers, self._library = task, answers, library

    def ask(self, *arguments: object) -> Any:
        if self._failures >= _MAX_FAILURES or not find_spec(self._library):
            return None
        if self._worker is None:
            self._worker = Worker(self._task, self._answers, _LIMITS, timeout=5.0)
        try:
            return self._worker.ask(*arguments)
        except WorkerFailed:
            self._failures += 1
            return None

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()


class _Highlighter(_WorkerClient):
    def __init__(self) -> None:
        task = "desktop_agent.markdown.code_highlighting:highlight_code"
        super().__init__(task, list[list[tuple[str, str]]], "pygments")

    def __call__(self, code: str, language: str) -> Sequence[tuple[str, str]] | None:
        pieces: list[tuple[str, str]] | None = None if len(code) > _MAX_HIGHLIGHTED else self.ask(code, language)
        # The worker reads untrusted text: it decides about colours, never about words.
        return pieces if pieces is not None and "".join(text for text, _ in pieces) == code else None


class _Typesetter(_WorkerClient):
    """Formulas as SVG in the colour of the text around them."""

    def __init__(self) -> None:
        super().__init__("desktop_agent.markdown.typesetting:typeset", list[TypesetAnswer], "ziamath")

    def __call__(self, latex: str, display: bool) -> str | None:  # noqa: FBT001  as the worker's task has it
        answer = self.ask(latex, display, {})
        # The worker reads untrusted text: it decides about shapes, never about tags and words.
        if not isinstance(answer, TypesetFormula) or not _SVG.fullmatch(answer.svg):
            return None
        height, depth = answer.ascent + answer.descent, min(round(answer.descent * _STEPS), _DEPTHS - 1)
        size = f'width="{answer.width:.3f}em" height="{height:.3f}em"'
        head = f'<svg class="typeset d{depth}" role="img" aria-label="{escape_html(mark_hidden(latex))}" {size} '
        return head + answer.svg.removeprefix("<svg ").replace(COLOR, "currentColor")


@cache
def _style() -> str:
    # Styles in tags would need a policy that allows all of them.
    depths = "".join(f".d{depth}{{vertical-align:-{depth / _STEPS}em}}" for depth in range(_DEPTHS))
    return load_text(__name__, "page.css") + depths


class HtmlPage:
    """Writes one page, piece by piece."""

    def __init__(
        self, highlighter: _Highlighter, typesetter: _Typesetter, read_picture: ReadPicture, find_changes: FindChanges
    ) -> None:
        from desktop_agent.exchange import html_markdown

        self._html = html_markdown
        self._text = html_markdown.escape_text
        self._highlight = highlighter
        self._markdown = html_markdown.MarkdownRenderer(highlighter, typesetter)
        self._read_picture = read_picture
        self._find_changes = find_changes

    def pieces(self, tree: ConversationTree, on_turn: Callable[[int, int], object]) -> Iterator[str]:
        """Yield the whole page."""
        title = self._text(one_line(tree.title)) or UNTITLED
        digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
        yield f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{_style()}</style>
</head>
<body>
<header>
<h1 dir="auto">{title}</h1>
<p>{self.details(tree)}</p>
</header>
<main>
"""
        turns = list(branch_turns(tree))
        for done, turn in enumerate(turns):
            on_turn(done, len(turns))
            yield from self._turn(turn)
        yield "</main>\n</body>\n</html>\n"

    def details(self, tree: ConversationTree) -> str:
        """Return the line below the title."""
        day = f'<time datetime="{tree.created_at.isoformat()}">{tree.created_at:%Y-%m-%d}</time>'
        return " · ".join((day, *map(self._text, models_of(tree))))

    def _turn(self, turn: Turn) -> Iterator[str]:
        yield f'<section class="{turn.speaker.value}">\n<h2>{_SAID[turn.speaker]}</h2>\n'
        parts = list(turn.parts)
        if turn.speaker is Speaker.PERSON:
            yield '<div class="bubble">'
            # Pictures above the text, as in the window.
            parts.sort(key=lambda part: not isinstance(part, Image))
        for part in parts:
            yield from self.part(part, turn.speaker)
        if not turn.is_whole:
            yield '<p class="muted">Not finished</p>\n'
        yield "</div>\n</section>\n" if turn.speaker is Speaker.PERSON else "</section>\n"

    def part(self, part: Block | ShownCall, speaker: Speaker) -> Iterator[str]:
        """Yield the HTML of one part of a turn."""
        match part:
            case Text() if speaker is Speaker.PERSON:
                yield from self._prompt(part.text)
            case Text():
                yield self._markdown.render(part.text) + "\n"
                yield self._sources(part.citations)
            case Thinking():
                yield self._thinking(part)
            case Image():
                yield self._image(part)
            case ShownCall():
                yield from self._call(part)
            case ServerStep():
                body = self._html.code_block(part.text, "", "", self._highlight) if part.text else ""
                yield self._card(part.name, ("Server step", "muted"), "", body)
            case Summary():
                text = self._markdown.render(part.text)
                yield f"<details><summary>Summary of what came before</summary>{text}</details>\n"
            case _:
                raw: Any = getattr(part, "raw", None)
                body = self._html.code_block(pretty_json(raw), "", "json", self._highlight)
                yield self._card("Unknown content", ("? Unknown", "warning"), "", body)

    def _prompt(self, text: str) -> Iterator[str]:
        typed, attached = split_attached(text)
        if typed.strip() or not attached:
            yield f'<p class="typed" dir="auto">{self._text(typed.strip())}</p>\n'
        for file in attached:
            body = self._html.code_block(file.text, "", "", self._highlight)
            yield f"<details><summary>{self._text(one_line(file.title))}</summary>{body}</details>\n"

    def _thinking(self, thinking: Thinking) -> str:
        if not thinking.text:
            return ""
        words = "Thought" if thinking.seconds is None else f"Thought for {duration_words(thinking.seconds)}"
        return f'<details class="thought"><summary>{words}</summary>{self._markdown.render(thinking.text)}</details>\n'

    def _call(self, shown: ShownCall) -> Iterator[str]:
        result = shown.result
        changes = () if shown.call.malformed is not None else self._find_changes(shown)
        if changes:
            label = _one_line(" · ".join(map(_changed, changes)))
            diffs = ((change.text, one_line(change.path), "diff" if change.is_diff else "") for change in changes)
            body = "".join(self._html.code_block(*diff, self._highlight) for diff in diffs)
        else:
            text = pretty_json(shown.arguments) if shown.call.malformed is None else shown.call.malformed
            label = _summary(shown.call)
            body = self._html.code_block(text, "arguments", "json", self._highlight)
        if result is not None:
            body += "".join(map(self._result_part, result.content))
        state = _OUTCOMES[result.outcome] if result is not None else _NO_RESULT
        state = _UNDONE if any(change.is_undone for change in changes) else state
        yield self._card(str(tool_title(shown.call.name)), state, label, body)

    def _card(self, name: str, state: tuple[str, str], label: str, body: str) -> str:
        words, color = state
        head = f"<strong>{self._text(' '.join(name.split())[:200]) or 'tool'}</strong>"
        line = f'<span class="arguments" dir="auto">{self._text(label)}</span>' if label else ""
        summary = f'<summary>{head}<span class="state {color}">{words}</span>{line}</summary>'
        return f'<details class="card">{summary}<div class="body">{body}</div></details>\n'

    def _result_part(self, part: ResultPart) -> str:
        if isinstance(part, Image):
            return self._image(part)
        if isinstance(part, Json):
            return self._html.code_block(pretty_json(part.value), "result", "json", self._highlight)
        return self._html.code_block(plain_output(part.text), "result", "", self._highlight) + self._sources(
            part.citations
        )

    def _image(self, image: Image) -> str:
        name = self._text(one_line(image.name or "")) or "Picture"
        source = image.source
        if isinstance(source, UrlSource):
            return f"<p>{self._html.link(source.url, f'[{name}]')}</p>\n"
        data = decode_base64(source.data) if isinstance(source, Base64Source) else self._read_picture(source)
        if data is None:
            return f'<p class="muted">[{name}]</p>\n'
        size = "" if isinstance(source, Base64Source) else f' width="{source.width}" height="{source.height}"'
        address = f"data:{source.media_type};base64,{base64.b64encode(data).decode()}"
        return f'<img src="{address}" alt="{name}"{size}>\n'

    def _sources(self, citations: Sequence[Citation]) -> str:
        items: list[str] = []
        for source in cited_sources(tuple(citations)):
            words = self._text(one_line(source.title or source.url or ""))
            items.append(f'<li dir="auto">{self._html.link(source.url or "", words)}</li>')
        return f'<div class="sources"><h3>Sources</h3><ol>{"".join(items)}</ol></div>\n' if items else ""


def _summary(call: ToolUse) -> str:
    """Return the arguments on one line."""
    return _one_line(", ".join(f"{name}: {value}" for name, value in call.input.items()))


def _changed(change: ShownChange) -> str:
    """Return a file with the numbers of added and removed lines, as the window shows them: without zeros."""
    if change.is_nothing:
        return f"{change.path} · nothing changed"
    counts = (f"{sign}{count}" for sign, count in zip("+\N{MINUS SIGN}", change.counts, strict=True) if count)
    return " ".join((change.path, *counts))


def _one_line(words: str) -> str:
    line = " ".join(words[: 20 * _MAX_LABEL].split())
    return line if len(line) <= _MAX_LABEL else line[: _MAX_LABEL - 1] + "…"
