"""Markdown as it arrives: what is closed is handed out once and never looked at again.

The one rule of closing: a top-level block is closed when the first line of a later block is complete (of a table:
its delimiter line too), because in CommonMark nothing that follows can then reach back over that line.
The text kept for the next parse begins where the last closed block ended, not where the next one starts: a link
definition stands between blocks and may still grow.
"""

import re
from dataclasses import dataclass

from ui.transcript.markdown.leaves import Leaf, Piece
from ui.transcript.markdown.parser import References, outline
from ui.transcript.markdown.unfinished import presentable

# What reading a block's lines and its indents takes, in microseconds on an ordinary computer.
_LINE_COSTS, _INDENT_COSTS = 20, 0.35
_MOST_AT_ONCE = 16_000
_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Step:
    """What one piece of text changed.

    `closed` leaves are new and final; `tail` replaces the whole previous tail. When `grown` is not None, nothing
    else happened than that the last leaf, an open code block, got this text at its end.
    """

    closed: tuple[Leaf, ...] = ()
    tail: tuple[Leaf, ...] = ()
    grown: str | None = None
    definitions: bool = False


class MarkdownStream:
    """Folds pieces of text into leaves. `references` are the link definitions of all closed text."""

    def __init__(self) -> None:
        self.references: References = {}
        self._tail = ""
        self._carriage = False
        self._fence: _OpenFence | None = None
        self._shown: tuple[Leaf, ...] = ()
        self._skips = 0

    def append(self, text: str) -> Step:
        """Take the next piece. A very long open block is read again only every so many pieces."""
        return self._take(self._normal(text))

    def _take(self, text: str) -> Step:
        if self._fence is None:
            self._tail += text
            if self._skips:
                self._skips -= 1
                return Step(tail=self._shown)
            step = self._parse()
            self._shown, self._skips = step.tail, 0 if self._fence else _skips(self._tail)
            return step
        grown = self._fence.feed(text)
        if self._fence.rest is None:
            return Step(grown=grown)
        closed = (self._fence.leaf(),)
        self._tail, self._fence = self._fence.rest, None
        after = self._parse()
        return Step(closed + after.closed, after.tail, definitions=after.definitions)

    def finish(self) -> Step:
        """No more text comes: close everything."""
        known = len(self.references)
        before = self._take("\n").closed if self._carriage else ()
        self._carriage = False
        if self._fence is not None:
            # How a block without an end treats blank last lines is the parser's to say.
            self._tail, self._fence = self._fence.source(), None
        pieces, self.references = outline(self._tail, self.references)
        self._tail, self._skips = "", 0
        closed = tuple(leaf for piece in pieces for leaf in piece.leaves)
        return Step(before + closed, definitions=len(self.references) != known)

    def _normal(self, text: str) -> str:
        """Line ends as one newline each, NUL as CommonMark 2.3 wants it; a lone carriage return waits for its pair."""
        if self._carriage:
            text = "\r" + text
        self._carriage = text.endswith("\r")
        if self._carriage:
            text = text[:-1]
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.replace("\0", "\ufffd")

    def _parse(self) -> Step:
        pieces, references = outline(presentable(self._tail), self.references)
        complete = self._tail.count("\n")
        last_closed = -1
        for index in range(len(pieces) - 1, 0, -1):
            if pieces[index].first + (2 if pieces[index].is_table else 1) <= complete:
                last_closed = index - 1
                break
        closed: list[Leaf] = []
        cut = 0
        for piece in pieces[: last_closed + 1]:
            closed += piece.leaves
            cut = piece.end
        defined = self._keep_definitions(references, cut)
        tail = tuple(leaf for piece in pieces[last_closed + 1 :] for leaf in piece.leaves)
        if last_closed == len(pieces) - 2 and self._enter_fence(pieces[-1:]):
            defined = self._keep_definitions(references, pieces[-1].first) or defined
            return Step(tuple(closed), (self._open_leaf(),), definitions=defined)
        if cut:
            self._tail = "\n".join(self._tail.split("\n")[cut:])
        return Step(tuple(closed), tail, definitions=defined)

    def _keep_definitions(self, references: References, cut: int) -> bool:
        new = {
            label: each for label, each in references.items() if label not in self.references and each["map"][1] <= cut
        }
        self.references.update(new)
        return bool(new)

    def _enter_fence(self, open_pieces: list[Piece]) -> bool:
        """Whether the tail is nothing but an open code block: from here on text is not parsed but appended."""
        if not open_pieces or not open_pieces[0].open_fence:
            return False
        piece = open_pieces[0]
        lines = self._tail.split("\n")
        found = _FENCE.fullmatch(lines[piece.first])
        if not found or piece.first + 1 >= len(lines):
            return False
        fence = _OpenFence(found[1], found[2].strip())
        fence.feed("\n".join(lines[piece.first + 1 :]))
        if fence.rest is not None:
            return False
        self._fence, self._tail = fence, ""
        return True

    def _open_leaf(self) -> Leaf:
        fence = self._fence
        return fence.shown_leaf() if fence else Leaf("code")


def _skips(tail: str) -> int:
    """How many more pieces may come before an open block is read again from its beginning."""
    return int(tail.count("\n") * _LINE_COSTS + tail.count("  ") * _INDENT_COSTS) // _MOST_AT_ONCE


class _OpenFence:
    """A code block without its end. Feeding costs what the new text costs."""

    def __init__(self, marker: str, info: str) -> None:
        self._info = info
        self._opening = f"{marker}{info}"
        self._end = re.compile(rf" {{0,3}}{re.escape(marker[0])}{{{len(marker)},}}[ \t]*")
        self._maybe_end = re.compile(rf" {{0,3}}{re.escape(marker[0])}*[ \t]*")
        self._lines: list[str] = []
        self._open_line = ""
        self._shown = 0
        self.rest: str | None = None

    def feed(self, text: str) -> str:
        """Take text; answers what is to be shown more. When the end was found, `rest` is what came after it."""
        *complete, open_line = (self._open_line + text).split("\n")
        grown: list[str] = []
        for index, line in enumerate(complete):
            if self._end.fullmatch(line):
                self.rest = "\n".join([*complete[index + 1 :], open_line])
                return "".join(grown)
            # A line end is shown together with the first character after it, as in the finished block.
            grown.append(("\n" if self._lines and not self._shown else "") + line[self._shown :])
            self._lines.append(line)
            self._shown = 0
        self._open_line = open_line
        if open_line and not self._maybe_end.fullmatch(open_line):
            grown.append(("\n" if self._lines and not self._shown else "") + open_line[self._shown :])
            self._shown = len(open_line)
        return "".join(grown)

    def leaf(self) -> Leaf:
        """The finished block."""
        return Leaf("code", "\n".join(self._lines), info=self._info, starts=True)

    def shown_leaf(self) -> Leaf:
        """What is to be seen of it now."""
        lines = [*self._lines, self._open_line] if self._shown else self._lines
        return Leaf("code", "\n".join(lines), info=self._info, starts=True)

    def source(self) -> str:
        """The text that was taken, opening line included."""
        return "\n".join([self._opening, *self._lines, self._open_line])


def leaves_of(text: str) -> tuple[tuple[Leaf, ...], References]:
    """A whole text at once: its leaves and its link definitions."""
    stream = MarkdownStream()
    normal = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    pieces, stream.references = outline(normal)
    return tuple(leaf for piece in pieces for leaf in piece.leaves), stream.references
