"""The parts of a parsed Markdown text: leaf blocks with the containers around them, and top-level blocks."""

from dataclasses import dataclass
from typing import Literal

LeafKind = Literal["paragraph", "heading", "code", "table", "rule", "math"]
TopLevelKind = Literal["list", "table", "paragraph", "fence", "math", "container", "other"]
TableRow = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Container:
    """One container around a leaf. The marker stands before its first leaf only; later leaves have none.

    An item's marker is a bullet, a box, or its number as a reader counts; a footnote's is its label as it was written.
    """

    kind: Literal["quote", "item", "footnote"]
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One block without blocks inside it.

    `text` is inline Markdown for paragraphs and headings, the bare text for code, and LaTeX for math. `cells` are the
    rows of a table, the first one its head. Leaves of one list or quote follow each other with the same `containers`;
    `starts` is whether a top-level block begins here. `tight` is whether no blank line stands between a leaf of a list
    and the leaf before it. A long paragraph is several leaves: `separator` is what stood between a leaf and the one
    before it, None where a paragraph begins. `back` is the label of the footnote of which this is the last text.
    """

    kind: LeafKind
    text: str = ""
    level: int = 0
    info: str = ""
    containers: tuple[Container, ...] = ()
    tight: bool = False
    cells: tuple[TableRow, ...] = ()
    aligns: tuple[str, ...] = ()
    starts: bool = False
    separator: str | None = None
    back: str = ""


@dataclass(frozen=True, slots=True)
class CarriedBlock:
    """A top-level block whose beginning is final and gone: what is read in its place, so that the rest reads the same.

    `opening` is a made-up item of the list or block of the quote or footnote, the head of the table, or a word of the
    paragraph, none of which is shown again. `ordinal` is the number of the list's next item, `missing` the cells that
    rows of the table lacked, `separator` what stood before the rest of the paragraph.
    """

    kind: Literal["list", "table", "paragraph", "container"]
    opening: str
    ordinal: int = 0
    missing: int = 0
    separator: str = ""


@dataclass(frozen=True, slots=True)
class ListItem:
    """An item of a top-level list: its first line, its leaves before, and whether a blank line stands before it."""

    line: int
    leaf: int
    after_blank: bool


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """A place in a top-level quote or footnote that may still go on, above a block or an item.

    `start` is the line where the text below begins, `sure` the number of lines that must be complete before nothing can
    change that what is above is over, `leaf` the number of leaves above. `opening` is read in their place, `ordinal` is
    the number of the item, `note` the label of the footnote around it.
    """

    start: int
    sure: int
    leaf: int
    opening: str
    ordinal: int
    note: str | None


@dataclass(frozen=True, slots=True)
class TopLevelBlock:
    """A top-level block: its leaves, and its first line and the line after its last, counted from the parsed text.

    `sure` is the number of lines that must be complete before nothing can change that the block begins where it does.
    `items`, `marker` and `ordinal` (of the first item) are a list's; `missing` a table's, for each row; `stops` those
    of a quote or footnote.
    """

    kind: TopLevelKind
    leaves: tuple[Leaf, ...]
    first: int
    end: int
    sure: int
    items: tuple[ListItem, ...] = ()
    marker: str = ""
    ordinal: int = 0
    missing: tuple[int, ...] = ()
    stops: tuple[SplitPoint, ...] = ()
    is_open: bool = False
