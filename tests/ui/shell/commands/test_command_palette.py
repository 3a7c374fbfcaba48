"""The command palette, in the whole window and by keyboard alone."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFrame, QLineEdit, QListView, QListWidget, QPushButton
from shiboken6 import delete

from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ModelInfo
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from ui.bridge import conversation_listing
from ui.settings.settings_dialog import SettingsDialog
from ui.shell.commands.command_palette import MAX_GROUP_ROWS, CommandGroup, CommandPalette, CommandRow, matching_rows
from ui.shell.commands.help_dialog import HelpDialog
from ui.sidebar.title_dialog import TitleDialog
from ui.style.accessibility import ChoiceList
from ui.style.fuzzy_matcher import FuzzyMatcher
from ui.style.list_rows import RowRole


@pytest.mark.parametrize(
    ("better", "worse", "typed"),
    [
        ("Settings", "Open settings", "set"),
        ("Open settings", "Offsets", "set"),
        ("Offsets", "Show everything twice", "set"),
        ("Find in conversation", "Copy conversation as Markdown", "fic"),
        ("工具与安全", "一般", "安全"),
    ],
)
def test_what_fits_better_ranks_higher(better, worse, typed):
    words = FuzzyMatcher(typed)
    first, second = words.rank(better), words.rank(worse)
    assert first is not None
    assert second is None or first < second


def test_every_word_must_fit_and_case_does_not_count():
    assert FuzzyMatcher("CONV new").rank("New conversation") is not None
    assert FuzzyMatcher("new x").rank("New conversation") is None
    assert FuzzyMatcher("straße").rank("Die STRASSE") is not None
    assert FuzzyMatcher("  ").is_empty


def rows(*names):
    return [CommandRow(text=name, is_choosable=True) for name in names]


def test_commands_stand_first_but_not_for_single_letters_of_them():
    groups = [
        CommandGroup("Commands", rows("Choose model")),
        CommandGroup("Conversations", rows("Model trains", "Tides")),
    ]
    assert [row.text for row in matching_rows("model", groups)] == [
        "Commands",
        "Choose model",
        "Conversations",
        "Model trains",
    ]
    loose = [CommandGroup("Commands", rows("Look at mode")), CommandGroup("Conversations", rows("A lamp"))]
    assert [row.text for row in matching_rows("lam", loose)] == ["Conversations", "A lamp", "Commands", "Look at mode"]
    everything = [row.text for row in matching_rows("", groups)]
    assert everything == ["Commands", "Choose model", "Conversations", "Model trains", "Tides"]
    (nothing,) = matching_rows("zzz", groups)
    assert not nothing.is_choosable
    assert matching_rows("zzz", groups, rows("Help")) == [nothing, *rows("Help")]
    assert len(matching_rows("a", [CommandGroup("Many", rows(*["a"] * 500))])) == MAX_GROUP_ROWS + 1


def test_other_words_for_the_same_count_whole_or_by_their_beginning_only():
    words = FuzzyMatcher("dark")
    assert words.rank("Theme", "light dark") is not None
    assert FuzzyMatcher("da").rank("Theme", "light dark") is not None
    assert FuzzyMatcher("ldk").rank("Theme", "light dark") is None
    assert FuzzyMatcher("theme dark").rank("Theme", "light dark") is not None
    assert words.rank("Dark theme") < words.rank("Theme", "dark")
    assert FuzzyMatcher("ark").rank("Theme", "light dark") is None
    assert FuzzyMatcher("ark").rank("Darker") < words.rank("Theme", "dark")
    assert FuzzyMatcher("安全").rank("模式", "工具与安全") is not None


def test_letters_that_follow_one_another_count_only_where_they_shall():
    assert FuzzyMatcher("fic").rank("Find in conversation") is not None
    assert FuzzyMatcher("fic", by_letters=False).rank("Find in conversation") is None


class Typist:
    """A person who opens the palette by keys and types in it."""

    def __init__(self, screen):
        self.screen = screen

    @property
    def palette(self):
        return self.screen.find(CommandPalette, "Commands")

    @property
    def field(self):
        return self.screen.find(QLineEdit, "Commands")

    @property
    def shown(self):
        model = self.screen.find(QListView, "Commands").model()
        return [model.index(n, 0).data() for n in range(model.rowCount())]

    async def open(self):
        self.screen.window.activateWindow()
        await until(lambda: QApplication.focusWidget() is not None)
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
        await until(lambda: self.field is not None and self.field.hasFocus())

    def type(self, text):
        QTest.keyClicks(self.field, text)

    def key(self, key):
        QTest.keyClick(self.field, key)


def test_it_lists_every_action_with_its_keys_and_does_what_is_chosen(on_screen):
    async def work(screen):
        typist = Typist(screen)
        screen.editor.setFocus()
        screen.write("half a thought")
        await typist.open()
        assert screen.editor.toPlainText() == "half a thought"
        assert {"New conversation", "Settings", "Find in conversation", "Quit"} <= set(typist.shown)
        assert "Conversation 3" not in typist.shown
        typist.type("settings")
        model = screen.find(QListView, "Commands").model()
        row = next(model.index(n, 0) for n in range(model.rowCount()) if model.index(n, 0).data() == "Settings")
        assert row.data(RowRole.DETAIL) == "Ctrl+,"
        assert row.data(Qt.ItemDataRole.AccessibleTextRole) == "Settings, Ctrl+,"
        typist.key(Qt.Key.Key_Return)
        assert typist.palette is None
        assert screen.find(SettingsDialog, "Settings") is not None

    on_screen(work)


WORDS_OF_NEWCOMERS = [
    ("theme", "Theme and appearance"),
    ("dark", "Theme and appearance"),
    ("light", "Theme and appearance"),
    ("zoom", "Larger text"),
    ("text size", "Larger text"),
    ("version", "About Desktop Agent"),
    ("about", "About Desktop Agent"),
    ("stop", "Stop the answer"),
    ("delete", "Delete this conversation"),
    ("rename", "Rename this conversation"),
    ("trash", "Trash"),
    ("deleted", "Trash"),
    ("temperature", "Conversation settings"),
    ("shortcuts", "Keyboard shortcuts"),
    ("keys", "Keyboard shortcuts"),
    ("api key", "Providers and keys"),
    ("preferences", "Settings"),
]


def test_words_of_newcomers_find_the_command(on_screen):
    async def work(screen):
        typist = Typist(screen)
        await typist.open()
        for typed, command in WORDS_OF_NEWCOMERS:
            typist.field.clear()
            typist.type(typed)
            assert command in typist.shown[:5], typed

    on_screen(work)


def test_it_lists_the_one_of_pin_and_unpin_that_applies(on_screen):
    async def work(screen):
        await screen.say("Tides")
        typist = Typist(screen)

        async def listed_commands():
            await typist.open()
            commands = [text for text in typist.shown if text in {"Pin this conversation", "Unpin this conversation"}]
            typist.key(Qt.Key.Key_Escape)
            return commands

        assert await listed_commands() == ["Pin this conversation"]
        screen.action("Pin this conversation").trigger()
        await until(screen.action("Unpin this conversation").applies)
        assert await listed_commands() == ["Unpin this conversation"]

    on_screen(work, Turn(ContentDelta("Twice a day.")))


def test_a_conversation_of_which_nothing_is_there_yet_cannot_be_deleted(on_screen):
    async def work(screen):
        assert not screen.action("Delete this conversation").applies()
        await screen.say("a")
        assert screen.action("Delete this conversation").applies()
        screen.desk.library.new(in_memory=True)
        assert screen.action("Delete this conversation").applies()

    on_screen(work, Turn(ContentDelta("one")))


def test_who_finds_nothing_is_led_on_and_the_sheet_is_as_high_as_what_it_shows(on_screen):
    async def work(screen):
        typist = Typist(screen)
        await typist.open()
        sheet = typist.palette.findChild(QFrame)
        high = sheet.height()
        typist.type("Esperanto")
        assert typist.shown == ["Nothing found.", "Settings", "Keyboard shortcuts", "Help"]
        assert sheet.height() < high / 2
        rows = screen.find(QListView, "Commands")
        assert rows.verticalScrollBar().maximum() == 0
        assert rows.height() - rows.visualRect(rows.model().index(3, 0)).bottom() < 12
        typist.key(Qt.Key.Key_Down)
        typist.key(Qt.Key.Key_Down)
        typist.key(Qt.Key.Key_Return)
        assert screen.find(HelpDialog, "Help") is not None

    on_screen(work)


def test_commands_rename_delete_and_turn_to_a_page(on_screen):
    async def work(screen):
        await screen.say("Tides at the harbour")
        first = screen.conversation.id
        screen.window.activateWindow()
        screen.action("Rename this conversation").trigger()
        title = await until(lambda: screen.find(QListView, "Conversations").findChild(QLineEdit))
        title.setText("Tides")
        QTest.keyClick(title, Qt.Key.Key_Return)
        await until(lambda: screen.conversation.title == "Tides")
        screen.action("Delete this conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.idle()
        screen.action("Theme and appearance").trigger()
        pages = screen.find(SettingsDialog, "Settings").findChild(QListWidget)
        assert pages.currentItem().text() == "Appearance"

    on_screen(work, Turn(ContentDelta("Twice a day.")))


def test_a_double_click_on_the_title_renames(on_screen):
    async def work(screen):
        await screen.say("Tides at the harbour")
        screen.window.activateWindow()
        QTest.mouseDClick(screen.window.frame.title, Qt.MouseButton.LeftButton)
        title = await until(lambda: screen.find(QListView, "Conversations").findChild(QLineEdit))
        assert title.text() == "Tides at the harbour"

    on_screen(work, Turn(ContentDelta("Twice a day.")))


def rename_by_dialog(window, title):
    dialog = next(dialog for dialog in window.findChildren(TitleDialog) if dialog.isVisible())
    dialog.findChild(QLineEdit).setText(title)
    QTest.mouseClick(button_named(dialog, "Rename"), Qt.MouseButton.LeftButton)


def button_named(dialog, text):
    return next(button for button in dialog.findChildren(QPushButton) if button.text() == text)


def test_what_no_row_shows_is_renamed_in_a_dialog(on_screen):
    async def work(screen):
        await screen.say("Tides at the harbour")
        first = screen.conversation.id
        screen.desk._organising.act("archive")
        await until(lambda: screen.window.sidebar.view.rows.row_of(first) < 0)
        screen.action("Rename this conversation").trigger()
        rename_by_dialog(screen.window, " Tides ")
        await until(lambda: screen.conversation.title == "Tides")
        await screen.idle()
        assert (await screen.engine.record(first)).title == "Tides"
        screen.desk.library.new(in_memory=True)
        await screen.idle()
        await screen.say("Secret")
        screen.action("Rename this conversation").trigger()
        rename_by_dialog(screen.window, "Hush")
        await until(lambda: "Hush (not stored)" in screen.window.windowTitle())

    on_screen(work, Turn(ContentDelta("Twice a day.")), Turn(ContentDelta("Yes.")))


def test_a_conversation_without_messages_has_no_name_yet(on_screen):
    async def work(screen):
        QTest.mouseDClick(screen.window.frame.title, Qt.MouseButton.LeftButton)
        assert any("Send a message first" in words for words in screen.words(screen.banners))
        assert screen.find(TitleDialog, "Rename") is None

    on_screen(work)


def test_esc_and_the_same_keys_close_it_and_give_the_keyboard_back(on_screen):
    async def work(screen):
        typist = Typist(screen)
        screen.editor.setFocus()
        await typist.open()
        typist.key(Qt.Key.Key_Escape)
        assert typist.palette is None
        assert screen.editor.hasFocus()
        screen.window.sidebar.focus_list()
        focused = QApplication.focusWidget()
        await typist.open()
        QTest.keyClick(typist.field, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
        assert typist.palette is None
        assert QApplication.focusWidget() is focused
        await typist.open()
        QTest.mouseClick(typist.palette, Qt.MouseButton.LeftButton, pos=QPoint(3, 300))
        assert typist.palette is None

    on_screen(work)


def test_a_command_is_done_though_what_had_the_keyboard_has_gone(on_screen):
    async def work(screen):
        typist, part = Typist(screen), QLineEdit(screen.window)
        part.show()
        part.setFocus()
        await typist.open()
        delete(part)
        typist.type("settings")
        typist.key(Qt.Key.Key_Return)
        assert typist.palette is None
        assert screen.find(SettingsDialog, "Settings") is not None

    on_screen(work)


@pytest.mark.parametrize("modifier", [Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier])
def test_tab_goes_between_field_and_list_and_esc_still_closes_it(on_screen, modifier):
    async def work(screen):
        typist = Typist(screen)
        screen.editor.setFocus()
        await typist.open()
        for is_in_list in (True, False, True):
            QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab, modifier)
            assert isinstance(QApplication.focusWidget(), ChoiceList) is is_in_list
            assert typist.field.hasFocus() is not is_in_list
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
        assert typist.palette is None
        assert screen.editor.hasFocus()

    on_screen(work)


def test_it_opens_a_conversation_by_some_letters_of_its_title(on_screen):
    async def work(screen):
        await screen.say("Tides at the harbour")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await screen.idle()
        typist = Typist(screen)
        await typist.open()
        typist.type("harb tid")
        await until(lambda: typist.shown == ["Conversations", "Tides at the harbour"])
        typist.key(Qt.Key.Key_Return)
        await until(lambda: screen.conversation.id == first)
        await screen.idle()

    on_screen(work, Turn(ContentDelta("Twice a day.")))


def test_it_opens_a_setting_at_its_control(on_screen):
    async def work(screen):
        typist = Typist(screen)
        await typist.open()
        assert "Settings" not in [row for row in typist.shown if row == "Density"]
        typist.type("density")
        assert typist.shown[-2:] == ["Settings", "Density"]
        for _ in range(len(typist.shown)):
            typist.key(Qt.Key.Key_Down)
            rows = screen.find(QListView, "Commands")
            if rows.currentIndex().data() == "Density":
                break
        typist.key(Qt.Key.Key_Return)
        dialog = await screen.wait_for(SettingsDialog, "Settings")
        control = dialog.focusWidget()
        assert control.accessibleName() == "Density"
        assert control.isVisible()

    on_screen(work)


def test_it_finds_messages_and_opens_the_conversation_at_them(on_screen):
    async def work(screen):
        await screen.say("Where are the zebras?")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await screen.idle()
        await screen.engine.store.search.index_all()
        typist = Typist(screen)
        await typist.open()
        typist.type("savannah")
        await until(lambda: "Messages" in typist.shown)
        assert typist.shown[-1] == "…tell, they are in the savannah, mostly."
        typist.type("x")
        await until(lambda: "Messages" not in typist.shown)
        typist.key(Qt.Key.Key_Backspace)
        await until(lambda: "Messages" in typist.shown)
        typist.key(Qt.Key.Key_Up)
        typist.key(Qt.Key.Key_Down)
        typist.key(Qt.Key.Key_Return)
        await until(lambda: screen.conversation.id == first)
        await screen.idle()

    on_screen(work, Turn(ContentDelta("As far as anybody can tell, they are in the savannah, mostly.")))


def test_it_chooses_a_model(on_screen):
    async def work(screen):
        screen.provider._models = (ModelInfo("m"), ModelInfo("aurora-large", "Aurora Large"))
        screen.engine.connections._listings.forget("scripted")
        screen.desk.servers.refresh_models(again=True)
        await screen.idle()
        typist = Typist(screen)
        await typist.open()
        typist.type("aur la")
        assert typist.shown == ["Models", "Aurora Large"]
        typist.key(Qt.Key.Key_Return)
        await until(lambda: screen.conversation.model == "aurora-large")
        await screen.idle()

    on_screen(work)


def test_it_stays_as_large_as_the_window(on_screen):
    async def work(screen):
        typist = Typist(screen)
        await typist.open()
        for width, height in ((700, 480), (1200, 800)):
            screen.window.resize(width, height)
            await until(lambda size=(width, height): typist.palette.size().toTuple() == size)
            assert typist.palette.rect().contains(typist.palette.childrenRect())

    on_screen(work)


def test_a_conversation_beyond_those_that_are_listed_is_found_by_its_title(on_screen, monkeypatch):
    monkeypatch.setattr(conversation_listing, "PAGE", 3)

    async def work(screen):
        for title in ("Very old zebra", *(f"Talk {number}" for number in range(5))):
            await screen.engine.store.create_conversation(title=title)
        typist = Typist(screen)
        await typist.open()
        await until(lambda: "Talk 4" in typist.shown)
        assert "Very old zebra" not in typist.shown
        typist.type("zebra")
        await until(lambda: "Very old zebra" in typist.shown)
        typist.key(Qt.Key.Key_Return)
        await until(lambda: screen.conversation.title == "Very old zebra")

    on_screen(work)
