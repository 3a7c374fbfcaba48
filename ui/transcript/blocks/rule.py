"""A thematic break."""

from PySide6.QtCore import QRect

from ui.transcript.blocks.block import EVERYTHING, Block, Brush
from ui.transcript.copying.leaf_forms import RULE
from ui.transcript.look import Look


class RuleBlock(Block):
    """A quiet line across the column."""

    def __init__(self) -> None:
        self._width = 0

    def estimate(self, width: int, look: Look) -> int:
        """Exact."""
        del width
        return look.px(9)

    def lay(self, width: int, look: Look) -> int:
        """Exact."""
        self.laid, self._width = True, width
        return self.estimate(width, look)

    def paint(self, brush: Brush) -> None:
        """One pixel high."""
        brush.painter.fillRect(QRect(0, brush.look.px(4), self._width, 1), brush.look.color("border"))

    def plain(self) -> str:
        """As in Markdown."""
        return "---"

    def markdown(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """A line that is a rule wherever it stands."""
        del start, end
        return RULE

    def html(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """An element of its own."""
        del start, end
        return "<hr>"
