"""Which row shows which kind of item. A new kind is one file and one line here."""

from collections.abc import Callable
from typing import Any

from desktop_agent.conversation.items import (
    AnswerItem,
    Item,
    NoticeItem,
    ServerStepItem,
    ThinkingItem,
    ToolCallItem,
    UnknownItem,
    UserItem,
)
from ui.transcript.rows.answer_row import AnswerRow
from ui.transcript.rows.notice_row import NoticeRow
from ui.transcript.rows.row import Row
from ui.transcript.rows.server_step_row import ServerStepRow
from ui.transcript.rows.stage import RenderContext
from ui.transcript.rows.thinking_row import ThinkingRow
from ui.transcript.rows.tool_row import ToolRow
from ui.transcript.rows.unknown_row import UnknownRow
from ui.transcript.rows.user_row import UserRow

_ROW_TYPES: dict[type, Callable[[Any, RenderContext], Row]] = {
    UserItem: UserRow,
    AnswerItem: AnswerRow,
    ThinkingItem: ThinkingRow,
    ToolCallItem: ToolRow,
    ServerStepItem: ServerStepRow,
    NoticeItem: NoticeRow,
    UnknownItem: UnknownRow,
}


def make_row(item: Item, render_context: RenderContext, width: int) -> Row:
    """A row of that kind, filled."""
    row = _ROW_TYPES[type(item)](item, render_context)
    row.width = width
    row.build()
    row.width = 0
    row.set_width(width)
    return row
