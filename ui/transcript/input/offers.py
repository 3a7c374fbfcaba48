"""What can be done with what is under the pointer, or where the keyboard is: link, block, selection, message, all."""

from collections.abc import Callable, Iterator
from functools import partial

from PySide6.QtCore import QCoreApplication, QPoint, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QImage, QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QWidget

from ui.look.controls import announce
from ui.look.sentences import literal
from ui.transcript.blocks.block import Action, Block
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.picture.remote_block import RemoteBlock
from ui.transcript.blocks.picture.thumbnails_block import ThumbnailsBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BACK_TARGET
from ui.transcript.copying.spreadsheet import as_csv
from ui.transcript.input.copying import Copier
from ui.transcript.input.links import Links, Under, under
from ui.transcript.input.menu import Entry, Topic, make_menu
from ui.transcript.markdown.inline import tip_of
from ui.transcript.markdown.inline.links import safe_target
from ui.transcript.pictures import Viewable, read_picture
from ui.transcript.pictures import place_of as lies_at
from ui.transcript.rows.body.extracts import table_at
from ui.transcript.rows.row import Row
from ui.transcript.surface.places import box_of
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.selection import all_extracts, extracts_of
from ui.transcript.surface.stops import place_of

_COPY, _ALL = QKeySequence.StandardKey.Copy, QKeySequence.StandardKey.SelectAll
_FIND = QKeySequence.StandardKey.Find

_MOST_COPIED = 40_000_000
"""Pixels of a picture, as where it is looked at; a larger one is copied smaller."""

_SAID = 5000
"""Milliseconds for which it is said that something was not copied."""


