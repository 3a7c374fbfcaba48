from pathlib import Path

import pytest
from pydantic import SecretStr
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QCompleter, QDialog, QLabel, QStyle, QStyleOptionComboBox, QWidget

import resources
from desktop_agent.types.errors import Sentence
from tests.ui.style.test_contrast import THEMES
from ui.style.boxes import vbox
from ui.style.controls import ElidedLabel, IconButton, button, label, set_by_name
from ui.style.server_fields import ApiKeyField, Status, StatusLine
from ui.style.style_sheet import ThemeApplier, mix_colours, palette_for, style_sheet
from ui.style.text import escape_mnemonics, format_bytes, native_shortcut, plain_tooltip, translate_sentence
from ui.style.theme import (
    BODY_SIZE,
    DARK,
    LIGHT,
    STRONG_DARK,
    ColourSchemeFollower,
    ThemeSource,
    icon,
    mono_font,
    pixmap,
    point_size,
    theme_for,
)
from ui.style.widgets import ComboBox

ICONS = sorted(path.stem for path in (Path(resources.__file__).parent / "icons").glob("*.svg"))


@pytest.mark.parametrize("name", ICONS)
def test_every_icon_draws_something_at_every_scale(qapp, name):
    for ratio in (1, 2):
        drawing = pixmap(name, "#ff0000", 24, ratio)
        image = drawing.toImage()
        assert drawing.devicePixelRatio() == ratio
        assert image.width() == 24 * ratio
        assert any(image.pixelColor(x, y).alpha() > 0 for x in range(image.width()) for y in range(image.height())), (
            name
        )


def test_icons_take_the_colour(qapp):
    image = pixmap("stop", "#12ab34", 24).toImage()
    assert image.pixelColor(12, 12) == QColor("#12ab34")


def test_an_icon_is_drawn_anew_for_a_fine_screen(qapp):
    assert icon("send", "#000000").pixmap(QSize(18, 18), 2.0).width() == 36


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_the_palette_is_the_theme(qapp, theme):
    palette = palette_for(theme)
    assert palette.window().color() == QColor(theme.window)
    assert palette.highlightedText().color() == QColor(theme.text)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_the_style_sheet_is_whole(theme):
    sheet = style_sheet(theme)
    assert theme.accent in sheet
    assert "{" in sheet
    assert "{{" not in sheet


def test_zoom_scales_text_and_room():
    assert point_size(200) == 2 * point_size(100)
    assert "min-height: 40px" in style_sheet(LIGHT, 200)


def test_mixed_colours():
    assert mix_colours("#000000", "#ffffff", 0.5) == "#808080"
    assert mix_colours("#102030", "#ffffff", 0) == "#102030"


def test_style_follows_the_source(qapp):
    themes = ThemeSource(LIGHT)
    style = ThemeApplier(qapp, themes)
    try:
        themes.use(DARK, 100)
        assert qapp.palette().window().color() == QColor(DARK.window)
    finally:
        qapp.setStyleSheet("")
    assert qapp.style().name() == "fusion"
    style.deleteLater()


@pytest.mark.parametrize(
    ("choice", "system_dark", "theme"),
    [("system", True, DARK), ("system", False, LIGHT), ("light", True, LIGHT), ("dark", False, DARK)],
)
def test_choice_and_system_decide_the_theme(choice, system_dark, theme):
    assert theme_for(choice, system_dark=system_dark) == theme


def test_strong_contrast_has_its_own_themes():
    assert theme_for("dark", system_dark=False, strong_contrast=True) == STRONG_DARK


def test_the_system_scheme_is_followed_until_the_person_chooses(qapp):
    themes = ThemeSource(LIGHT)
    hints = QGuiApplication.styleHints()
    follower = ColourSchemeFollower(themes, hints)
    try:
        hints.setColorScheme(Qt.ColorScheme.Dark)
        hints.colorSchemeChanged.emit(hints.colorScheme())
        dark_on_this_platform = hints.colorScheme() == Qt.ColorScheme.Dark
        assert themes.theme == (DARK if dark_on_this_platform else LIGHT)
        follower.choose("light", 150)
        assert (themes.theme, themes.zoom) == (LIGHT, 150)
        follower.choose("dark", 100)
        assert themes.theme == DARK
    finally:
        hints.unsetColorScheme()
        follower.deleteLater()


