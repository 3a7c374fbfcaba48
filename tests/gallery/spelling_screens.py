"""Spelling: wrong words in the composer, their context menu, and the page of settings."""

import asyncio

from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu

from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from ui.composer import spelling
from ui.shell.desktop.desktop_parts import SpellingPresenter

DRAFT = (
    "Please recieve the attched notes, and summarise `teh_code` of src/wrng.py.\n"
    "The accomodation is near https://exmple.org; Bergstraße is on the map."
)


def _spelling(desk: Desk) -> SpellingPresenter:
    settings = desk.settings._sources.settings
    presenter = SpellingPresenter(desk.window.themes, desk.folder, settings, desk.tasks, desk.window)
    presenter.watch(desk.window.page)
    return presenter


async def _write(desk: Desk) -> SpellingPresenter:
    desk.begin()
    await asyncio.sleep(0.2)
    presenter = _spelling(desk)
    editor = desk.window.page.composer.editor
    editor.setPlainText(DRAFT)
    editor.moveCursor(editor.textCursor().MoveOperation.End)
    await until(lambda: len(editor.extraSelections()) >= 3)
    return presenter


@scene("spelling")
async def words(desk: Desk) -> None:
    await (await _write(desk)).checker.close()


@scene("spelling-menu")
async def menu(desk: Desk) -> None:
    presenter = await _write(desk)
    editor = desk.window.page.composer.editor
    cursor = editor.textCursor()
    cursor.setPosition(10)
    editor.setTextCursor(cursor)
    # On a machine that is busy it would open without suggestions.
    spelling._MENU_MS = 60_000
    place = editor.cursorRect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, place, editor.viewport().mapToGlobal(place))
    QApplication.sendEvent(editor, event)
    await until(lambda: any(menu.isVisible() for menu in editor.findChildren(QMenu)))
    await presenter.checker.close()


@scene("settings-spelling")
async def settings(desk: Desk) -> None:
    desk.begin()
    dialog = desk.settings.show("spelling")
    folder = "/home/ada/.local/share/desktop-agent/hunspell"
    dialog.spelling.show_languages(["de_AT", "de_DE", "en_GB", "en_US"], "en_US", folder)
    await asyncio.sleep(0.3)


@scene("settings-spelling-none", 360, 640)
async def settings_none(desk: Desk) -> None:
    desk.begin()
    dialog = desk.settings.show("spelling")
    dialog.spelling.show_languages([], "", "/home/ada/.local/share/desktop-agent/hunspell")
    dialog.resize(360, 640)
    await asyncio.sleep(0.3)
