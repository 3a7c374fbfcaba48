"""The settings of one conversation, by keyboard alone, as far as the request and the disk."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLineEdit, QPlainTextEdit, QToolButton

from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ConversationParameters
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn

SET = ConversationParameters(temperature=0.2, max_tokens=500, system_prompt="Be brief.")


async def open_settings(screen):
    action = screen.action("Conversation settings")
    assert action.shortcut().toString() == "Ctrl+Shift+P"
    action.trigger()
    return await until(lambda: screen.find(QDialog, "Conversation settings"))


def button(screen):
    return screen.find(QToolButton, "Conversation settings")


def write(screen, kind, name, text):
    field = screen.find(kind, name)
    field.setFocus()
    field.selectAll()
    QTest.keyClick(field, Qt.Key.Key_Delete)
    QTest.keyClicks(field, text)
    return field


async def fill_in(screen):
    await open_settings(screen)
    write(screen, QPlainTextEdit, "System prompt", "Be brief.")
    write(screen, QLineEdit, "Maximum tokens", "500")
    field = write(screen, QLineEdit, "Temperature", "0,2")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: screen.find(QDialog, "Conversation settings") is None)


def test_what_was_set_is_sent_shown_and_there_again(on_screen, tmp_path):
    async def set_them(screen):
        assert button(screen).accessibleDescription() == "Default"
        await screen.say("Hello")
        assert screen.provider.requests[-1].config.temperature is None
        await fill_in(screen)
        assert button(screen).text().strip() == "3 settings"
        assert button(screen).accessibleDescription() == "Own system prompt, Temperature 0.2, At most 500 tokens"
        await screen.say("Again")
        config = screen.provider.requests[-1].config
        assert (config.temperature, config.top_p, config.max_tokens) == (0.2, None, 500)
        assert config.system_prompt == "Be brief."

    async def check(screen):
        assert screen.conversation.parameters == SET
        await open_settings(screen)
        assert screen.find(QLineEdit, "Temperature").text() == "0.2"
        QTest.keyClick(screen.find(QDialog, "Conversation settings"), Qt.Key.Key_Escape)
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.is_empty)
        assert screen.conversation.parameters == ConversationParameters()
        assert button(screen).accessibleDescription() == "Default"

    on_screen(set_them, Turn(ContentDelta("Hi")), Turn(ContentDelta("Ho")), folder=tmp_path / "data")
    on_screen(check, folder=tmp_path / "data")


def test_before_the_first_message_they_are_kept_too(on_screen):
    async def work(screen):
        await fill_in(screen)
        await screen.say("Hello")
        assert screen.provider.requests[-1].config.temperature == 0.2
        (record,) = await screen.engine.store.list_conversations()
        assert record.parameters == SET

    on_screen(work, Turn(ContentDelta("Hi")))


def test_what_no_server_takes_is_said_and_not_saved(on_screen):
    async def work(screen):
        dialog = await open_settings(screen)
        cases = (
            ("Temperature", "2.5", "This is not a number from 0 to 2."),
            ("Top-p", "nan", "This is not a number from 0 to 1."),
            ("Maximum tokens", "0", "This is not a whole number above 0."),
        )
        for name, text, sentence in cases:
            field = write(screen, QLineEdit, name, text)
            QTest.keyClick(field, Qt.Key.Key_Return)
            assert dialog.isVisible()
            assert any(words.startswith(sentence) for words in screen.words(dialog))
            write(screen, QLineEdit, name, "")
        # The last of them is looked at once the person has stopped typing.
        await until(lambda: not any(words.startswith("This is not") for words in screen.words(dialog)))
        assert screen.conversation.parameters == ConversationParameters()
        QTest.keyClick(dialog, Qt.Key.Key_Escape)

    on_screen(work)


def test_the_defaults_come_back(on_screen):
    async def work(screen):
        await fill_in(screen)
        dialog = await open_settings(screen)
        screen.press("Use defaults")
        screen.press("Save")
        await until(lambda: not dialog.isVisible())
        assert screen.conversation.parameters == ConversationParameters()
        assert button(screen).text() == ""

    on_screen(work)


def test_an_empty_system_prompt_leaves_the_instructions_of_the_settings(on_screen):
    async def work(screen):
        preferences = screen.engine.preferences
        chat = preferences.chat.model_copy(update={"system_prompt": "From the settings."})
        await screen.engine.change_preferences(preferences.model_copy(update={"chat": chat}))
        dialog = await open_settings(screen)
        prompt = screen.find(QPlainTextEdit, "System prompt")
        assert prompt.placeholderText() == "From the settings."
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        await screen.say("Hello")
        assert screen.provider.requests[-1].config.system_prompt == "From the settings."
        await fill_in(screen)
        await screen.say("Again")
        assert screen.provider.requests[-1].config.system_prompt == "Be brief."

    on_screen(work, Turn(ContentDelta("Hi")), Turn(ContentDelta("Ho")))


def test_what_a_dialog_was_opened_for_gets_it_although_another_one_is_shown_by_then(on_screen, tmp_path):
    async def work(screen):
        await screen.say("First")
        first = screen.conversation.id
        screen.desk.library.new()
        await screen.say("Second")
        second = screen.conversation.id

        async def show(conversation_id):
            screen.desk.library.open(conversation_id)
            await until(lambda: screen.conversation.id == conversation_id)

        await show(first)
        await open_settings(screen)
        field = write(screen, QLineEdit, "Temperature", "0.2")
        picker = screen.window.page.workspace_picker
        picker.choose_folder()
        # A click on a notification.
        await show(second)
        QTest.keyClick(field, Qt.Key.Key_Return)
        picker.findChild(QFileDialog).fileSelected.emit(str(tmp_path))
        picker.findChild(QFileDialog).close()
        await screen.idle()
        # What was changed of one that is not shown is written a moment later.
        await screen.engine.write_all()
        stored = {conversation.id: conversation for conversation in await screen.engine.store.list_conversations()}
        assert [stored[id_].parameters.temperature for id_ in (first, second)] == [0.2, None]
        assert [stored[id_].workspace for id_ in (first, second)] == [str(tmp_path), None]

    on_screen(work, Turn(ContentDelta("Hi")), Turn(ContentDelta("Ho")))


def test_what_popped_up_for_a_conversation_goes_with_it(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        await screen.say("First")
        first = screen.conversation.id
        screen.desk.library.new()
        await screen.say("Second")
        page = screen.window.page

        async def show_other():
            other_id = next(id_ for id_ in ids if id_ != screen.conversation.id)
            screen.desk.library.open(other_id)
            await until(lambda: screen.conversation.id == other_id)

        ids = (first, screen.conversation.id)
        for open_popup in (
            page.models.picker.open_list,
            page.session_controls.picker.open_menu,
            page.workspace_picker.open_menu,
        ):
            open_popup()
            assert QApplication.activePopupWidget() is not None
            # A click on a notification.
            await show_other()
            assert QApplication.activePopupWidget() is None
        page.composer.choose_files()
        assert page.composer.findChild(QFileDialog).isVisible()
        await show_other()
        assert not any(dialog.isVisible() for dialog in page.composer.findChildren(QFileDialog))

    on_screen(work, Turn(ContentDelta("Hi")), Turn(ContentDelta("Ho")))


def test_it_says_which_folders_add_instructions(on_screen):
    async def work(screen):
        store = screen.engine.store
        outer = await store.folders.create("Work", instructions="Be brief.")
        middle = await store.folders.create("Import", parent=outer.id)
        inner = await store.folders.create("Tables", parent=middle.id, instructions="Be exact.")
        await screen.say("Hello")
        dialog = await open_settings(screen)
        await screen.idle()
        prompt = screen.find(QPlainTextEdit, "System prompt")
        assert "folders" not in prompt.accessibleDescription()
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        await store.placements.change([screen.conversation.id], folder=inner.id)
        dialog = await open_settings(screen)
        words = "The instructions of its folders are added: Work, Tables"
        await until(lambda: words in screen.words(dialog))
        assert screen.find(QPlainTextEdit, "System prompt").accessibleDescription().endswith(words)
        QTest.keyClick(dialog, Qt.Key.Key_Escape)

    on_screen(work, Turn(ContentDelta("Hi")))
