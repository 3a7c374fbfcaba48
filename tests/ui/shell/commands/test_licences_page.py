"""The licences of all components in the help, by keyboard and by assistive technology."""

import threading
from importlib.metadata import version

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QListView, QPlainTextEdit

from tests.fakes.qt_loop import until
from ui.bridge.desktop.licences import Component
from ui.shell.commands import help_dialog
from ui.shell.commands.help_dialog import HelpDialog
from ui.style.list_rows import RowRole


def rows_of(screen):
    model = screen.find(QListView, "Components").model()
    return [model.index(number, 0) for number in range(model.rowCount())]


def test_about_leads_to_the_licences_of_what_is_installed(on_screen):
    async def work(screen):
        screen.action("About Desktop Agent").trigger()
        screen.press("All licences")
        await until(lambda: rows_of(screen))
        row = next(row for row in rows_of(screen) if row.data().startswith("httpx "))
        assert row.data() == f"httpx {version('httpx')}"
        assert row.data(RowRole.DETAIL) == "BSD-3-Clause"
        assert row.data(Qt.ItemDataRole.AccessibleTextRole) == f"httpx {version('httpx')}, BSD-3-Clause"
        screen.find(QListView, "Components").setCurrentIndex(row)
        text = screen.find(QPlainTextEdit, "Licence of httpx")
        assert "Encode OSS Ltd" in text.toPlainText()

    on_screen(work)


def test_the_keyboard_goes_through_the_list_and_into_the_text(on_screen, monkeypatch):
    threads = []

    def components():
        threads.append(threading.current_thread())
        return [Component("one", "1", "MIT", "First words."), Component("two", "2", "", "")]

    monkeypatch.setattr(help_dialog, "program_components", components)

    async def work(screen):
        screen.action("Licences").trigger()
        await until(lambda: rows_of(screen))
        components = screen.find(QListView, "Components")
        assert screen.find(QPlainTextEdit, "Licence of one").toPlainText() == "First words."
        QTest.keyClick(components, Qt.Key.Key_Down)
        text = screen.find(QPlainTextEdit, "Licence of two")
        # It says nothing of itself.
        assert text.toPlainText() == "two"
        QTest.keyClick(components, Qt.Key.Key_Tab)
        await until(text.hasFocus)
        QTest.keyClick(text, Qt.Key.Key_Tab)
        assert not text.hasFocus()
        screen.action("About Desktop Agent").trigger()
        screen.action("Licences").trigger()
        assert threading.main_thread() not in threads
        assert len(threads) == 1

    on_screen(work)


def test_a_damaged_list_is_said(on_screen, monkeypatch):
    def components():
        raise ValueError

    monkeypatch.setattr(help_dialog, "program_components", components)

    async def work(screen):
        screen.action("Licences").trigger()
        dialog = screen.find(HelpDialog, "Help")
        await until(lambda: any("The list of licences is damaged." in words for words in screen.words(dialog)))

    on_screen(work)
