"""Controls side by side never lie over one another: narrow, zoomed, with long words, and after a change unseen."""

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from desktop_agent.types.tool_calls import Effect
from tests.ui.approval.test_approval_dialog import call
from ui.approval.call_summary import CallHeader
from ui.style.boxes import hbox
from ui.style.controls import PushButton, label
from ui.style.layouts import FlowRows, break_words
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource
from ui.style.widgets import TextWithButtons


def areas(rows):
    return [each.geometry() for each in rows.children() if isinstance(each, QWidget) and not each.isHidden()]


def overlapping(found):
    return [(a, b) for at, a in enumerate(found) for b in found[at + 1 :] if a.intersects(b)]


def wrong(rows):
    found = areas(rows)
    outside = [each for each in found if not rows.rect().contains(each)]
    return overlapping(found) + outside


@pytest.fixture
def page(qtbot):
    made = QWidget()
    QVBoxLayout(made)
    made.resize(700, 200)
    qtbot.addWidget(made)
    return made


@pytest.mark.parametrize("zoom", [100, 150, 200])
@pytest.mark.parametrize("width", [240, 420, 900])
def test_the_tags_of_a_call_wrap(qtbot, qapp, zoom, width):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, zoom)
    apply_theme(qapp, themes)
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    header = CallHeader(themes, QWidget())
    column.addWidget(header)
    column.addStretch(1)
    rows = header.findChild(FlowRows)
    page.resize(width, 700)
    page.show()
    try:
        header.show_call(call(1, effects=frozenset()))
        qtbot.waitUntil(lambda: len(areas(rows)) == 1 and not wrong(rows))
        header.show_call(call(1, effects=frozenset(Effect)))
        qtbot.waitUntil(lambda: len(areas(rows)) == 1 + len(Effect) and not wrong(rows))
        for each in header._tags:
            each.setText(f"{each.text()}, und noch einige Wörter")
        qtbot.waitUntil(lambda: not wrong(rows))
        page.resize(width + 200, 700)
        qtbot.waitUntil(lambda: rows.width() > width and not wrong(rows))
        page.resize(width, 700)
        # As narrow as the longest of them lets it be.
        qtbot.waitUntil(lambda: not wrong(rows))
    finally:
        qapp.setStyleSheet("")
        qapp.setFont(font)
        qapp.setPalette(palette)


def test_what_changed_unseen_has_its_place_when_it_is_shown(qtbot, page):
    first, second = label("Can change things"), label("")
    second.hide()
    rows = FlowRows((first, second))
    page.layout().addWidget(rows)
    page.show()
    qtbot.waitUntil(lambda: first.width() > 0)
    page.hide()
    second.setText("Runs commands")
    second.setVisible(True)
    first.setText("Only reads")
    page.show()
    qtbot.waitUntil(lambda: areas(rows)[1].left() == first.geometry().right() + 1 + rows._gap)
    assert overlapping(areas(rows)) == []


def test_less_than_nothing_is_no_room(qtbot, page):
    rows = FlowRows((label("Only reads"), label("Reads files")))
    page.layout().addWidget(rows)
    page.show()
    assert rows.heightForWidth(-11) == rows.heightForWidth(0)


def test_they_are_mirrored_when_the_language_is(qtbot, page):
    first = label("Only reads")
    rows = FlowRows((first, label("Reads files")))
    page.layout().addWidget(rows)
    page.show()
    qtbot.waitUntil(lambda: first.width() > 0)
    assert first.geometry().left() == 0
    page.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    qtbot.waitUntil(lambda: first.geometry().right() == rows.rect().right())
    assert isinstance(first.geometry(), QRect)


