"""A conversation in windows of its own: all show the same, and closing one keeps the others."""

import asyncio
import gc
import threading
from weakref import ref

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QLineEdit, QPlainTextEdit, QPushButton

from desktop_agent.conversation.items import AnswerItem, UserItem
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import NoModelChosen
from tests.fakes.qt_loop import held, until
from tests.fakes.scripted_provider import Turn
from tests.frame.patience import PATIENCE
from tests.ui.shell.test_branches import settled
from tests.ui.shell.test_message_deletion import answer, ask_to_delete
from ui.settings.conversation_settings import ConversationSettingsDialog
from ui.settings.usage.usage_page import UsageSettings
from ui.shell.side_windows.conversation_window import ConversationWindow
from ui.sidebar.title_dialog import TitleDialog
from ui.style.accessibility import install_accessibility
from ui.style.widgets import QuestionBox

CONTROL = Qt.KeyboardModifier.ControlModifier


def answers(text="Yes"):
    return Turn(ContentDelta(text))


def windows(screen):
    return [window for window in screen.front.app.topLevelWidgets() if isinstance(window, ConversationWindow)]


def shown_windows(screen):
    return [window for window in windows(screen) if not window.isHidden()]


async def open_beside(screen, conversation_id):
    await until(lambda: screen.desk._desktop)
    await screen.idle()
    screen.desk._desktop.windows.open(conversation_id)
    window = await until(lambda: next(iter(shown_windows(screen)), None))
    await until(lambda: window.conversation)
    await until(lambda: window.page._drafts.is_loaded)
    await screen.idle()
    return window


def is_closed(screen, conversation_id):
    session = screen.engine._sessions.get(conversation_id)
    return session is None or session.is_closed


def editor(window):
    return window.page.composer.editor


def texts(transcript):
    return [str(item.text) for item in transcript if isinstance(item, AnswerItem)]


def test_assistive_technology_is_told_of_a_window(on_screen):
    async def work(screen):
        install_accessibility(screen.front.app)
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        assert QAccessible.queryAccessibleInterface(window).role() is QAccessible.Role.Window

    on_screen(work, answers())