class Offers:
    """Copies, and makes the menus that offer it."""

    def __init__(
        self,
        screen: Screen,
        links: Links,
        copier: Copier,
        select_all: Callable[[], None],
        find: Callable[[], None],
    ) -> None:
        self._screen = screen
        self._links = links
        self._copier = copier
        self._select_all = select_all
        self._find = find
        self._copies = 0
        self._says = False
        facts = screen.rows.stage.facts
        facts.code_copied.connect(self._count)
        facts.details_copied.connect(self._count)

    def _count(self) -> int:
        """One more copy was asked for: what was asked for before it must not come after it."""
        self._copies += 1
        if self._says:
            self._says = False
            self._copier.progress.emit("")
        return self._copies

    def _newest(self) -> Copier:
        self._count()
        return self._copier

    def copy(self, *, markdown: bool = False) -> None:
        """What is selected."""
        if not self._screen.selection.is_empty:
            self._newest().copy_steps(extracts_of(self._screen.selection, self._screen.rows), markdown=markdown)

    def copy_all(self) -> None:
        """The conversation as Markdown, with who said what."""
        self._newest().copy_steps(all_extracts(self._screen.rows), markdown=True)

    def pop_up(self, event: QContextMenuEvent, view: QWidget) -> QMenu:
        """The menu for a click of the mouse, or for the key that opens menus."""
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            return self.pop_up_by_key(view)
        return self._pop_up(view, event.pos(), event.globalPos())

    def hear_key(self, view: QWidget) -> None:
        """Shift+F10: where the platform does not make a menu's event of it, as it does of the key for menus."""
        if QGuiApplication.platformName() not in {"windows", "cocoa"}:
            shortcut = QShortcut(QKeySequence("Shift+F10"), view)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(lambda: self.pop_up_by_key(view))

    def pop_up_by_key(self, view: QWidget) -> QMenu:
        """The menu about what has the keyboard."""
        point = self._keyboard_point()
        return self._pop_up(view, point, self._screen.viewport.mapToGlobal(point))

    def _pop_up(self, view: QWidget, point: QPoint, at: QPoint) -> QMenu:
        menu = self.menu_about(point, view)
        menu.popup(at)
        return menu

    def menu_about(self, point: QPoint, view: QWidget) -> QMenu:
        """The menu about what is under a point of the viewport, not shown yet."""
        found = under(self._screen, point)
        row = self._screen.rows.row(self._row_at(point, found)) if len(self._screen.rows) else None
        return make_menu(view, list(self._topics(found, row)))

    def _row_at(self, point: QPoint, found: Under | None) -> int:
        return found.row if found else self._screen.rows.row_at(self._screen.rows.top + point.y())

    def _keyboard_point(self) -> QPoint:
        """In the control or message that has the keyboard, or at the end of the selection, or in the middle."""
        screen = self._screen
        middle = screen.viewport.rect().center()
        index, key = screen.focused
        if index < 0 and not screen.selection.is_empty:
            index, key = screen.selection.end.row, ""
        if not 0 <= index < len(screen.rows):
            return middle
        box, row = screen.row_box(index), screen.rows.row(index)
        if key and (link := place_of(row, key)) and (found := box_of(screen, index, link)):
            return found.center().toPoint()
        for at, control in row.controls() if key else ():
            if f"{at}/{control.name}" == key:
                box = control.box.translated(row.block_box(at).topLeft() + box.topLeft())
        seen = box.intersected(screen.viewport.rect())
        return seen.topLeft() + QPoint(min(8, seen.width() // 2), min(24, seen.height() // 2)) if seen else middle

    def _topics(self, found: Under | None, row: Row | None) -> Iterator[Topic]:
        if found:
            yield from self._about_link(found)
            yield from self._about_block(found)
        translate = QCoreApplication.translate
        selected = not self._screen.selection.is_empty
        yield Topic(
            translate("Transcript", "Selection") if selected else "",
            [
                Entry(translate("Transcript", "&Copy"), self.copy if selected else None, _COPY),
                Entry(
                    translate("Transcript", "Copy as &Markdown"),
                    partial(self.copy, markdown=True) if selected else None,
                ),
                Entry(translate("Transcript", "Select &all"), self._select_all if row else None, _ALL),
            ],
        )
        if row:
            yield self._about_message(row)
            words = translate("Transcript", "Fi&nd in conversation")
            yield Topic("", [Entry(words, self._find, _FIND)])

    def _about_message(self, row: Row) -> Topic:
        translate, newest = QCoreApplication.translate, self._newest
        return Topic(
            row.label,
            [
                Entry(translate("Transcript", "Copy m&essage"), lambda: newest().copy_steps(row.extracts())),
                Entry(
                    translate("Transcript", "Copy message as Mar&kdown"), lambda: newest().copy_markdown(row.source())
                ),
                Entry(translate("Transcript", "Copy con&versation as Markdown"), self.copy_all),
                *map(_entry, row.actions()),
            ],
        )

    def _about_link(self, found: Under) -> Iterator[Topic]:
        translate, link = QCoreApplication.translate, found.block.link_at(found.point)
        follow = partial(self._links.follow, link, found.row)
        if target := safe_target(link):
            about = translate("Transcript", "Link to {0}").format(tip_of(target))
            copy = Entry(translate("Transcript", "Copy &link"), lambda: self._newest().copy(target))
            yield Topic(about, [Entry(translate("Transcript", "&Open link"), follow), copy])
        elif link.startswith(BACK_TARGET):
            yield Topic(
                translate("Transcript", "Footnote"), [Entry(translate("Transcript", "&Back to the text"), follow)]
            )
        elif link:
            yield Topic(
                translate("Transcript", "Footnote"), [Entry(translate("Transcript", "&Go to footnote"), follow)]
            )

    def _about_block(self, found: Under) -> Iterator[Topic]:
        entries = [_entry(action) for action in found.block.actions(found.point)]
        if isinstance(found.block, TableBlock):
            entries += self._for_table(found)
        elif isinstance(found.block, MathBlock):
            words, text = QCoreApplication.translate("Transcript", "Copy &formula as LaTeX"), found.block.text
            entries.append(Entry(words, lambda: self._newest().copy(text)))
        elif isinstance(found.block, RemoteBlock | ThumbnailsBlock):
            entries += self._for_picture(found.block.picture_at(found.point))
        if entries:
            yield Topic(_name_of(found.block), entries)

    def _for_table(self, found: Under) -> list[Entry]:
        blocks = self._screen.rows.row(found.row).blocks
        translate, newest = QCoreApplication.translate, self._newest
        return [
            Entry(
                translate("Transcript", "Copy &table as Markdown"),
                lambda: newest().copy_markdown("\n".join(each.markdown() for each in table_at(blocks, found.at))),
            ),
            Entry(
                translate("Transcript", "Copy table as C&SV"),
                lambda: newest().copy(as_csv([row for each in table_at(blocks, found.at) for row in each.texts()])),
            ),
        ]

    def _for_picture(self, picture: Viewable | None) -> list[Entry]:
        if picture is None:
            return []
        return [Entry(QCoreApplication.translate("Transcript", "Copy &image"), partial(self._copy_picture, picture))]

    def _copy_picture(self, picture: Viewable) -> None:
        """Decoded elsewhere, so it comes later, unless something else was copied by then."""
        self._copier.stop()
        number, stage = self._count(), self._screen.rows.stage
        where = lies_at(picture, stage.thumbnails.pictures)
        job = partial(read_picture, where, most=_MOST_COPIED)
        stage.highlighter.elsewhere(("copied picture", number), job, partial(self._picture_came, number))

    def _picture_came(self, number: int, image: QImage) -> None:
        if number != self._copies:
            return
        if not image.isNull():
            self._copier.copy_image(image)
            return
        words = QCoreApplication.translate(
            "Transcript", "This picture was not copied: it cannot be read, or it is too large. Open it to see which."
        )

        def say_no_more() -> None:
            if number == self._copies:
                self._says = False
                self._copier.progress.emit("")

        announce(self._screen.viewport, words)
        self._says = True
        self._copier.progress.emit(words)
        QTimer.singleShot(_SAID, self._copier, say_no_more)


def _entry(action: Action) -> Entry:
    return Entry(literal(action.words), action.act)


def _name_of(block: Block) -> str:
    translate = QCoreApplication.translate
    if isinstance(block, CodeBlock):
        return translate("Transcript", "Code: {0}").format(block.language) if block.language else _code()
    if isinstance(block, TableBlock):
        return translate("Transcript", "Table")
    if isinstance(block, MathBlock):
        return translate("Transcript", "Formula")
    if isinstance(block, RemoteBlock | ThumbnailsBlock):
        return translate("Transcript", "Image")
    return ""


def _code() -> str:
    return QCoreApplication.translate("Transcript", "Code")
