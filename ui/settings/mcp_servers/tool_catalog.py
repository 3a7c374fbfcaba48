"""The catalog of an MCP server's tools: which are enabled, and how each is classified."""

from collections.abc import Sequence
from inspect import cleandoc
from typing import cast

from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QEvent, QObject, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QCheckBox, QListView, QStyle, QStyleOptionViewItem, QWidget

from desktop_agent.types.mcp import McpServer, McpServerState, McpToolInfo
from desktop_agent.types.tool_calls import ToolClass
from ui.settings.mcp_servers.server_text import describe_declared_class
from ui.settings.mcp_servers.tool_arguments import ArgumentsPane
from ui.style.auto_height_text import ReadOnlyText
from ui.style.boxes import hbox, vbox
from ui.style.controls import label, show_words
from ui.style.list_rows import ROOT, Index, RowDelegate, RowRole
from ui.style.text import show_hidden, translate_sentence
from ui.style.theme import RADIUS_S, SPACE_M, SPACE_S, SPACE_XS, Theme, ThemeSource, pixmap
from ui.style.tool_labels import tool_class_label
from ui.style.widgets import ComboBox

_MAX_SUMMARY_LENGTH = 200


class ToolListModel(QAbstractListModel):
    """The tools of a server. Checked: the agent may call it."""

    tool_toggled = Signal(str, bool)
    """The server's name of a tool, and whether the agent may call it."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tools: tuple[McpToolInfo, ...] = ()

    def show_tools(self, tools: Sequence[McpToolInfo]) -> None:
        """Show these tools. Rows stay if the names are the same."""
        new = tuple(tools)
        if [tool.name for tool in new] == [tool.name for tool in self._tools]:
            self._tools = new
            if new:
                self.dataChanged.emit(self.index(0), self.index(len(new) - 1))
            return
        self.beginResetModel()
        self._tools = new
        self.endResetModel()

    def tool(self, row: int) -> McpToolInfo | None:
        """Return the tool of a row; None outside."""
        return self._tools[row] if 0 <= row < len(self._tools) else None

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._tools)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Each row can be checked."""
        return super().flags(index) | Qt.ItemFlag.ItemIsUserCheckable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return what a row shows, and what a screen reader says."""
        tool = self.tool(index.row())
        if tool is None:
            return None
        name = show_hidden(tool.name)
        subtitle = show_hidden(" ".join(tool.description[:_MAX_SUMMARY_LENGTH].split()))
        if tool.has_changed:
            subtitle = " · ".join(part for part in (self.tr("Changed: choose again"), subtitle) if part)
        words, _ = tool_class_label(tool.tool_class)
        values: dict[int, object] = {
            Qt.ItemDataRole.DisplayRole: name,
            Qt.ItemDataRole.CheckStateRole: Qt.CheckState.Checked if tool.is_enabled else Qt.CheckState.Unchecked,
            Qt.ItemDataRole.AccessibleTextRole: f"{name}. {words}. {subtitle}",
            RowRole.SUBTITLE: subtitle,
            RowRole.DETAIL: words,
            RowRole.FADED: not tool.is_enabled,
        }
        return values.get(role)

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Emit the change; the row follows when it is saved."""
        tool = self.tool(index.row())
        if tool is None or role != Qt.ItemDataRole.CheckStateRole:
            return False
        self.tool_toggled.emit(tool.name, value == Qt.CheckState.Checked)
        return True


_BOX_SIZE = 16
_TOGGLE_KEYS = {Qt.Key.Key_Space, Qt.Key.Key_Select}