@pytest.mark.parametrize("dark", [True, False])
def test_the_first_paint_takes_the_systems_scheme_from_its_palette(qapp, dark):
    before, themes = qapp.palette(), ThemeSource()
    follower = ColourSchemeFollower(themes, qapp.styleHints())
    palette = QPalette(QColor("#202020" if dark else "#f0f0f0"))
    palette.setColor(QPalette.ColorRole.WindowText, QColor("#eeeeee" if dark else "#111111"))
    qapp.setPalette(palette)
    try:
        follower.guess("system", 100)
        assert themes.theme == (DARK if dark else LIGHT)
        follower.guess("light" if dark else "dark", 120)
        assert (themes.theme, themes.zoom) == (LIGHT if dark else DARK, 120)
        follower.apply()
        assert (themes.theme, themes.zoom) == (LIGHT if dark else DARK, 120)
    finally:
        qapp.setPalette(before)
        follower.deleteLater()


def test_values_of_enumerations_go_by_name_and_wrong_ones_are_refused(qapp):
    widget = QLabel()
    set_by_name(widget, alignment="AlignAbsolute|AlignRight", focusPolicy="TabFocus")
    assert widget.alignment() == Qt.AlignmentFlag.AlignAbsolute | Qt.AlignmentFlag.AlignRight
    assert widget.focusPolicy() == Qt.FocusPolicy.TabFocus
    for wrong in ({"focusPolicy": "Tab"}, {"focus": "TabFocus"}):
        with pytest.raises(ValueError, match="Tab"):
            set_by_name(widget, **wrong)


def test_code_is_in_a_fixed_pitch_font(qapp):
    font = mono_font()
    assert font.fixedPitch()
    assert font.pointSizeF() < BODY_SIZE


def test_a_sentence_of_a_strangers_file_is_only_text():
    words = "{x.__class__} {x:>999999999} {"
    assert translate_sentence(Sentence(words, {"x": "1"})) == words


def test_sentences_are_filled_in():
    assert translate_sentence(Sentence("{name} is {what}.", {"name": "A", "what": "{odd}"})) == "A is {odd}."
    assert translate_sentence(Sentence("As it {stands}")) == "As it {stands}"


def test_text_from_outside_is_harmless(qtbot):
    assert escape_mnemonics("R&D") == "R&&D"
    assert plain_tooltip("Attach files (Ctrl+Shift+A)") == "Attach files (Ctrl+Shift+A)"
    assert plain_tooltip("word " * 40).startswith("<qt>"), "Qt wraps it only then"
    assert plain_tooltip('<img src="http://x/y">') == "<qt>&lt;img src=&quot;http://x/y&quot;&gt;</qt>"
    made = label("<b>bold</b>")
    qtbot.addWidget(made)
    assert made.textFormat() == Qt.TextFormat.PlainText


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (2_400, "2.4 KB"), (50_000_000, "50 MB"), (999_900, "1 MB"), (2e9, "2 GB")],
)
def test_sizes_in_words(size, words):
    assert format_bytes(int(size)) == words


