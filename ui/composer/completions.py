"""Slash commands and @ mentions in the message editor: trigger characters and completion items.

The items are prompts, resources and resource templates of MCP servers; URI templates are expanded here (RFC 6570).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit

from desktop_agent.types.mcp import McpPrompt, McpResource, McpResourceTemplate
from ui.bridge.mcp.requests import ServerCatalog
from ui.style.list_rows import ResultRow
from ui.style.text import format_bytes, show_hidden, translate_sentence

TRIGGER_CHARACTERS = {"/", "@"}


class CompletionTriggers(QObject):
    """Watches the editor for trigger characters, which are in the text when `triggered` is emitted."""

    triggered = Signal(str)

    def __init__(self, editor: QPlainTextEdit) -> None:
        super().__init__(editor)
        self._editor = editor
        self._character = ""
        self._position: int | None = None
        editor.installEventFilter(self)
        editor.textChanged.connect(self._on_text_changed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note only typed characters: pasted text triggers nothing."""
        if watched is self._editor and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            self._character = event.text() if event.text() in TRIGGER_CHARACTERS else ""
        return super().eventFilter(watched, event)

    def remove_trigger(self) -> None:
        """Remove the trigger character if it is still in the text."""
        position, self._position = self._position, None
        if position is None or self._editor.toPlainText()[position : position + 1] not in TRIGGER_CHARACTERS:
            return
        cursor = self._editor.textCursor()
        cursor.setPosition(position)
        cursor.deleteChar()

    def continue_typing(self, words: str) -> None:
        """Insert what was typed in the popup behind the trigger: nothing was chosen."""
        if self._position is not None and words:
            self._editor.insertPlainText(words)
        self._position = None

    def _on_text_changed(self) -> None:
        character, self._character = self._character, ""
        position = self._editor.textCursor().position() - 1
        if not character or position < 0:
            return
        text = self._editor.toPlainText()
        preceding = text[position - 1 : position]
        if text[position : position + 1] == character and (
            text == character if character == "/" else not preceding or preceding.isspace()
        ):
            self._position = position
            self.triggered.emit(character)


CompletionKind = Literal["all", "prompts", "resources"]
CatalogItem = McpPrompt | McpResource | McpResourceTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionItem(ResultRow):
    """An item to choose, or a heading or a note (then `offered` is None)."""

    server_id: str
    server: str
    offered: CatalogItem | None = None


def completion_items(groups: Sequence[ServerCatalog], typed: str, wanted: CompletionKind) -> list[CompletionItem]:
    """Return the items of each server with `typed` in title, name, address or description."""
    return [row for group in groups for row in _items_of(group, typed.strip().casefold(), wanted)]


def _items_of(group: ServerCatalog, typed: str, kind: CompletionKind) -> list[CompletionItem]:
    title, contents, server = show_hidden(group.title), group.contents, (group.server_id, group.title)
    heading = CompletionItem(text=title, server_id=server[0], server=server[1], is_heading=True)
    if contents is None:
        words = translate_sentence(group.problem) if group.problem is not None else _tr("Starting…")
        badge = "problem" if group.problem is not None else ""
        return [heading, CompletionItem(text=words, server_id=server[0], server=server[1], badge=badge, is_faded=True)]
    prompts: tuple[CatalogItem, ...] = contents.prompts if kind != "resources" else ()
    readable: tuple[CatalogItem, ...] = (*contents.resources, *contents.templates) if kind != "prompts" else ()
    rows = [_item_of(group, item) for item in (*prompts, *readable) if typed in _search_text(item)]
    if not rows and not typed:
        rows = [CompletionItem(text=_empty_text(kind), server_id=server[0], server=server[1], is_faded=True)]
    return [heading, *rows] if rows else []


def _empty_text(kind: CompletionKind) -> str:
    return {
        "all": _tr("It offers no prompts and no resources."),
        "prompts": _tr("It offers no prompts."),
        "resources": _tr("It offers no resources."),
    }[kind]


def _item_of(group: ServerCatalog, offered: CatalogItem) -> CompletionItem:
    parts = [" ".join(show_hidden(offered.description).split())]
    if isinstance(offered, McpResource):
        parts += [format_bytes(offered.size)] if offered.size is not None else []
        parts += [] if parts[0] else [show_hidden(offered.uri)]
    elif isinstance(offered, McpResourceTemplate):
        parts.append(show_hidden(offered.uri_template))
    elif any(argument.required for argument in offered.arguments):
        parts.append(_tr("needs details"))
    return CompletionItem(
        text=show_hidden(offered.title),
        under=" · ".join(filter(None, parts)),
        icon=_icon_of(offered),
        is_choosable=True,
        server_id=group.server_id,
        server=group.title,
        offered=offered,
    )


def _icon_of(offered: CatalogItem) -> str:
    match offered:
        case McpPrompt():
            return "pencil"
        case McpResource(media_type=kind) if kind.startswith("image/"):
            return "picture"
        case McpResource():
            return "document"
        case McpResourceTemplate():
            return "more"


def _search_text(offered: CatalogItem) -> str:
    address = ""
    if isinstance(offered, McpResource):
        address = offered.uri
    elif isinstance(offered, McpResourceTemplate):
        address = offered.uri_template
    return f"{offered.title}\n{offered.name}\n{offered.description}\n{address}".casefold()


def _tr(text: str) -> str:
    return QCoreApplication.translate("OfferRows", text)


_EXPRESSION = re.compile(r"\{([+#./;?&]?)([A-Za-z0-9_.,:*%]+)\}")
_RESERVED = ":/?#[]@!$&'()*+,;="
# Prefix, separator, whether names are written, and characters kept unescaped (section 3.2.1).
_OPERATORS = {
    "": ("", ",", False, ""),
    "+": ("", ",", False, _RESERVED),
    "#": ("#", ",", False, _RESERVED),
    ".": (".", ".", False, ""),
    "/": ("/", "/", False, ""),
    ";": (";", ";", True, ""),
    "?": ("?", "&", True, ""),
    "&": ("&", "&", True, ""),
}


def template_variables(template: str) -> tuple[str, ...]:
    """Return the variable names in order, each once."""
    names = [_variable_name(variable) for match in _EXPRESSION.finditer(template) for variable in match[2].split(",")]
    return tuple(dict.fromkeys(names))


def expand_template(template: str, values: dict[str, str]) -> str:
    """Return the URI; a variable without a value becomes empty."""

    def fill(match: re.Match[str]) -> str:
        prefix, separator, is_named, safe = _OPERATORS[match[1]]
        parts: list[str] = []
        for variable in match[2].split(","):
            name, _, length = variable.partition(":")
            value = values.get(_variable_name(variable), "")
            if not value:
                continue
            part = value[: int(length)] if length.isdigit() else value
            encoded = quote(part, safe=f"{safe}-._~")
            parts.append(f"{name.rstrip('*')}={encoded}" if is_named else encoded)
        return prefix + separator.join(parts) if parts else ""

    return _EXPRESSION.sub(fill, template)


def _variable_name(name: str) -> str:
    return name.partition(":")[0].rstrip("*")