def test_the_wide_one_keeps_its_place_when_it_has_a_row_of_its_own(qtbot, page):
    tool, arguments, check = QPushButton("read_file"), QLineEdit(), QPushButton("Check")
    arguments.setMinimumWidth(160)
    rows = FlowRows((tool, arguments, check), wide=arguments)
    page.layout().addWidget(rows)
    page.show()
    qtbot.waitUntil(lambda: rows.rows_for(rows.width()) == 1)
    assert arguments.width() > 300
    page.resize(310, 300)
    qtbot.waitUntil(lambda: tool.y() < arguments.y() < check.y() and not wrong(rows))
    assert arguments.width() == rows.width()
    assert rows.items == (tool, arguments, check)


def test_the_words_in_the_wide_one_are_never_cut(qtbot, page):
    field, connect = QLineEdit(placeholderText="Paste your API key into this field"), QPushButton("Connect")
    rows = FlowRows((field, connect), wide=field)
    page.layout().addWidget(rows)
    page.resize(900, 300)
    page.show()
    qtbot.waitUntil(lambda: rows.width() > 600)
    words = field.fontMetrics().horizontalAdvance(field.placeholderText())
    for width in range(600, words + 30, -7):
        page.resize(width, 300)
        qtbot.waitUntil(lambda width=width: rows.width() <= width)
        assert field.width() > words
    assert field.y() < connect.y()


def test_a_button_breaks_its_words_where_the_row_is_too_narrow(page, qtbot):
    words = "Look for a newer version of it now"
    button = PushButton(words)
    rows = FlowRows([button])
    page.layout().addWidget(rows)
    page.show()
    assert button.text() == words
    for width in (130, 100, 130):
        rows.setFixedWidth(width)
        qtbot.waitUntil(lambda width=width: rows.width() == button.width() == width or button.width() < width)
        assert button.text().replace("\n", " ") == words
        assert "\n" in button.text()
        assert button.width() >= button.minimumSizeHint().width()
        qtbot.waitUntil(lambda: button.height() == button.sizeHint().height() <= rows.height())
    rows.setFixedWidth(600)
    qtbot.waitUntil(lambda: button.text() == words)


def test_a_button_that_grows_gets_the_width_for_all_its_words(page, qtbot):
    button = PushButton("Try")
    rows = FlowRows([button])
    words = label("word " * 100, wrap=True)
    page.layout().addLayout(hbox(words, rows, grow=words))
    page.show()
    for text in ("Try the demo now", "Try it", "Try the demo"):
        button.setText(text)
        qtbot.waitUntil(lambda: button.width() == rows.width() == rows.sizeHint().width())
        assert button.text() == text


def test_the_last_one_can_be_apart_at_the_other_edge(page):
    buttons = [QPushButton(words) for words in ("Test", "Edit", "Remove")]
    rows = FlowRows(buttons, last_apart=buttons[-1])
    page.layout().addWidget(rows)
    page.show()
    assert buttons[1].geometry().right() < rows.width() // 2
    assert buttons[2].geometry().right() == rows.rect().right()


@pytest.mark.parametrize("text", ["Diese Unterhaltung nicht speichern", "Save && quit now"])
@pytest.mark.parametrize("tenths", range(60, 320, 13))
def test_words_stay_broken_as_they_are_in_the_same_room(qtbot, text, tenths):
    button = QPushButton(text)
    qtbot.addWidget(button)
    font = button.font()
    font.setPointSizeF(tenths / 10)
    button.setFont(font)
    for room in range(600, 100, -1):
        break_words(button, room)
        lines = button.text()
        break_words(button, room)
        assert button.text() == lines, room


def test_text_with_buttons_is_as_high_for_a_width_whatever_its_own_is(qtbot):
    """Else a scroll bar that comes with one height and goes with the other never rests."""
    words = QLabel("word " * 20)
    words.setWordWrap(True)
    part = TextWithButtons(words, [QPushButton("A button")])
    qtbot.addWidget(part)
    part.show()
    heights = []
    for own_width in (100, 900):
        part.resize(own_width, 300)
        QApplication.sendPostedEvents()
        heights.append([part.heightForWidth(width) for width in range(120, 1000, 40)])
    assert heights[0] == heights[1]
