"""Where a message is on the screen and what has the focus, kept while another version takes its place."""

from ui.transcript.rows.message_actions import carrier_of
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.viewport import RowViewport

_MAX_ROUNDS = 4
"""Heights on the way are estimates until they are laid out; after this many rounds the position is settled."""


class MessagePlace:
    """The place of the message that begins at a row.

    If its beginning is visible, that stays where it is; otherwise its end does, where the pressed buttons are.
    """

    def __init__(self, viewport: RowViewport, index: int) -> None:
        self._viewport = viewport
        self.index = index
        """The row at which the message begins."""
        self._top = viewport.row_box(index).top()
        self._is_top_visible = 0 <= self._top < viewport.rows.view
        carrier = self._carrier()
        self._bottom = viewport.row_box(carrier).bottom()
        focused, key = viewport.focused
        is_focused = focused >= 0 and carrier_of(viewport.rows.transcript, focused) == carrier
        self._focused_name = key.partition("/")[2] if is_focused else None

    def restore(self, scroller: ScrollController) -> None:
        """Scroll the new version to where the one before was, and focus in it what had the focus."""
        rows = self._viewport.rows
        if not 0 <= self.index < rows.count:
            return
        for _ in range(_MAX_ROUNDS):
            box = self._viewport.row_box(self.index if self._is_top_visible else self._carrier())
            moved = box.top() - self._top if self._is_top_visible else box.bottom() - self._bottom
            before = rows.top
            rows.padding += max(0, before + moved - rows.bottom) if self._is_top_visible else 0
            scroller.scroll_by(moved)
            if rows.top == before:
                break
        if self._focused_name is not None:
            self._restore_focus(self._focused_name)

    def _carrier(self) -> int:
        carrier = carrier_of(self._viewport.rows.transcript, self.index)
        return self.index if carrier is None or carrier >= self._viewport.rows.count else carrier

    def _restore_focus(self, name: str) -> None:
        carrier = self._carrier()
        row = self._viewport.rows.row(carrier)
        row.stack.settle_block(len(row.blocks) - 1)
        keys = (f"{block}/{control.name}" for block, control in row.controls() if control.name == name)
        self._viewport.focus((carrier, next(keys, "")))
