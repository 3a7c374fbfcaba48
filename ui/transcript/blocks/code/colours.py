"""The colours of one code block: asked for while it grows, and once more when it is complete."""

from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.host import CodeCallbacks
from ui.transcript.blocks.colouring.coloured import MAX_TEXT_LENGTH, HighlightedLines, HighlightSlice, LexerState

_REPEAT_SHARE = 5
"""What must be read again is read when this part of it has come in addition: so growing costs no square."""


class CodeHighlighting:
    """`dirty` is the first line that looks different since `taken` was called."""

    def __init__(self, lines: CodeLines, language: str, callbacks: CodeCallbacks) -> None:
        self._lines = lines
        self._language = language
        self._callbacks = callbacks
        self._lexer_state = LexerState()
        self._read = 0
        self._is_waiting = False
        self._is_requested = False
        self._complete = False
        self._dirty: int | None = None

    def request(self, *, is_open: bool) -> None:
        """Ask for what is not known yet."""
        if not self._language or self._lines.size > MAX_TEXT_LENGTH:
            return
        if is_open:
            self._request_more()
        elif not self._is_requested and self._callbacks.highlight:
            self._is_requested = True
            self._callbacks.highlight(self._lines.text, self._language, self._take)

    def forget(self) -> None:
        """It is far from the screen: ask again when it comes back, unless all is known."""
        self._is_requested = self._complete

    def take_dirty_line(self) -> int | None:
        """The first line that looks different since this was asked last."""
        dirty, self._dirty = self._dirty, None
        return dirty

    def _request_more(self) -> None:
        complete = len(self._lines) - 1
        again = self._read - self._lexer_state.line
        if self._is_waiting or not self._callbacks.highlight_more or complete - self._read <= again // _REPEAT_SHARE:
            return
        self._is_waiting, self._read = True, complete
        text = self._lines.lines_between(self._lexer_state.line, complete)
        self._callbacks.highlight_more(text, self._language, self._lexer_state, self._take_more)

    def _take_more(self, found: HighlightedLines | None) -> None:
        if found is None or self._is_requested:
            return
        self._is_waiting, self._lexer_state = False, found.lexer_state
        first = self._lines.highlight(found.line, found.words)
        if first is None:
            return
        # The next piece of text paints them too. Only when none comes they are painted by themselves.
        self._show_later(first)

    def _show_later(self, first: int) -> None:
        self._dirty = first if self._dirty is None else min(first, self._dirty)
        if self._callbacks.run_later:
            self._callbacks.run_later(self._show)

    def _show(self) -> None:
        if self._dirty is not None:
            self._dirty = None
            self._notify()

    def _take(self, found: HighlightSlice) -> None:
        """The first slice is what can be seen, so it is shown at once; and the last, so that all is."""
        self._complete = found.is_last
        first = self._lines.highlight(found.line, found.words) if found.words else None
        if found.line and not found.is_last:
            if first is not None:
                self._show_later(first)
        elif first is not None or self._dirty is not None:
            self._dirty = None
            self._notify()

    def _notify(self) -> None:
        (self._callbacks.on_arrived or self._callbacks.on_changed)()
