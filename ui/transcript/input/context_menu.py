"""The context menu: what can be done with the link, block, selection or message under the pointer or the keyboard."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QPoint, QRect, QRectF, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QImage, QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QWidget

from desktop_agent.markdown.link_targets import safe_target
from ui.style.controls import announce
from ui.style.text import escape_mnemonics, truncate
from ui.transcript.blocks.block import Block, MenuAction
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.image_blocks import RemoteImageBlock, ThumbnailsBlock
from ui.transcript.blocks.image_store import ViewableImage, decode_image, locate_image
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.message_footer import MessageCommand
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BACK_TARGET
from ui.transcript.clipboard import ClipboardWriter, table_to_csv
from ui.transcript.input.links import LinkNavigator
from ui.transcript.markdown.misleading_links import link_tooltip
from ui.transcript.rows.message_actions import carrier_of, commands_at, copy_name, regenerate_with
from ui.transcript.rows.render_context import AlternativeGroup
from ui.transcript.rows.row import Row, table_pieces_at
from ui.transcript.viewport.positions import link_selection, text_box
from ui.transcript.viewport.selection import (
    LAST_OFFSET,
    Selection,
    TextPosition,
    conversation_extracts,
    selection_extracts,
)
from ui.transcript.viewport.viewport import Hit, RowViewport
from ui.transcript.words import tr

_MAX_TITLE_LENGTH = 60
"""Characters of a menu's title."""


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A menu entry; `label` has its mnemonic. Without a callback it is disabled. The key works without the menu too.

    `hint` is a tooltip. With `sections` it opens a submenu.
    """

    label: str
    callback: Callable[[], object] | None
    key: QKeySequence.StandardKey | str | None = None
    hint: str = ""
    is_checked: bool = False
    sections: "Sequence[MenuSection]" = ()


@dataclass(frozen=True, slots=True)
class MenuSection:
    """Entries about one thing, named by the title; the first title is that of the menu."""

    title: str
    entries: Sequence[MenuEntry]


def make_menu(parent: QWidget, sections: Sequence[MenuSection]) -> QMenu:
    """Make a menu that deletes itself when it closes."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.setToolTipsVisible(True)
    title = next((section.title for section in sections if section.title), "")
    menu.setTitle(title)
    menu.setAccessibleName(tr("Menu: {0}").format(title))
    _fill(menu, sections)
    return menu


def _fill(menu: QMenu, sections: Sequence[MenuSection]) -> None:
    for section in sections:
        if not menu.isEmpty():
            menu.addSeparator()
        if section.title:
            menu.addAction(escape_mnemonics(truncate(section.title, _MAX_TITLE_LENGTH))).setEnabled(False)
        for entry in section.entries:
            if entry.sections:
                _fill(menu.addMenu(entry.label), entry.sections)
            else:
                _add_entry(menu, entry)


def _run(callback: Callable[[], object], checked: bool = False) -> None:  # noqa: FBT001, FBT002  what the signal carries
    del checked
    callback()


def _add_entry(menu: QMenu, entry: MenuEntry) -> None:
    action = menu.addAction(entry.label)
    action.setEnabled(entry.callback is not None)
    action.setToolTip(entry.hint)
    if entry.is_checked:
        action.setCheckable(True)
        action.setChecked(True)
    if entry.key is not None:
        # The key is only displayed here: the transcript handles it, with or without a menu.
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.setShortcut(QKeySequence(entry.key))
        action.setShortcutVisibleInContextMenu(True)
    if entry.callback is not None:
        action.triggered.connect(partial(_run, entry.callback))


_COPY_KEY, _SELECT_ALL_KEY = QKeySequence.StandardKey.Copy, QKeySequence.StandardKey.SelectAll
_FIND_KEY = QKeySequence.StandardKey.Find

_MAX_COPIED_PIXELS = 40_000_000
"""Pixels of an image, as in the image viewer; a larger one is copied smaller."""

_FAILURE_MS, _CONFIRMATION_MS = 5000, 2000
"""Milliseconds for which the failure or the success of a copy is shown."""


