"""Whom a code block talks to."""

from collections.abc import Callable
from dataclasses import dataclass

from ui.transcript.blocks.colouring.coloured import HighlightedLines, HighlightSlice, LexerState

RequestHighlight = Callable[[str, str, Callable[[HighlightSlice], None]], None]
"""Text, language, and whom to tell: asks for colours, which come later or at once, in slices."""

RequestMoreHighlight = Callable[[str, str, LexerState, Callable[[HighlightedLines | None], None]], None]
"""New lines of code that still grows, its language, what is known before them, and whom to tell, later."""

RunLater = Callable[[Callable[[], None]], None]
"""Do this once some frames have passed."""


@dataclass(frozen=True, slots=True)
class CodeCallbacks:
    """`wraps` is how it begins; `on_wrap` hears of the person's choice.

    `changed` hears that the person changed how it looks, `arrived` that it looks different by itself. `save` is given
    a name and a text.
    """

    copy: Callable[[str], None]
    on_changed: Callable[[], None]
    highlight: RequestHighlight | None = None
    wraps: bool = False
    on_wrap: Callable[[bool], None] | None = None
    save: Callable[[str, str], None] | None = None
    on_arrived: Callable[[], None] | None = None
    highlight_more: RequestMoreHighlight | None = None
    run_later: RunLater | None = None
