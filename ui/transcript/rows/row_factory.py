"""Make the row for an item of the conversation. A new kind of item is one row class and one line here."""

from collections.abc import Callable
from typing import Any

from desktop_agent.conversation.items import (
    AnswerItem,
    Item,
    NoticeItem,
    PictureItem,
    ServerStepItem,
    ThinkingItem,
    ToolCallItem,
    UnknownItem,
    UserItem,
)
from ui.transcript.rows.message_rows import AnswerRow, PictureRow, ThinkingRow, UserRow
from ui.transcript.rows.notice_rows import NoticeRow, ServerStepRow, UnknownRow
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.rows.row import Row
from ui.transcript.rows.tool_row import ToolRow

_ROW_TYPES: dict[type, Callable[[Any, RenderContext], Row]] = {
    UserItem: UserRow,
    AnswerItem: AnswerRow,
    ThinkingItem: ThinkingRow,
    ToolCallItem: ToolRow,
    ServerStepItem: ServerStepRow,
    PictureItem: PictureRow,
    NoticeItem: NoticeRow,
    UnknownItem: UnknownRow,
}


def make_row(item: Item, render_context: RenderContext, width: int) -> Row:
    """Make the row of an item, with its blocks."""
    row = _ROW_TYPES[type(item)](item, render_context)
    row.stack.width = width
    row.build()
    row.stack.width = 0
    row.set_width(width)
    return row
