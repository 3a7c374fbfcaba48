"""Where messages that wait have little room, their buttons fold into a menu, and their words are not cut to nothing."""

import pytest
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from ui.bridge.session_controls import WaitingMessage
from ui.composer.message_queue import MessageQueueView, QueuedMessageRow
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource
from ui.style.widgets import SmallTextEdit

WORDS = "Then look at the tests of the parser, and say which of them cannot fail."
MESSAGES = (
    WaitingMessage(id="1", text=WORDS, when="soon", pictures=0),
    WaitingMessage(id="2", text=WORDS, when="idle", pictures=2),
    WaitingMessage(id="3", text="Short.", when="idle", pictures=0),
)
DOING = ("Send earlier", "Send later", "Edit", "Remove")


class Page(QWidget):
    def __init__(self, themes):
        super().__init__()
        self.waiting = MessageQueueView(themes)
        column = QVBoxLayout(self)
        column.addWidget(self.waiting)
        column.addStretch(1)
        self.resize(1200, 900)
        self.show()
        self.waiting.show_messages(MESSAGES, working=True)

    def is_fitted(self):
        """Whether each row fills the width and shows all of its lines."""
        inside, rows = self.waiting._list.viewport(), self.waiting.rows
        heights = [row.heightForWidth(row.width()) for row in rows]
        gaps = 4 * (len(rows) - 1)
        return (
            all(row.width() == inside.width() for row in rows)
            and [row.height() for row in rows] == heights
            and self.waiting._list.height() == min(sum(heights) + gaps, self.waiting._list._max_height())
        )

    def buttons(self, row):
        buttons = (*row.findChildren(QToolButton), *row.findChildren(QPushButton))
        return {button.accessibleName(): button for button in buttons if button.isVisible()}


@pytest.fixture
def page(request, qtbot, qapp):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, getattr(request, "param", 100))
    apply_theme(qapp, themes)
    new_page = Page(themes)
    qtbot.addWidget(new_page)
    yield new_page
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


def at_width(qtbot, page, width):
    page.resize(width, 900)
    qtbot.waitUntil(lambda: page.width() < 1200 and page.is_fitted())


@pytest.mark.parametrize(
    ("page", "width", "lines"),
    [(100, 900, 1), (100, 480, 1), (100, 360, 2), (150, 480, 2), (200, 480, 2)],
    indirect=["page"],
)
def test_the_words_are_seen_in_at_most_two_lines(qtbot, page, width, lines):
    at_width(qtbot, page, width)
    for row in page.waiting.rows[:2]:
        assert len(row._text.text()) >= 12
        words, controls = row._text.geometry(), row._controls.geometry()
        assert (words.bottom() < controls.top()) is (lines == 2)
        assert not words.intersects(controls)
        assert row.height() <= words.height() * (lines - 1) + controls.height() + 12
        corners = {name: button.mapTo(row, button.rect().bottomRight()) for name, button in page.buttons(row).items()}
        assert {name for name, corner in corners.items() if not row.rect().contains(corner)} == set()


@pytest.mark.parametrize(("width", "folded"), [(900, False), (480, True), (360, True)])
def test_the_buttons_of_all_rows_fold_together(qtbot, page, width, folded):
    at_width(qtbot, page, width)
    for row in page.waiting.rows:
        names = page.buttons(row)
        assert ("Change this message" in names) is folded
        assert (set(DOING) <= set(names)) is not folded
        assert (set(DOING) & set(names) == set()) is folded
        assert ("Soon" in row.accessibleDescription()) is False
    timing = next(button for name, button in page.buttons(page.waiting.rows[1]).items() if name.startswith("Sent: "))
    assert timing.text() == ("When done" if folded else "When the agent is done")
    assert timing.accessibleName() == "Sent: When the agent is done. Press to change it to: As soon as possible"


def test_they_fold_and_unfold_at_one_width(qtbot, page):
    """Whatever a row says, and whichever way the width went."""
    for width in (*range(820, 560, -10), *range(560, 820, 10)):
        at_width(qtbot, page, width)
        folded = {row._controls.is_folded for row in page.waiting.rows}
        assert len(folded) == 1, width


def actions(menu):
    return [action for action in menu.actions() if not action.isSeparator()]


def test_the_menu_does_what_the_buttons_do(qtbot, page, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    at_width(qtbot, page, 480)
    signals = []
    page.waiting.moved.connect(lambda *args: signals.append(args))
    page.waiting.removed.connect(lambda *args: signals.append(args))
    first, second, _ = page.waiting.rows
    menu = second.findChild(QMenu)
    page.buttons(second)["Change this message"].click()
    assert menu.isVisible()
    menu.close()
    assert [action.text().split(" (")[0] for action in actions(menu)] == list(DOING)
    assert [action.isEnabled() for action in actions(menu)] == [True] * 4
    assert [action.isEnabled() for action in actions(first.findChild(QMenu))] == [False, True, True, True]
    earlier, later, edit, remove = actions(menu)
    for entry in (earlier, later, remove):
        entry.trigger()
    assert signals == [("2", 0), ("2", 2), ("2",)]
    edit.trigger()
    assert second.findChild(SmallTextEdit).toPlainText() == WORDS


@pytest.mark.parametrize(
    ("text", "files", "name"), [("Read\nit", ("a.txt", "b.txt"), "Read it · a.txt · b.txt"), ("", ("a.txt",), "a.txt")]
)
def test_a_message_names_what_is_attached_to_it(qtbot, text, files, name):
    themes, message = ThemeSource(), WaitingMessage(id="1", text=text, when="soon", files=files)
    row = QueuedMessageRow(themes, message, MessageQueueView(themes))
    qtbot.addWidget(row)
    assert row.accessibleName() == f"Waiting message: {name}"
