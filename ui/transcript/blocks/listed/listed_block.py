"""Things below or beside each other, each with one line of text. What is selected is one of them, or several."""

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPoint, QRect, QRectF

from ui.transcript.blocks.block import WHOLE_TEXT, Block, TextRange
from ui.transcript.markdown.inline import utf16_length


class ItemListBlock(Block):
    """A pointer and a caret find places before and behind each thing, and none inside of one."""

    def item_texts(self) -> Sequence[str]:
        """What is copied of each, without line ends."""
        raise NotImplementedError

    def item_rects(self) -> Sequence[QRect]:
        """Where each stands, in order; several may share a place. Only called when laid out."""
        raise NotImplementedError

    def plain(self) -> str:
        """One on each line."""
        return "\n".join(self.item_texts())

    def selected_items(self, start: int, end: int) -> list[int]:
        """The numbers of those that are touched by a part of the text."""
        return [number for number, (first, last) in enumerate(self._spans()) if start < last and end > first]

    def is_within_item(self, start: int, end: int) -> bool:
        """Whether a part of the text is less than one of them, as a word that was chosen by two clicks."""
        return any(first <= start and end <= last and (start, end) != (first, last) for first, last in self._spans())

    def _spans(self) -> Iterator[TextRange]:
        at = 0
        for text in self.item_texts():
            size = utf16_length(text)
            yield at, at + size
            at += size + 1

    def offset_at(self, point: QPoint) -> int:
        """Before or behind the nearest one."""
        boxes = self.item_rects()
        if not boxes:
            return 0
        number = min(range(len(boxes)), key=lambda at: (_distance(boxes[at], point), at))
        is_behind = point.x() > boxes[number].center().x()
        if is_behind:
            # Of several in one place the last.
            number = max(at for at, box in enumerate(boxes) if box == boxes[number])
        return list(self._spans())[number][is_behind]

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """All of each that is touched."""
        places = self.item_rects()
        found = [places[at] for at in self.selected_items(start, end)]
        return [QRectF(box) for at, box in enumerate(found) if box not in found[:at]]

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """At the left edge of one, or at the right."""
        for (_, last), box in zip(self._spans(), self.item_rects(), strict=True):
            if offset <= last:
                x = box.right() + 1 if offset == last else box.left()
                return QRectF(x, box.top(), 0, box.height())
        return None

    def caret_stop_at(self, offset: int) -> int:
        """The next edge."""
        edges = [edge for span in self._spans() for edge in span]
        return next((edge for edge in edges if edge >= offset), edges[-1] if edges else 0)

    def paragraph_at(self, offset: int) -> TextRange:
        """One of them."""
        return next((span for span in self._spans() if offset <= span[1]), WHOLE_TEXT)


def _distance(box: QRect, point: QPoint) -> tuple[int, int]:
    """How far a point is from a box: lines first."""
    above = max(box.top() - point.y(), point.y() - box.bottom(), 0)
    aside = max(box.left() - point.x(), point.x() - box.right(), 0)
    return above, aside
