"""What a Markdown text is made of once its nesting is flattened."""

from dataclasses import dataclass
from typing import Literal

LeafKind = Literal["paragraph", "heading", "code", "table", "rule"]


@dataclass(frozen=True, slots=True)
class Inside:
    """One container around a leaf. An item's marker stands before its first leaf only; later leaves have none."""

    kind: Literal["quote", "item"]
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One block without blocks inside it.

    `text` is inline Markdown for paragraphs and headings and the bare text for code. `cells` are the rows of a
    table, the first one its head. Leaves of one list or quote follow each other with the same `inside`; `starts` is
    whether a top-level block begins here. A long paragraph is several leaves: `joint` is what stood between a leaf
    and the one before it, None where a paragraph begins.
    """

    kind: LeafKind
    text: str = ""
    level: int = 0
    info: str = ""
    inside: tuple[Inside, ...] = ()
    tight: bool = False
    cells: tuple[tuple[str, ...], ...] = ()
    aligns: tuple[str, ...] = ()
    starts: bool = False
    joint: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A top-level block: its leaves, and its first line and the line after its last, counted from the parsed text."""

    leaves: tuple[Leaf, ...]
    first: int
    end: int
    is_table: bool = False
    open_fence: bool = False