class ContextMenu:
    """Copies, and makes the context menus of the transcript."""

    def __init__(
        self,
        viewport: RowViewport,
        links: LinkNavigator,
        copier: ClipboardWriter,
        select_all: Callable[[], None],
        find: Callable[[], None],
        caret_box: Callable[[], QRectF | None],
    ) -> None:
        self._viewport = viewport
        self._links = links
        self._copier = copier
        self._select_all = select_all
        self._find = find
        self._caret_box = caret_box
        self.message_link: Callable[[str], str] = lambda _message_id: ""
        """Returns the link to a message; "" where there can be none."""
        self._copies = 0
        self._is_message_shown = False
        signals = viewport.rows.render_context.signals
        signals.code_copied.connect(self._next_copy_number)
        signals.details_copied.connect(self._next_copy_number)

    def _next_copy_number(self) -> int:
        """Count the copies: an earlier one that is still in progress must not replace this one."""
        self._copies += 1
        if self._is_message_shown:
            self._is_message_shown = False
            self._copier.progress.emit("")
        return self._copies

    def _newest_copier(self) -> ClipboardWriter:
        self._next_copy_number()
        return self._copier

    def copy(self, *, markdown: bool = False) -> None:
        """Copy the selection."""
        if not self._viewport.selection.is_empty:
            steps = selection_extracts(self._viewport.selection, self._viewport.rows)
            self._newest_copier().copy_steps(steps, markdown=markdown)

    def copy_all(self) -> None:
        """Copy the conversation as Markdown, with the authors."""

        def copy() -> None:
            self._newest_copier().copy_steps(conversation_extracts(self._viewport.rows), markdown=True)

        self._viewport.rows.render_context.when_whole(copy)

    def popup(self, event: QContextMenuEvent, view: QWidget) -> QMenu:
        """Open the menu for a click of the mouse or for the menu key."""
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            return self.popup_by_key(view)
        return self._popup(view, event.pos(), event.globalPos())

    def install_shortcut(self, view: QWidget) -> None:
        """Add Shift+F10 where the platform sends no context menu event for it, as it does for the menu key."""
        if QGuiApplication.platformName() not in {"windows", "cocoa"}:
            shortcut = QShortcut(QKeySequence("Shift+F10"), view)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(lambda: self.popup_by_key(view))

    def popup_by_key(self, view: QWidget) -> QMenu:
        """Open the menu about what has the focus."""
        point = self._keyboard_point()
        return self._popup(view, point, self._viewport.widget.mapToGlobal(point))

    def _popup(self, view: QWidget, point: QPoint, global_point: QPoint) -> QMenu:
        menu = self.build_menu(point, view)
        menu.popup(global_point)
        return menu

    def build_menu(self, point: QPoint, view: QWidget) -> QMenu:
        """Make the menu about what is under a point of the viewport, without opening it."""
        hit = self._viewport.hit(point)
        rows = self._viewport.rows
        row = rows.row(rows.row_at(rows.top + point.y())) if len(rows) else None
        return make_menu(view, list(self._sections(hit, row)))

    def _keyboard_point(self) -> QPoint:
        """Return a point in the focused control, at the caret, in the focused or selected message, or the middle."""
        viewport = self._viewport
        middle = viewport.widget.rect().center()
        index, key = viewport.focused
        caret = None if key else self._caret_box()
        if caret is not None and viewport.widget.rect().contains(caret.center().toPoint()):
            return caret.center().toPoint()
        if index < 0 and not viewport.selection.is_empty:
            index, key = viewport.selection.end.row, ""
        if not 0 <= index < len(viewport.rows):
            return middle
        box, row = viewport.row_box(index), viewport.rows.row(index)
        if key and (link := link_selection(row, key)):
            return text_box(viewport, index, link).center().toPoint()
        for number, control in row.controls() if key else ():
            if f"{number}/{control.name}" == key:
                box = control.box.translated(viewport.block_box(index, number).topLeft())
        visible = box.intersected(viewport.widget.rect())
        if not visible:
            return middle
        return visible.topLeft() + QPoint(min(8, visible.width() // 2), min(24, visible.height() // 2))

    def _sections(self, hit: Hit | None, row: Row | None) -> Iterator[MenuSection]:
        if hit:
            yield from self._link_sections(hit)
            yield from self._block_sections(hit)
        selected = not self._viewport.selection.is_empty
        copy_markdown = partial(self.copy, markdown=True) if selected else None
        yield MenuSection(
            tr("Selection") if selected else "",
            [
                MenuEntry(tr("&Copy"), self.copy if selected else None, _COPY_KEY),
                MenuEntry(tr("Copy as &Markdown"), copy_markdown),
                MenuEntry(tr("Select &all"), self._select_all if row else None, _SELECT_ALL_KEY),
            ],
        )
        if row:
            commands = self._commands(row)
            yield self._message_section(row, [command for command in commands if not command.is_destructive])
            yield MenuSection("", [MenuEntry(tr("Fi&nd in conversation"), self._find, _FIND_KEY)])
            if destructive := [command for command in commands if command.is_destructive]:
                yield MenuSection("", list(self._command_entries(destructive, row)))

    def _commands(self, row: Row) -> Sequence[MessageCommand]:
        rows = self._viewport.rows
        index = rows.index_of(row.item.id)
        return () if index is None else commands_at(rows.transcript, index, rows.render_context)

    def _command_entries(self, commands: Sequence[MessageCommand], row: Row) -> Iterator[MenuEntry]:
        """Yield entries for the buttons below the message, except copying, which has entries of its own."""
        for command in commands:
            if command.name == regenerate_with() and not command.refusal:
                yield from self._alternatives(row.item.message_id)
            elif command.name != copy_name():
                callback = None if command.refusal else command.run
                yield MenuEntry(escape_mnemonics(command.name), callback, command.keys, command.refusal)

    def _alternatives(self, message_id: str) -> list[MenuEntry]:
        actions = self._viewport.rows.render_context.message_actions
        return [_submenu_for(group, message_id) for group in (actions.alternatives() if actions else ())]

    def popup_alternatives(self, view: QWidget, item_id: str) -> None:
        """Open the menu of the models and reasoning levels with which an answer can be asked for anew."""
        rows = self._viewport.rows
        index = rows.index_of(item_id)
        row = None if index is None else rows.existing_row(index)
        if index is not None and row is not None:
            number = len(row.blocks) - 1
            boxes = (control.box for control in row.blocks[number].controls() if control.name == regenerate_with())
            box = next(boxes, QRect()).translated(self._viewport.block_box(index, number).topLeft())
            menu = make_menu(view, [MenuSection("", self._alternatives(row.item.message_id))])
            menu.setAccessibleName(regenerate_with())
            menu.popup(self._viewport.widget.mapToGlobal(box.bottomLeft()))

    def copy_message(self, item_id: str) -> None:
        """Copy the message whose last item this is: a prompt, or a whole answer without reasoning and calls."""
        rows = self._viewport.rows
        last = rows.index_of(item_id)
        if last is not None:
            whole = Selection()
            whole.set(TextPosition(self._first_row(last)), TextPosition(last, LAST_OFFSET, LAST_OFFSET))
            self._newest_copier().copy_steps(selection_extracts(whole, rows), markdown=False)
            self.confirm_copy()

    def confirm_copy(self) -> None:
        """Show that something was copied, where its button cannot show that."""
        self.show_message(tr("Copied."), _CONFIRMATION_MS)

    def _first_row(self, last: int) -> int:
        first = last
        while first and carrier_of(self._viewport.rows.transcript, first - 1) == last:
            first -= 1
        return first

    def _copy_markdown(self, row: Row) -> None:
        """Copy the message of a row as it was written: a whole answer; reasoning or a call by itself."""
        rows = self._viewport.rows
        index = rows.index_of(row.item.id)
        is_whole = index is not None and row.is_copied and commands_at(rows.transcript, index, rows.render_context)
        last = carrier_of(rows.transcript, index) if index is not None and is_whole else None
        parts = [row] if last is None else [rows.row(number) for number in range(self._first_row(last), last + 1)]
        texts = [part.source() for part in parts if part.is_copied or part is row]
        self._newest_copier().copy_markdown("\n\n".join(texts))

    def _message_section(self, row: Row, commands: Sequence[MessageCommand]) -> MenuSection:
        copier = self._newest_copier
        # Reasoning and calls are copied by themselves only.
        copy = next((command for command in commands if command.name == copy_name() and row.is_copied), None)
        run, keys = (copy.run, copy.keys) if copy else (lambda: copier().copy_steps(row.extracts()), None)
        return MenuSection(
            row.label,
            [
                *self._command_entries(commands, row),
                MenuEntry(tr("Copy m&essage"), run, keys),
                MenuEntry(tr("Copy message as Mar&kdown"), partial(self._copy_markdown, row)),
                MenuEntry(tr("Copy con&versation as Markdown"), self.copy_all),
                *self._link_entries(row.item.message_id),
                *map(_entry_for, row.actions()),
            ],
        )

    def _link_entries(self, message_id: str) -> list[MenuEntry]:
        link = self.message_link(message_id)
        return [MenuEntry(tr("Copy link to t&his message"), lambda: self._newest_copier().copy(link))] if link else []

    def _link_sections(self, hit: Hit) -> Iterator[MenuSection]:
        link = hit.link
        follow = partial(self._links.follow, link, hit.row)
        if target := safe_target(link):
            title = tr("Link to {0}").format(link_tooltip(target))
            copy = MenuEntry(tr("Copy &link"), lambda: self._newest_copier().copy(target))
            yield MenuSection(title, [MenuEntry(tr("&Open link"), follow), copy])
        elif link:
            words = tr("&Back to the text") if link.startswith(BACK_TARGET) else tr("&Go to footnote")
            yield MenuSection(tr("Footnote"), [MenuEntry(words, follow)])

    def _block_sections(self, hit: Hit) -> Iterator[MenuSection]:
        entries = [_entry_for(action) for action in hit.block.actions(hit.point)]
        if isinstance(hit.block, TableBlock):
            entries += self._table_entries(hit)
        elif isinstance(hit.block, MathBlock):
            words, text = tr("Copy &formula as LaTeX"), hit.block.text
            entries.append(MenuEntry(words, lambda: self._newest_copier().copy(text)))
        elif isinstance(hit.block, RemoteImageBlock | ThumbnailsBlock):
            picture = hit.block.image_at(hit.point)
            if picture is not None:
                entries.append(MenuEntry(tr("Copy p&icture"), partial(self._copy_image, picture)))
        if entries:
            yield MenuSection(_block_name(hit.block), entries)

    def _table_entries(self, hit: Hit) -> list[MenuEntry]:
        blocks = self._viewport.rows.row(hit.row).blocks

        def copy_markdown() -> None:
            pieces = table_pieces_at(blocks, hit.block_index)
            self._newest_copier().copy_markdown("\n".join(piece.markdown() for piece in pieces))

        def copy_csv() -> None:
            pieces = table_pieces_at(blocks, hit.block_index)
            self._newest_copier().copy(table_to_csv([row for piece in pieces for row in piece.cell_texts()]))

        return [
            MenuEntry(tr("Copy &table as Markdown"), copy_markdown),
            MenuEntry(tr("Copy table as C&SV"), copy_csv),
        ]

    def _copy_image(self, picture: ViewableImage) -> None:
        """Decode the image in the worker, and copy it unless something else was copied by then."""
        self._copier.stop()
        number, render_context = self._next_copy_number(), self._viewport.rows.render_context
        file = locate_image(picture, render_context.thumbnails.pictures)
        job, on_decoded = partial(decode_image, file, most=_MAX_COPIED_PIXELS), partial(self._on_image_decoded, number)
        render_context.highlighter.job_queue.submit(("copied picture", number), job, on_decoded)

    def _on_image_decoded(self, number: int, image: QImage) -> None:
        if number != self._copies:
            return
        if not image.isNull():
            self._copier.copy_image(image)
            return
        words = tr("This picture was not copied: it is damaged or too large. Open it to see the reason.")
        self.show_message(words, _FAILURE_MS)

    def show_message(self, words: str, duration_ms: int = _FAILURE_MS) -> None:
        """Show and announce a message about the newest copy, until the next copy at the latest."""
        number = self._copies

        def clear() -> None:
            if number == self._copies:
                self._is_message_shown = False
                self._copier.progress.emit("")

        announce(self._viewport.widget, words)
        self._is_message_shown = True
        self._copier.progress.emit(words)
        QTimer.singleShot(duration_ms, self._copier, clear)


def _entry_for(action: MenuAction) -> MenuEntry:
    return MenuEntry(escape_mnemonics(action.label), action.callback)


def _submenu_for(group: AlternativeGroup, message_id: str) -> MenuEntry:
    entries = [
        MenuEntry(escape_mnemonics(choice.label), partial(choice.choose, message_id), is_checked=choice.is_current)
        for choice in group.alternatives
    ]
    return MenuEntry(escape_mnemonics(group.title), None, sections=[MenuSection("", entries)])


def _block_name(block: Block) -> str:
    if isinstance(block, CodeBlock):
        return block.label
    if isinstance(block, TableBlock):
        return tr("Table")
    if isinstance(block, MathBlock):
        return tr("Formula")
    if isinstance(block, RemoteImageBlock | ThumbnailsBlock):
        return tr("Picture")
    return ""
