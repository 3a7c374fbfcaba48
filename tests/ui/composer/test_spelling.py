"""Wrong words in the message editor: their marks, and their context menu, by mouse and by key."""

import sys

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent, QTextCharFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from desktop_agent.engine.engine import Engine
from tests.fakes.dictionaries import ENGLISH, GERMAN, write_dictionary
from tests.fakes.qt_loop import Heard, in_loop, until
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.settings import Settings
from ui.bridge.spelling.dictionaries import FOLDER
from ui.bridge.spelling.spell_checker import SpellChecker
from ui.composer import spelling
from ui.composer.message_editor import MessageEditor
from ui.composer.spelling import SpellingMarks
from ui.style.theme import DARK, ThemeSource

__all__ = ["in_loop"]


class Driver:
    def __init__(self, bot, engine, tasks):
        self.engine = engine
        self.settings = Settings(engine, tasks)
        self.checker = SpellChecker(engine.folder, self.settings, tasks, ["en-US"])
        self.themes = ThemeSource()
        self.editor = MessageEditor(self.themes)
        bot.addWidget(self.editor)
        self.editor.resize(500, 200)
        self.marks = SpellingMarks(self.themes, self.editor, self.checker)
        self.editor.show()
        self.editor.setFocus()

    @property
    def marked(self):
        return [mark.cursor.selectedText() for mark in self.editor.extraSelections()]

    @property
    def colours(self):
        return {mark.format.underlineColor().name() for mark in self.editor.extraSelections()}

    async def until_marked(self, *words):
        await until(lambda: self.marked == [*words])

    def write(self, text):
        """Put a text there with the caret before it, as a draft that comes back."""
        self.editor.setPlainText(text)
        self.editor.moveCursor(self.editor.textCursor().MoveOperation.End)
        self.editor.moveCursor(self.editor.textCursor().MoveOperation.Start)

    def place(self, word, offset=1):
        cursor = self.editor.textCursor()
        cursor.setPosition(self.editor.toPlainText().index(word) + offset)
        return cursor

    async def open_menu(self, word, *, by_key=False):
        editor, cursor = self.editor, self.place(word)
        if by_key:
            editor.setTextCursor(cursor)
        pos = editor.cursorRect(cursor).center()
        reason = QContextMenuEvent.Reason.Keyboard if by_key else QContextMenuEvent.Reason.Mouse
        # As Qt sends them: by mouse to what is under the pointer, by key to what has the focus.
        target = editor if by_key else editor.viewport()
        QApplication.sendEvent(target, QContextMenuEvent(reason, pos, editor.viewport().mapToGlobal(pos)))
        await until(lambda: self.menus)
        return self.menus[0]

    @property
    def menus(self):
        return [menu for menu in self.editor.findChildren(QMenu) if menu.isVisible()]


@pytest.fixture
def in_editor(qtbot, in_loop, tmp_path):
    """Return a function that runs `work(driver)` with an editor, two languages and a real process."""
    write_dictionary(tmp_path / FOLDER, "en_US", ENGLISH)
    write_dictionary(tmp_path / FOLDER, "de_DE", GERMAN)

    def run(work):
        async def whole():
            engine = await Engine.open(tmp_path)
            tasks = BackgroundTasks(pytest.fail)
            driver = Driver(qtbot, engine, tasks)
            driver.checker.refresh()
            try:
                await work(driver)
            finally:
                await tasks.close()
                await driver.checker.close()
                await engine.close()

        in_loop(whole())

    return run


def words_of(menu):
    return [action.text() for action in menu.actions() if not action.isSeparator()]


def test_wrong_words_are_underlined_and_nothing_else_changes(in_editor):
    async def work(driver):
        changes = []
        driver.write("helo world\n`teh` 😀 the catz\n```\ncode blok\n```\nhere iz")
        driver.editor.textChanged.connect(lambda: changes.append(1))
        await driver.until_marked("helo", "catz", "iz")
        marks = driver.editor.extraSelections()
        assert marks[0].format.underlineStyle() is QTextCharFormat.UnderlineStyle.SpellCheckUnderline
        assert driver.colours == {driver.themes.theme.danger}
        assert not changes
        assert not driver.editor.document().isUndoAvailable()
        driver.themes.use(DARK, 100)
        await until(lambda: driver.colours == {DARK.danger})

    in_editor(work)


def test_the_word_that_is_typed_is_not_marked_until_the_caret_leaves_it(in_editor):
    async def work(driver):
        QTest.keyClicks(driver.editor, "catz helo")
        await driver.until_marked("catz")
        QTest.keyClick(driver.editor, Qt.Key.Key_Left)
        await driver.until_marked("catz", "helo")
        QTest.keyClick(driver.editor, Qt.Key.Key_End)
        QTest.keyClick(driver.editor, Qt.Key.Key_Backspace)
        await driver.until_marked("catz")

    in_editor(work)


