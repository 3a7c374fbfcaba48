"""Copies the last answer or its code, wherever the focus and the viewport are."""

import re
from collections.abc import Iterator

from desktop_agent.conversation.items import AnswerItem, PictureItem
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.input.context_menu import ContextMenu
from ui.transcript.rows.message_actions import carrier_of
from ui.transcript.rows.row import read_block
from ui.transcript.viewport.viewport import RowViewport
from ui.transcript.words import tr

_SEARCHED_ITEMS = 200
"""Items from the end that are searched for code."""
_MAY_BE_CODE = re.compile(r"```|~~~|^(?: {4}|\t)", re.MULTILINE)
"""Without any of these there is no code block: most answers need not be parsed."""


class LastAnswer:
    """Copies the last answer; while it grows, what has arrived of it."""

    def __init__(self, viewport: RowViewport, menu: ContextMenu) -> None:
        self._viewport = viewport
        self._menu = menu

    @property
    def exists(self) -> bool:
        return next(self._rows_of_answers(), None) is not None

    @property
    def has_code(self) -> bool:
        """Whether there is a code block in the last answers."""
        return self._last_code_block() is not None

    def copy(self) -> None:
        """Copy the last answer as the button below it does."""
        items, index = self._viewport.rows.transcript, next(self._rows_of_answers(), None)
        carrier = None if index is None else carrier_of(items, index)
        if carrier is None:
            self._menu.show_message(tr("There is no answer yet."))
        else:
            self._menu.copy_message(items[carrier].id)

    def copy_code(self) -> None:
        """Copy the text of the last code block as its button does."""
        block = self._last_code_block()
        if block is None:
            self._menu.show_message(tr("There is no code block yet."))
        else:
            self._viewport.rows.render_context.signals.code_copied.emit(block.text)
            self._menu.confirm_copy()

    def _rows_of_answers(self) -> Iterator[int]:
        rows = self._viewport.rows
        for index in range(rows.count - 1, -1, -1):
            item = rows.transcript[index]
            if isinstance(item, PictureItem) or (isinstance(item, AnswerItem) and item.text.length):
                yield index

    def _last_code_block(self) -> CodeBlock | None:
        rows = self._viewport.rows
        for index in self._rows_of_answers():
            if index < rows.count - _SEARCHED_ITEMS:
                break
            item = rows.transcript[index]
            if isinstance(item, AnswerItem) and _MAY_BE_CODE.search(str(item.text)):
                for section in reversed(rows.row(index).blocks):
                    code_blocks = (block for block in reversed(read_block(section)) if isinstance(block, CodeBlock))
                    if (block := next(code_blocks, None)) is not None:
                        return block
        return None