def test_a_button_has_a_name_and_no_enter(qtbot):
    pressed = []
    made = button("Save & go", lambda: pressed.append(1))
    qtbot.addWidget(made)
    assert made.accessibleName() == "Save & go"
    assert not made.autoDefault()
    qtbot.mouseClick(made, Qt.MouseButton.LeftButton)
    assert pressed == [1]


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_enter_presses_the_button_that_has_the_keyboard_and_not_the_default_one(qtbot, key):
    pressed = []
    dialog = QDialog()
    qtbot.addWidget(dialog)
    first = button("Go on", lambda: pressed.append("go on"))
    first.setDefault(True)
    others = [button("Cancel", lambda: pressed.append("cancel")), IconButton(ThemeSource(LIGHT), "close", "Close")]
    others[1].clicked.connect(lambda: pressed.append("close"))
    vbox(first, *others, parent=dialog)
    with qtbot.waitExposed(dialog):
        dialog.show()
    for other in others:
        other.setFocus()
        qtbot.keyClick(other, key)
    assert pressed == ["cancel", "close"]
    qtbot.keyClick(others[0], Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert pressed == ["cancel", "close"], "Ctrl+Enter sends messages"


def test_an_icon_button_is_tinted_again(qtbot):
    themes = ThemeSource(LIGHT)
    made = IconButton(themes, "close", "Close")
    qtbot.addWidget(made)
    before = made.icon().pixmap(18).toImage()
    themes.use(DARK, 100)
    assert made.icon().pixmap(18).toImage() != before
    assert made.accessibleName() == "Close"


def test_an_elided_label_keeps_all_of_its_text(qtbot):
    made = ElidedLabel("a long text that does not fit at all")
    qtbot.addWidget(made)
    made.resize(60, 20)
    made.show()
    assert QLabel.text(made).endswith("…")
    assert made.accessibleName() == "a long text that does not fit at all"


def test_a_state_line_speaks(qtbot):
    line = StatusLine(ThemeSource())
    qtbot.addWidget(line)
    assert line.isHidden()
    line.show_state(Status.ERROR, Sentence("{a} failed.", {"a": "It"}), Sentence("Try again."))
    assert line.text == "It failed. Try again."
    assert not line.isHidden()
    line.show_state(Status.IDLE)
    assert line.isHidden()


def test_the_icon_of_a_state_line_is_beside_its_first_line(qtbot):
    line = StatusLine(ThemeSource())
    qtbot.addWidget(line)
    line.show_state(Status.ERROR, "The server could not be started, and says in many words why.")
    line.resize(150, 120)
    line.layout().activate()
    drawing, text = line.findChildren(QLabel)
    assert drawing.geometry().center().y() < text.fontMetrics().height() < text.height() / 2


def test_a_pasted_key_is_handed_on_once(qtbot):
    field = ApiKeyField("Key", "Paste")
    qtbot.addWidget(field)
    QGuiApplication.clipboard().setText("  sk-0123456789abcdef \n")
    with qtbot.waitSignal(field.key_entered) as given:
        field.paste()
    assert isinstance(given.args[0], SecretStr)
    assert given.args[0].get_secret_value() == "sk-0123456789abcdef"
    assert field.echoMode() == ApiKeyField.EchoMode.Password


def test_a_typed_key_waits_for_enter(qtbot):
    field = ApiKeyField("Key", "Paste")
    qtbot.addWidget(field)
    with qtbot.assertNotEmitted(field.key_entered, wait=20):
        qtbot.keyClicks(field, "abc")
    with qtbot.waitSignal(field.key_entered):
        qtbot.keyClick(field, Qt.Key.Key_Return)


@pytest.mark.parametrize("is_tried", [False, True])
def test_a_refused_key_is_not_there_when_the_field_comes_back(qtbot, is_tried):
    page = QWidget()
    qtbot.addWidget(page)
    field = ApiKeyField("Key", "Paste")
    field.setParent(page)
    page.show()
    qtbot.keyClicks(field, "abc")
    for state in (Status.BUSY, Status.ERROR):
        field.show_state(state)
        if is_tried == (state is Status.BUSY):
            page.hide()
    assert field.text() == ""


def test_keys_are_shown_as_they_are_called():
    assert [native_shortcut(each) for each in ("Ctrl+Return", "Ctrl+Enter", "Return", "Esc")] == [
        "Ctrl+Enter",
        "Ctrl+Enter",
        "Enter",
        "Esc",
    ]


def test_the_list_of_a_choice_is_a_list_with_rows_of_the_sheet(qtbot):
    box = ComboBox()
    box.setStyleSheet(style_sheet(ThemeSource().theme))
    qtbot.addWidget(box)
    box.addItems(["System", "Light", "Dark"])
    box.show()
    # As a menu, which it is without the sheet, it is too short for rows with padding.
    assert not box.style().styleHint(QStyle.StyleHint.SH_ComboBox_Popup, QStyleOptionComboBox(), box)
    assert box.view().sizeHintForRow(0) > box.fontMetrics().height()


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_what_completes_a_field_can_be_read_also_where_qt_makes_the_field(qapp, theme):
    style = ThemeApplier(qapp, ThemeSource(theme))
    style.apply()
    try:
        # As in Qt's file dialog: nobody has given the list a property for the sheet.
        completer = QCompleter(["alpha", "album"])
        completer.setCompletionPrefix("al")
        popup = completer.popup()
        popup.ensurePolished()
        drawn = popup.viewport().grab().toImage()
        assert drawn.pixelColor(drawn.width() - 2, 2) == QColor(theme.window)
        assert popup.palette().text().color() == QColor(theme.text)
        assert popup.sizeHintForRow(0) > popup.fontMetrics().height() + 4
    finally:
        qapp.setStyleSheet("")
    style.deleteLater()
