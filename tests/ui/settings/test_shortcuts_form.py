"""The page of keyboard shortcuts by itself: what it finds, what it refuses, and what it asks."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QListView, QPushButton

from ui.settings.shortcuts_form import KeyField, Shortcut, ShortcutSettings
from ui.style.list_rows import RowRole
from ui.style.theme import ThemeSource

CONTROL = Qt.KeyboardModifier.ControlModifier
SHORTCUTS = (
    Shortcut("commands", "Commands", "Ctrl+K", "Ctrl+K"),
    Shortcut("new", "New conversation", "Ctrl+N", "Ctrl+N", "chat start"),
    Shortcut("demo", "Try the demo", "", ""),
    Shortcut("send", "Send the message", "Enter", "Enter", choices=("Enter", "Ctrl+Enter")),
    Shortcut("stop", "Stop the answer", "Esc", "Esc", fixed="These keys are fixed."),
)


class Page:
    """The page as a person uses it; what is changed is shown at once, as the window does it."""

    def __init__(self, qtbot):
        self.form = ShortcutSettings(ThemeSource())
        qtbot.addWidget(self.form)
        self.form.show_shortcuts(SHORTCUTS)
        self.form.keys_changed.connect(self.change)
        self.form.show()
        qtbot.waitActive(self.form)
        self.changes = []

    def change(self, keys):
        self.changes.append(keys)
        self.form.show_shortcuts(
            [
                Shortcut(
                    shortcut.name,
                    shortcut.title,
                    keys.get(shortcut.name, shortcut.default),
                    shortcut.default,
                    shortcut.words,
                )
                if not shortcut.fixed and not shortcut.choices
                else shortcut
                for shortcut in SHORTCUTS
            ]
        )

    def find(self, kind, name):
        return next(widget for widget in self.form.findChildren(kind) if widget.accessibleName() == name)

    @property
    def rows(self):
        model = self.find(QListView, "Shortcuts").model()
        return {model.index(n, 0).data(): model.index(n, 0).data(RowRole.DETAIL) for n in range(model.rowCount())}

    def choose(self, title):
        rows = self.find(QListView, "Shortcuts")
        rows.setCurrentIndex(rows.model().index(list(self.rows).index(title), 0))

    def field(self, title):
        return self.find(KeyField, f"Keys of “{title}”")

    def press(self, name):
        QTest.mouseClick(self.find(QPushButton, name), Qt.MouseButton.LeftButton)

    @property
    def words(self):
        return [label.text() for label in self.form.findChildren(QLabel) if label.isVisible()]


@pytest.fixture
def page(qtbot):
    return Page(qtbot)


def test_it_finds_by_words_and_by_keys(page):
    search = page.find(QLineEdit, "Search shortcuts")
    for typed in ("new conv", "chat", "ctrl+n"):
        search.setText(typed)
        assert list(page.rows) == ["New conversation"]
    search.setText("nowhere")
    assert page.rows == {}
    assert "No action found with these words or keys." in page.words
    search.clear()
    key_field = page.find(KeyField, "Find by pressing keys")
    QTest.keyClick(key_field, Qt.Key.Key_K, CONTROL)
    assert list(page.rows) == ["Commands"]
    assert page.changes == []
    QTest.keyClick(key_field, Qt.Key.Key_Escape)
    assert len(page.rows) == len(SHORTCUTS)


def test_keys_are_given_changed_removed_and_reset(page):
    page.choose("Try the demo")
    QTest.keyClick(page.field("Try the demo"), Qt.Key.Key_D, CONTROL)
    assert page.changes == [{"demo": "Ctrl+D"}]
    assert page.rows["Try the demo"] == "Ctrl+D (changed)"
    page.choose("New conversation")
    page.press("No keys")
    assert page.changes[-1] == {"demo": "Ctrl+D", "new": ""}
    page.press("Reset")
    assert page.changes[-1] == {"demo": "Ctrl+D"}
    page.press("Reset all shortcuts")
    page.press("Reset all shortcuts now")
    assert page.changes[-1] == {}
    assert page.rows["Try the demo"] == ""


def test_keys_of_another_action_are_taken_over_only_when_the_person_says_so(page):
    page.choose("Try the demo")
    for answer in ("Cancel", "Take the keys over"):
        QTest.keyClick(page.field("Try the demo"), Qt.Key.Key_N, CONTROL)
        assert page.changes == []
        assert any("Ctrl+N is used by “New conversation”." in words for words in page.words)
        button = next(
            button
            for button in page.form.findChildren(QPushButton)
            if button.accessibleName() == answer and button.isVisible()
        )
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        assert page.field("Try the demo").hasFocus()
    assert page.changes == [{"new": "", "demo": "Ctrl+N"}]


@pytest.mark.parametrize(
    ("key", "modifiers", "words"),
    [
        (Qt.Key.Key_D, Qt.KeyboardModifier.NoModifier, "D alone is needed"),
        (Qt.Key.Key_Return, CONTROL, "Ctrl+Enter is used in the message editor"),
        (Qt.Key.Key_C, CONTROL, "Ctrl+C is used for editing text"),
    ],
)
def test_keys_that_are_needed_elsewhere_are_refused(page, key, modifiers, words):
    page.choose("New conversation")
    field = page.field("New conversation")
    QTest.keyClick(field, key, modifiers)
    assert any(text.startswith(words) for text in page.words)
    assert (page.changes, field.keys) == ([], "Ctrl+N")
    QTest.keyClick(field, Qt.Key.Key_F4)
    assert page.changes == [{"new": "F4"}]
    assert not any(text.startswith(words) for text in page.words)


def test_keys_of_the_message_are_chosen_and_fixed_ones_say_so(page):
    chosen = []
    page.form.choice_changed.connect(lambda name, index: chosen.append((name, index)))
    page.choose("Send the message")
    choice = page.find(QComboBox, "Keys of “Send the message”")
    assert [choice.itemText(n) for n in range(choice.count())] == ["Enter", "Ctrl+Enter"]
    choice.setFocus()
    QTest.keyClick(choice, Qt.Key.Key_Down)
    assert chosen == [("send", 1)]
    page.choose("Stop the answer")
    assert "These keys are fixed." in page.words
    assert not page.field("Stop the answer").isVisible()


def test_the_approval_dialog_is_named(page):
    assert any("keys of the approval dialog are fixed" in text for text in page.words)


def test_tab_leaves_the_field_and_keeps_its_keys(page):
    page.choose("New conversation")
    field = page.field("New conversation")
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_Tab)
    assert not field.hasFocus()
    assert (field.keys, page.changes) == ("Ctrl+N", [])
