"""Whom a code block talks to."""

from collections.abc import Callable
from dataclasses import dataclass

from ui.transcript.blocks.colouring.coloured import Coloured, Slice, Standing

Colouring = Callable[[str, str, Callable[[Slice], None]], None]
"""Text, language, and whom to tell: asks for colours, which come later or at once, in slices."""

ColouringMore = Callable[[str, str, Standing, Callable[[Coloured | None], None]], None]
"""New lines of code that still grows, its language, what is known before them, and whom to tell, later."""

Later = Callable[[Callable[[], None]], None]
"""Do this once some frames have passed."""


@dataclass(frozen=True, slots=True)
class CodeHost:
    """`wraps` is how it begins; `on_wrap` hears of the person's choice.

    `changed` hears that the person changed how it looks, `arrived` that it looks different by itself. `save` is given
    a name and a text.
    """

    copy: Callable[[str], None]
    changed: Callable[[], None]
    colouring: Colouring | None = None
    wraps: bool = False
    on_wrap: Callable[[bool], None] | None = None
    save: Callable[[str, str], None] | None = None
    arrived: Callable[[], None] | None = None
    colouring_more: ColouringMore | None = None
    later: Later | None = None
