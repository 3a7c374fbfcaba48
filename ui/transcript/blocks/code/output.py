"""What a program wrote: as code when it is opened, as its last lines while it runs."""

from PySide6.QtCore import QRect, Qt

from ui.transcript.blocks.block import Block, PaintContext
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.host import CodeCallbacks
from ui.transcript.blocks.colouring.coloured import StyledWord
from ui.transcript.look import RenderStyle


class OutputBlock(CodeBlock):
    """Code in the colours that its program chose."""

    def __init__(self, text: str, words: list[list[StyledWord]], callbacks: CodeCallbacks, title: str) -> None:
        super().__init__(text, "", callbacks, title=title)
        self._lines.words = words

    def set_output(self, text: str, words: list[list[StyledWord]]) -> None:
        """Something else; whether lines wrap, and how far they were moved, stays."""
        if (text, words) == (self.text, self._lines.words):
            return
        if text.startswith(self.text) and self._lines.words == words[: len(self._lines.words)]:
            self._lines.append(text[len(self.text) :])
        else:
            self._lines = self._lines.with_text(text)
        self._lines.words = words
        self.is_laid_out = False


class OutputTailBlock(Block):
    """A few lines without a box. Those that are too long end at the edge."""

    def __init__(self, text: str, words: list[list[StyledWord]]) -> None:
        self._lines = CodeLines(text, wraps=False)
        self._lines.words = words
        self._width = 0

    def set_output(self, text: str, words: list[list[StyledWord]]) -> None:
        """The lines that are the last ones now."""
        if (text, words) != (self._lines.text, self._lines.words):
            self._lines = CodeLines(text, wraps=False)
            self._lines.words, self.is_laid_out = words, False

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Exact."""
        del width
        return len(self._lines) * style.mono_line

    def layout(self, width: int, style: RenderStyle) -> int:
        """Exact."""
        self._width, self.is_laid_out = width, True
        self._lines.layout(width, style)
        return self._lines.height

    def forget(self) -> None:
        """Keep the text alone."""
        self._lines.forget()
        self.is_laid_out = False

    def paint(self, context: PaintContext) -> None:
        """The lines."""
        painter = context.painter
        painter.save()
        painter.setClipRect(QRect(0, 0, self._width, self._lines.height), Qt.ClipOperation.IntersectClip)
        self._lines.paint(painter, context.style, context.clip, context.selection)
        painter.restore()

    def plain(self) -> str:
        """The lines."""
        return self._lines.text