def test_a_closed_window_leaves_nothing_in_memory(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        page, source = ref(window.page), ref(window.source)
        window.close()
        del window
        await until(lambda: not windows(screen))
        await screen.idle()

        def is_gone():
            gc.collect()
            return page() is None and source() is None

        await until(is_gone)

    on_screen(work, answers())


def test_a_conversation_that_cannot_be_opened_after_its_window_was_closed_is_told_as_it_is(on_screen):
    async def work(screen):
        await screen.say("One")
        await until(lambda: screen.desk._desktop)
        fails = asyncio.Event()

        async def session(conversation_id, *, whole):
            await fails.wait()
            raise WrongUse("It is gone.")

        screen.engine.session = session
        screen.desk._desktop.windows.open(screen.conversation.id)
        (window,) = shown_windows(screen)
        window.close()
        await until(lambda: not windows(screen))
        fails.set()
        await until(lambda: screen.banners.keys)
        assert any("It is gone." in words for words in screen.words())

    on_screen(work, answers())


def test_the_settings_of_a_conversation_are_open_once(on_screen):
    def dialogs(screen):
        settings_dialogs = [
            widget for widget in screen.front.app.topLevelWidgets() if isinstance(widget, ConversationSettingsDialog)
        ]
        return [widget for widget in settings_dialogs if widget.isVisible()]

    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        screen.window.page.models.edit_parameters()
        (first,) = dialogs(screen)
        window.raise_window()
        window.page.models.edit_parameters()
        assert dialogs(screen) == [first]
        await until(first.isActiveWindow)
        first.reject()
        window.page.models.edit_parameters()
        (second,) = dialogs(screen)
        assert second.parentWidget() is window
        # The settings of another one are none of these.
        screen.desk.library.new()
        await screen.idle()
        screen.window.page.models.edit_parameters()
        assert len(dialogs(screen)) == 2
        for dialog in dialogs(screen):
            dialog.reject()

    on_screen(work, answers())


def test_a_change_of_how_enter_works_reaches_windows_that_are_open(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        preferences = screen.engine.preferences
        chat = preferences.chat.model_copy(update={"enter_sends": False})
        await screen.engine.change_preferences(preferences.model_copy(update={"chat": chat}))
        QTest.keyClicks(editor(window), "Two")
        QTest.keyClick(editor(window), Qt.Key.Key_Return)
        assert editor(window).toPlainText() == "Two\n"

    on_screen(work, answers())


def test_what_a_window_asks_of_the_program_is_done(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        window.page.transcript.zoom_requested.emit(1)
        await until(lambda: screen.engine.preferences.appearance.zoom == 110)
        window.page.models.picker.model_file_requested.emit()
        settings = await until(lambda: screen.desk._settings_presenter._dialog)
        assert settings.local.isVisible()
        settings.reject()
        window.banners.show_error(NoModelChosen("No model is chosen."))
        assert button(window, "Choose model").isVisible()

    on_screen(work, answers())


def test_the_keys_of_the_main_window_are_for_the_conversation_of_each(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        screen.desk.library.new()
        await screen.idle()
        window.raise_window()
        await until(editor(window).hasFocus)
        QTest.keyClick(window, Qt.Key.Key_E, CONTROL | Qt.KeyboardModifier.AltModifier)
        await until(lambda: editor(window).toPlainText() == "One")
        assert screen.editor.toPlainText() == ""
        preferences = screen.engine.preferences
        keys = {"find": "F4"}
        await screen.engine.change_preferences(preferences.with_changes("shortcuts", keys=keys))
        QTest.keyClick(window, Qt.Key.Key_F, CONTROL)
        assert not window.page.navigation.find_bar.isVisible()
        QTest.keyClick(window, Qt.Key.Key_F4)
        assert window.page.navigation.find_bar.isVisible()
        QTest.keyClick(window, Qt.Key.Key_Plus, CONTROL)
        await until(lambda: screen.engine.preferences.appearance.zoom == 110)
        QTest.keyClick(window, Qt.Key.Key_Comma, CONTROL)
        settings = await until(lambda: screen.desk._settings_presenter._dialog)
        await until(settings.isActiveWindow)
        assert settings.windowHandle().transientParent() is window.windowHandle()
        settings.reject()
        assert "Ctrl+Shift+A" in window.page.composer.attach_button.toolTip()

    on_screen(work, answers())


def test_keys_copy_the_last_answer_of_a_window_and_its_code(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        window.raise_window()
        await until(editor(window).hasFocus)
        clipboard, modifiers = screen.front.app.clipboard(), CONTROL | Qt.KeyboardModifier.AltModifier
        QTest.keyClick(window, Qt.Key.Key_C, modifiers)
        assert clipboard.text().startswith("Yes:")
        QTest.keyClick(window, Qt.Key.Key_C, modifiers | Qt.KeyboardModifier.ShiftModifier)
        assert clipboard.text() == "print(1)"

    on_screen(work, answers("Yes:\n\n```\nprint(1)\n```"))


def test_a_dialog_over_the_main_window_blocks_no_settings_of_another(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        screen.window.page.models.edit_parameters()
        (waiting,) = [dialog for dialog in screen.window.findChildren(QDialog) if dialog.isVisible()]
        for over in (window, screen.window):
            over.activateWindow()
            await until(over.isActiveWindow)
            settings = screen.desk._settings_presenter.show("chat")
            assert settings.windowHandle().transientParent() is over.windowHandle()
            row = settings._forms["chat"].rows["enter_sends"]
            QTest.mouseClick(row.control.widget, Qt.MouseButton.LeftButton)
            settings.reject()
        await screen.idle()
        waiting.reject()

    on_screen(work, answers())


def test_backups_are_named_that_have_a_message_that_was_deleted_in_a_window(on_screen):
    async def work(screen):
        await screen.say("One")
        screen.desk._disk.backups.back_up()
        await screen.idle()
        window = await open_beside(screen, screen.conversation.id)
        (prompt,) = [item for item in window.conversation.transcript if isinstance(item, UserItem)]
        window.page.branches.deletion.ask(prompt.message_id)
        box = await until(lambda: next(iter(window.findChildren(QuestionBox)), None))
        answer(box, "Delete for good")
        await screen.wait_for(QPushButton, "Delete them too")

    on_screen(work, answers())


def button(window, text):
    return next(candidate for candidate in window.findChildren(QPushButton) if candidate.text() == text)


def test_two_windows_show_the_same(on_screen):
    async def work(screen):
        await screen.say("One")
        id_ = screen.conversation.id
        window = await open_beside(screen, id_)
        assert window.conversation is not screen.conversation
        assert texts(window.page.transcript.row_viewport.rows.transcript) == ["Yes"]
        assert window.windowTitle() == screen.window.windowTitle()
        # What is written in one is written in the other.
        QTest.keyClicks(editor(window), "Two")
        await until(lambda: screen.editor.toPlainText() == "Two")
        assert isinstance(editor(window), QPlainTextEdit)
        ended = []
        screen.conversation.finished.connect(lambda: ended.append(1))
        QTest.keyClick(editor(window), Qt.Key.Key_Return)
        await until(lambda: ended)
        await until(lambda: screen.answers() == ["Yes", "And yes"])
        for page in (window.page, screen.window.page):
            await until(lambda page=page: texts(page.transcript.row_viewport.rows.transcript) == ["Yes", "And yes"])
            await until(lambda page=page: len(page.transcript.row_viewport.rows) == len(screen.conversation.transcript))
        await until(lambda: screen.editor.toPlainText() == "")
        # What is changed about it in one holds in the other.
        screen.desk.library.rename(id_, "Renamed")
        await until(lambda: window.windowTitle() == "Renamed — Desktop Agent")
        assert screen.window.windowTitle() == "Renamed — Desktop Agent"
        window.source.change(id_, model="other")
        await until(lambda: screen.conversation.model == "other")

    on_screen(work, answers(), answers("And yes"))


def test_its_figures_lead_to_the_usage_of_all_conversations(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        window.page.usage_meter.usage_requested.emit()
        page = await until(lambda: screen.window.findChild(UsageSettings))
        await until(page.isVisible)

    on_screen(work, answers())


def test_a_version_that_is_shown_or_deleted_in_one_is_in_all(on_screen):
    async def work(screen):
        await screen.say("One")
        screen.window.page.branches.regenerate_here()
        await until(lambda: screen.answers() == ["No"])
        await settled(screen)
        window = await open_beside(screen, screen.conversation.id)
        pages = (screen.window.page, window.page)
        assert [versions_in(page) for page in pages] == [["2 of 2"]] * 2
        window.page.branches.step_version(-1)
        await until(lambda: screen.answers() == ["Yes"])
        for page in pages:
            await until(lambda page=page: versions_in(page) == ["1 of 2"])
        answer(await ask_to_delete(screen), "Delete for good")
        for page in pages:
            await until(lambda page=page: texts(page.transcript.row_viewport.rows.transcript) == ["No"])
            await until(lambda page=page: versions_in(page) == [])

    on_screen(work, answers(), answers("No"))


def test_a_version_that_is_deleted_out_of_view_is_counted_in_no_window(on_screen):
    async def work(screen):
        await screen.say("One")
        screen.window.page.branches.regenerate_here()
        await until(lambda: screen.answers() == ["No"])
        await settled(screen)
        window = await open_beside(screen, screen.conversation.id)
        pages = (screen.window.page, window.page)
        window.page.branches.tree.open()
        tree = await until(lambda: window.page.branches.tree._dialog.tree)
        await until(lambda: tree.rows.rowCount() == 2 and tree.rows.hasChildren(tree.rows.index(1, 0)))
        screen.window.page.branches.tree.open()
        dialog = screen.window.page.branches.tree._dialog
        await until(lambda: dialog.tree.rows.rowCount() == 2)
        other = dialog.tree.rows.index(0, 0, dialog.tree.rows.index(1, 0))
        dialog.tree.setCurrentIndex(other)
        QTest.keyClick(dialog.tree, Qt.Key.Key_Delete)
        answer(await until(lambda: screen.window.page.branches.deletion._question), "Delete for good")
        for page in pages:
            await until(lambda page=page: versions_in(page) == [])
        await until(lambda: not tree.rows.hasChildren(tree.rows.index(1, 0)))
        assert screen.answers() == ["No"]

    on_screen(work, answers(), answers("No"))


def test_a_prompt_that_is_deleted_in_one_is_edited_in_none(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        window.page.editing.edit_last()
        await until(lambda: window.page.editing._edit.message_id)
        QTest.keyClicks(editor(window), " more")
        answer(await ask_to_delete(screen, row=0), "Delete for good")
        await until(lambda: not window.page.editing._edit.message_id)
        assert editor(window).toPlainText() == "One more"
        await settled(screen)

    on_screen(work, answers())


def versions_in(page):
    """Return the texts below the last message."""
    rows = page.transcript.row_viewport.rows
    footer = rows.row(len(rows) - 1).footer
    return [] if footer is None else [footer.group_name] if footer.group_name else []


def test_one_renames_its_conversation(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        QTest.mouseDClick(window.frame.title, Qt.MouseButton.LeftButton)
        dialog = next(dialog for dialog in window.findChildren(TitleDialog) if dialog.isVisible())
        dialog.findChild(QLineEdit).setText("Rain")
        QTest.keyClick(dialog.findChild(QLineEdit), Qt.Key.Key_Return)
        for shown_window in (window, screen.window):
            await until(lambda shown_window=shown_window: shown_window.windowTitle() == "Rain — Desktop Agent")
        await screen.idle()

    on_screen(work, answers())


def test_closing_one_keeps_the_other_and_its_session(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        window = await open_beside(screen, first)
        session = screen.engine._sessions[first]
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.idle()
        assert not session.is_closed
        ended = []
        window.conversation.finished.connect(lambda: ended.append(1))
        QTest.keyClicks(editor(window), "Two")
        QTest.keyClick(editor(window), Qt.Key.Key_Return)
        await until(lambda: ended)
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        QTest.keyClicks(editor(window), "Unsent")
        window.close()
        await until(lambda: not windows(screen))
        await screen.idle()
        assert not session.is_closed
        assert screen.answers() == ["Yes", "And yes"]
        await until(lambda: screen.editor.toPlainText() == "Unsent")

    on_screen(work, answers(), answers("And yes"))


def test_the_place_of_each_is_remembered_and_those_that_were_open_come_back(on_screen, tmp_path):
    place, ids = QRect(40, 50, 500, 600), []

    async def work(screen):
        await screen.say("One")
        ids.append(screen.conversation.id)
        window = await open_beside(screen, ids[0])
        window.setGeometry(place)
        window.close()
        await until(lambda: not windows(screen))
        await screen.idle()
        window = await open_beside(screen, ids[0])
        assert window.geometry() == place
        # The same window comes to the front, no second one.
        screen.desk._desktop.windows.open(ids[0])
        assert shown_windows(screen) == [window]

    async def work_again(screen):
        window = await until(lambda: next(iter(shown_windows(screen)), None))
        await until(lambda: window.conversation and window.conversation.id == ids[0])
        assert window.geometry() == place
        await screen.idle()

    folder = tmp_path / "data"
    on_screen(work, answers(), folder=folder)
    on_screen(work_again, folder=folder, saved=False)


def test_a_deleted_conversation_has_no_window(on_screen):
    async def work(screen):
        await screen.say("One")
        await open_beside(screen, screen.conversation.id)
        screen.desk.library.delete(screen.conversation.id)
        await until(lambda: not windows(screen))
        await screen.idle()

    on_screen(work, answers())


def test_the_main_window_may_be_closed_first(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        screen.window.close()
        assert screen.window.isHidden()
        assert not screen.front.is_ended
        window.close()
        await until(lambda: screen.front.is_ended)
        await screen.idle()

    on_screen(work, answers())


def test_one_goes_on_in_the_main_window(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        window = await open_beside(screen, first)
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        window.main_requested.emit()
        await until(lambda: screen.conversation.id == first)
        await until(lambda: not windows(screen))
        await screen.idle()

    on_screen(work, answers())


def test_what_is_being_saved_when_one_is_closed_is_saved(on_screen, tmp_path):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        is_saving, may_go_on, deleted = threading.Event(), threading.Event(), []

        def read_data():
            is_saving.set()
            assert may_go_on.wait(PATIENCE)
            return b"kept"

        saver = window.page.attachments.saver
        dialog = saver.ask(window, "a.txt", read_data)
        dialog.fileSelected.emit(str(tmp_path / "a.txt"))
        dialog.reject()
        await until(is_saving.is_set)
        window.destroyed.connect(lambda: deleted.append(1))
        window.close()
        await until(lambda: window not in screen.desk._desktop.windows._all)
        for _ in range(5):
            await asyncio.sleep(0.01)
        assert not deleted
        may_go_on.set()
        await until(lambda: deleted)
        assert (tmp_path / "a.txt").read_bytes() == b"kept"

    on_screen(work, answers())


def test_one_that_is_closed_before_it_shows_anything_keeps_no_conversation_open(on_screen, monkeypatch):
    monkeypatch.setattr("desktop_agent.engine.session_lifecycle.LINGER_SECONDS", 0)

    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await until(lambda: is_closed(screen, first))
        await until(lambda: screen.desk._desktop)
        screen.desk._desktop.windows.open(first)
        (window,) = shown_windows(screen)
        window.close()
        await until(lambda: not windows(screen))
        await screen.idle()
        await until(lambda: is_closed(screen, first))

    on_screen(work, answers())


def test_one_that_is_wanted_again_while_it_is_closed_stays(on_screen):
    async def work(screen):
        await screen.say("One")
        window = await open_beside(screen, screen.conversation.id)
        QTest.keyClicks(editor(window), "Two")
        is_called, may_go_on = held(window, "save_draft")
        window.close()
        await is_called.wait()
        screen.desk._desktop.windows.open(screen.conversation.id)
        may_go_on.set()
        await screen.idle()
        assert shown_windows(screen) == [window]
        assert editor(window).toPlainText() == "Two"
        # Closed twice, it is closed.
        window.close()
        screen.desk._desktop.windows.open(screen.conversation.id)
        window.close()
        await until(lambda: not windows(screen))

    on_screen(work, answers())