class ToolDelegate(RowDelegate):
    """Draws a check box, name and description, and the tag of the class."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: ARG002  Qt's name
        return QSize(80, round(option.fontMetrics.height() * 1.9) + 2 * self._themes.space(SPACE_S))

    def editorEvent(self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: Index) -> bool:
        kind = event.type()
        if kind == QEvent.Type.MouseButtonRelease:
            box = QStyle.visualRect(
                option.direction, option.rect, self._box_rect(option.rect.adjusted(SPACE_M, 0, 0, 0))
            )
            click_area = box.adjusted(-SPACE_S, -SPACE_S, SPACE_S, SPACE_S)
            is_toggle = click_area.contains(cast("QMouseEvent", event).position().toPoint())
        else:
            is_toggle = kind == QEvent.Type.KeyPress and cast("QKeyEvent", event).key() in _TOGGLE_KEYS
        if not is_toggle:
            return False
        new_state = Qt.CheckState.Unchecked if _is_checked(index) else Qt.CheckState.Checked
        return model.setData(index, new_state, Qt.ItemDataRole.CheckStateRole)

    def _box_rect(self, area: QRect) -> QRect:
        side = self._themes.scaled(_BOX_SIZE)
        return QRect(area.left(), area.center().y() - side // 2, side, side)

    def _paint_icon(self, painter: QPainter, area: QRect, index: Index, theme: Theme) -> QRect:
        """Draw a check box like that of the style sheet, which does not apply to rows."""
        box = self._mirrored(painter, self._box_rect(area))
        is_on = _is_checked(index)
        painter.setPen(QColor(theme.accent if is_on else theme.muted))
        painter.setBrush(QColor(theme.accent if is_on else theme.window))
        painter.drawRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_S, RADIUS_S)
        if is_on:
            ratio = 2 if painter.device().devicePixelRatio() > 1 else 1
            painter.drawPixmap(box, pixmap("check", theme.on_accent, box.width(), ratio))
        return area.adjusted(box.width() + SPACE_M, 0, 0, 0)

    def _paint_detail(self, painter: QPainter, area: QRect, detail: str) -> QRect:
        theme = self._themes.theme
        colours = {
            "safe": (theme.success, theme.success_background),
            "caution": (theme.warning, theme.warning_background),
        }
        ink, background = colours[dict(map(tool_class_label, ToolClass))[detail]]
        painter.save()
        painter.setFont(self._font(0.88, QFont.Weight.DemiBold))
        width = painter.fontMetrics().horizontalAdvance(detail) + 2 * SPACE_S
        height = painter.fontMetrics().height() + 4
        tag_area = QRect(area.right() - width, area.center().y() - height // 2, width, height)
        pill = QRectF(self._mirrored(painter, tag_area))
        painter.setPen(QColor(ink) if theme.outline else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(background))
        painter.drawRoundedRect(pill, height / 2, height / 2)
        painter.setPen(QColor(ink))
        painter.drawText(pill, Qt.AlignmentFlag.AlignCenter, detail)
        painter.restore()
        return area.adjusted(0, 0, -width - SPACE_S, 0)


def _is_checked(index: Index) -> bool:
    return index.data(Qt.ItemDataRole.CheckStateRole) == Qt.CheckState.Checked


_MAX_VISIBLE_ROWS = 6


class ToolsPane(QWidget):
    """The tools of a server and their details. It follows `show_server` after a change."""

    changed = Signal(object)
    """A function that returns the changed McpServer, given the current one."""

    def __init__(self, themes: ThemeSource, server: McpServer) -> None:
        super().__init__()
        self._themes = themes
        self._server = server
        self._model = ToolListModel(self)
        self._model.tool_toggled.connect(self._set_tool_enabled)
        self._list = QListView()
        self._empty_note = label(kind="muted", wrap=True)
        self._omitted = label(kind="warning", wrap=True)
        self._details = QWidget()
        self._name = label(kind="strong", wrap=True)
        self._description = ReadOnlyText("", self.tr("Description of the tool"))
        self._arguments = ArgumentsPane()
        self._declared = label(kind="muted", wrap=True)
        self._changed_warning = label(kind="warning", wrap=True)
        self._class = ComboBox()
        self._on = QCheckBox(self.tr("The agent may call it"))
        self._build_layout()

    def show_server(self, server: McpServer) -> None:
        """Show the configuration of the server."""
        self._server = server
        self._show_details()

    def show_state(self, state: McpServerState) -> None:
        """Show the server's tools; the selected one stays."""
        chosen = self._selected_tool()
        self._model.show_tools(state.tools)
        names = [tool.name for tool in state.tools]
        row = names.index(chosen.name) if chosen is not None and chosen.name in names else 0
        if state.tools:
            self._list.setCurrentIndex(self._model.index(row))
        show_words(self._omitted, "\n".join(translate_sentence(reason, show_hidden) for reason in state.unusable_tools))
        self._empty_note.setText(self._empty_text(state))
        self._empty_note.setVisible(not state.tools)
        self._list.setVisible(bool(state.tools))
        if state.tools:
            height = self._list.sizeHintForRow(0) * min(len(state.tools), _MAX_VISIBLE_ROWS)
            self._list.setFixedHeight(height + 2 * self._list.frameWidth() + SPACE_XS)
        self._show_details()

    def _empty_text(self, state: McpServerState) -> str:
        if state.state == "running":
            return self.tr("This server offers no tools.")
        return self.tr("The tools of this server are not known yet. Press Test to see them.")

    def _selected_tool(self) -> McpToolInfo | None:
        return self._model.tool(self._list.currentIndex().row())

    def _show_details(self) -> None:
        tool = self._selected_tool()
        self._details.setVisible(tool is not None)
        if tool is None:
            return
        name = show_hidden(tool.name)
        self._name.setText(name)
        self._description.show_text(cleandoc(tool.description) or self.tr("It has no description."))
        self._arguments.show_schema(tool.schema)
        self._declared.setText(self._declared_text(tool))
        self._on.setChecked(tool.is_enabled)
        self._class.setAccessibleName(self.tr("How to treat {0}").format(name))
        self._on.setAccessibleName(self.tr("The agent may call {0}").format(name))
        self._class.setItemText(0, self._default_class_text(tool))
        self._changed_warning.setVisible(tool.has_changed)
        chosen = self._server.tool_class_override(tool.name, tool.digest)
        self._class.setCurrentIndex(self._class.findData(chosen.value if chosen is not None else ""))

    def _default_class_text(self, tool: McpToolInfo) -> str:
        believed = (
            tool.declared_class if self._server.trusted and tool.declared_class is not None else ToolClass.MUTATING
        )
        words = tool_class_label(believed)[0]
        title = self.tr("As the server says ({0})") if self._server.trusted else self.tr("To be safe ({0})")
        return title.format(words)

    def _declared_text(self, tool: McpToolInfo) -> str:
        words = describe_declared_class(tool.declared_class)
        if tool.declared_class is None or self._server.trusted:
            return words
        return f"{words} {self.tr('This is not trusted.')}"

    def _set_tool_enabled(self, name: str, on: bool) -> None:  # noqa: FBT001  # a slot
        def change(server: McpServer) -> McpServer:
            off = server.off_tools - {name} if on else server.off_tools | {name}
            return server.model_copy(update={"off_tools": frozenset(off)})

        self.changed.emit(change)

    def _toggle_selected(self) -> None:
        tool = self._selected_tool()
        if tool is not None:
            self._set_tool_enabled(tool.name, self._on.isChecked())

    def _set_tool_class(self) -> None:
        tool = self._selected_tool()
        if tool is None:
            return
        chosen = ToolClass(self._class.currentData()) if self._class.currentData() else None

        def change(server: McpServer) -> McpServer:
            return server.with_tool_class_override(tool.name, tool.digest, chosen)

        self.changed.emit(change)

    def _build_layout(self) -> None:
        self._list.setModel(self._model)
        self._list.setItemDelegate(ToolDelegate(self._themes, self._list))
        self._list.setUniformItemSizes(True)
        self._list.setMouseTracking(True)
        self._list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self._list.setAccessibleName(self.tr("Tools of {0}").format(show_hidden(self._server.title)))
        self._list.selectionModel().currentRowChanged.connect(self._show_details)
        self._class.addItem("", "")
        for tool_class in (ToolClass.READ_ONLY, ToolClass.MUTATING):
            self._class.addItem(tool_class_label(tool_class)[0], tool_class.value)
        self._class.activated.connect(self._set_tool_class)
        self._on.clicked.connect(self._toggle_selected)
        choice = hbox(self._class, spacing=SPACE_S, end_stretch=True)
        inner = vbox(parent=self._details, spacing=SPACE_S, margins=0)
        self._changed_warning.setText(
            self.tr("You said that this tool only reads, but it has changed since. Check it, and choose again.")
        )
        for widget in (self._name, self._description, self._arguments, self._declared, self._changed_warning):
            inner.addWidget(widget)
        inner.addLayout(choice)
        inner.addWidget(self._on)
        vbox(self._empty_note, self._list, self._omitted, self._details, parent=self, spacing=SPACE_S, margins=0)
        self._empty_note.setText(self._empty_text(McpServerState(self._server.id, "idle")))
        self._omitted.hide()
        self._details.hide()
        self._list.hide()