def test_a_suggestion_replaces_the_word_in_one_step(in_editor, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(driver):
        driver.write("the helo world")
        await driver.until_marked("helo")
        menu = await driver.open_menu("helo")
        assert words_of(menu)[0] == "hello"
        others = words_of(menu).index("Add to dictionary")
        assert 1 <= others <= 5
        assert words_of(menu)[others + 1] == "Ignore"
        assert "Select All" in " ".join(words_of(menu))
        menu.actions()[0].trigger()
        assert driver.editor.toPlainText() == "the hello world"
        driver.editor.undo()
        assert driver.editor.toPlainText() == "the helo world"

    in_editor(work)


def test_a_menu_whose_suggestions_are_late_says_nothing_of_them(in_editor, qt_messages, monkeypatch):
    qt_messages.expect("grabbing the keyboard")
    monkeypatch.setattr(spelling, "_MENU_MS", 0)

    async def work(driver):
        driver.write("the helo world")
        await driver.until_marked("helo")
        assert words_of(await driver.open_menu("helo"))[0] == "Add to dictionary"

    in_editor(work)


def test_the_menu_opens_at_the_caret_by_key(in_editor, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(driver):
        driver.write("the cat\nhelo world")
        await driver.until_marked("helo")
        menu = await driver.open_menu("helo", by_key=True)
        assert menu.activeAction().text() == "hello"
        QTest.keyClick(menu, Qt.Key.Key_Return)
        assert driver.editor.toPlainText() == "the cat\nhello world"

    in_editor(work)


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="the platform makes an event of it")
def test_the_menu_opens_by_shift_and_f10(in_editor, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(driver):
        driver.write("helo world")
        await driver.until_marked("helo")
        driver.editor.setTextCursor(driver.place("helo"))
        QTest.keyClick(driver.editor, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
        await until(lambda: driver.menus)
        assert words_of(driver.menus[0])[0] == "hello"

    in_editor(work)


def test_over_a_right_word_the_menu_is_the_usual_one(in_editor, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(driver):
        driver.write("helo world")
        await driver.until_marked("helo")
        assert "Ignore" not in words_of(await driver.open_menu("world"))

    in_editor(work)


def test_an_added_word_stays_right_and_an_ignored_one_until_the_end(in_editor, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(driver):
        driver.write("catz Catz blorb catzz")
        await driver.until_marked("catz", "Catz", "blorb", "catzz")
        menu = await driver.open_menu("catz")
        next(action for action in menu.actions() if action.text() == "Add to dictionary").trigger()
        await driver.until_marked("blorb", "catzz")
        menu.close()
        await until(lambda: not driver.menus)
        menu = await driver.open_menu("blorb")
        next(action for action in menu.actions() if action.text() == "Ignore").trigger()
        await driver.until_marked("catzz")
        await until(lambda: driver.engine.preferences.spelling.words == "catz")

    in_editor(work)


def test_the_settings_say_in_which_languages(in_editor):
    async def change(driver, **changes):
        preferences = driver.settings.preferences
        spelling = preferences.spelling.model_copy(update=changes)
        await driver.engine.change_preferences(preferences.model_copy(update={"spelling": spelling}))

    async def work(driver):
        driver.write("die cat helo")
        await driver.until_marked("die", "helo")
        await change(driver, languages=("en_US", "de_DE"))
        await driver.until_marked("helo")
        await change(driver, languages=("de_DE",))
        await driver.until_marked("cat", "helo")
        await change(driver, check=False)
        await driver.until_marked()
        await change(driver, check=True, languages=("xx_XX",))
        driver.write("helo")
        driver.marks.update_marks()
        assert driver.marked == []

    in_editor(work)


def test_a_text_that_nobody_typed_is_not_checked(in_editor):
    async def work(driver):
        driver.write("helo " * 3)
        await driver.until_marked("helo", "helo", "helo")
        driver.write("helo " * 30_000)
        await driver.until_marked()

    in_editor(work)


def test_a_process_that_ends_is_replaced(in_editor):
    async def work(driver):
        driver.write("helo")
        await driver.until_marked("helo")
        driver.checker._worker._process._popen.kill()
        driver.write("helo catz")
        await driver.until_marked("helo", "catz")

    in_editor(work)


def test_what_is_asked_after_the_end_has_no_answer(qtbot, in_loop, tmp_path):
    async def work():
        engine = await Engine.open(tmp_path)
        tasks = BackgroundTasks(pytest.fail)
        driver = Driver(qtbot, engine, tasks)
        suggested = Heard(driver.checker.suggested)
        await driver.checker.close()
        driver.checker.suggest("helo")
        assert await suggested.next() == ("helo", [])
        await tasks.close()
        await engine.close()

    in_loop(work())
