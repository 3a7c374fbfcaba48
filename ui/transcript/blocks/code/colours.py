"""The colours of one code block: asked for while it grows, and once more when it is complete."""

from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.host import CodeHost
from ui.transcript.blocks.colouring.coloured import LONGEST, Coloured, Slice, Standing

_SHARE = 5
"""What must be read again is read when this part of it has come in addition: so growing costs no square."""


class CodeColours:
    """`dirty` is the first line that looks different since `taken` was called."""

    def __init__(self, lines: CodeLines, language: str, host: CodeHost) -> None:
        self._lines = lines
        self._language = language
        self._host = host
        self._standing = Standing()
        self._read = 0
        self._waits = False
        self._asked = False
        self._complete = False
        self._dirty: int | None = None

    def ask(self, *, is_open: bool) -> None:
        """Ask for what is not known yet."""
        if not self._language or self._lines.size > LONGEST:
            return
        if is_open:
            self._ask_for_more()
        elif not self._asked and self._host.colouring:
            self._asked = True
            self._host.colouring(self._lines.text, self._language, self._take)

    def forget(self) -> None:
        """It is far from the screen: ask again when it comes back, unless all is known."""
        self._asked = self._complete

    def taken(self) -> int | None:
        """The first line that looks different since this was asked last."""
        dirty, self._dirty = self._dirty, None
        return dirty

    def _ask_for_more(self) -> None:
        complete = len(self._lines) - 1
        again = self._read - self._standing.line
        if self._waits or not self._host.colouring_more or complete - self._read <= again // _SHARE:
            return
        self._waits, self._read = True, complete
        text = self._lines.between(self._standing.line, complete)
        self._host.colouring_more(text, self._language, self._standing, self._take_more)

    def _take_more(self, found: Coloured | None) -> None:
        if found is None or self._asked:
            return
        self._waits, self._standing = False, found.standing
        first = self._lines.colour(found.line, found.words)
        if first is None:
            return
        # The next piece of text paints them too. Only when none comes they are painted by themselves.
        self._show_later(first)

    def _show_later(self, first: int) -> None:
        self._dirty = first if self._dirty is None else min(first, self._dirty)
        if self._host.later:
            self._host.later(self._show)

    def _show(self) -> None:
        if self._dirty is not None:
            self._dirty = None
            self._tell()

    def _take(self, found: Slice) -> None:
        """The first slice is what can be seen, so it is shown at once; and the last, so that all is."""
        self._complete = found.is_last
        first = self._lines.colour(found.line, found.words) if found.words else None
        if found.line and not found.is_last:
            if first is not None:
                self._show_later(first)
        elif first is not None or self._dirty is not None:
            self._dirty = None
            self._tell()

    def _tell(self) -> None:
        (self._host.arrived or self._host.changed)()
