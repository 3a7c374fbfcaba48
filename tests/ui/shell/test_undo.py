"""Undo in the window: at a call's card, and of all since a prompt, with a real conversation and real files."""

import asyncio
from time import monotonic

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QFrame, QPushButton, QTreeWidget

from desktop_agent.conversation.items import CallState, NoticeItem, ToolCallItem, UserItem
from desktop_agent.conversation.transcript_notices import is_undo_note
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.messages import AttachedText, label_attached
from desktop_agent.types.permissions import Rule
from desktop_agent.types.policies import Specialist
from desktop_agent.types.preferences import SpecialistPreferences
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from ui.approval.code_view import CodeView
from ui.approval.dialog_layout import ShrinkingScrollArea
from ui.bridge.session_controls import CheckpointUndo, UndoRequest
from ui.style.style_sheet import selected_background
from ui.transcript.viewport.positions import current_row


def write(number, path="a.txt", text="agent"):
    return ToolUse(id=f"w{number}", name="write_file", input={"path": path, "content": text})


WRITER = Specialist(name="reviewer", description="Reads", system_prompt="You review.", tools=("write_file",))
DONE = Turn(ContentDelta("done"))


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "work"
    place.mkdir()
    (place / "a.txt").write_text("mine")
    return place


async def run_calls(screen, folder, text="change it"):
    """Send a prompt whose calls run without approval."""
    screen.conversation.change(workspace=str(folder))
    screen.conversation.session_controls.set_mode("accept-edits")
    await screen.say(text)


def items(screen, kind):
    return [item for item in screen.conversation.transcript if isinstance(item, kind)]


def card(screen, index=-1):
    return items(screen, ToolCallItem)[index]


def control(screen, item, name):
    """Return a button of the row, once the row is laid out."""
    rows = screen.window.page.transcript.row_viewport.rows
    row = rows.row(rows.index_of(item.id))
    row.stack.settle(0, 10_000)
    return next((candidate for _, candidate in row.controls() if candidate.name == name), None)


async def press_in_row(screen, item, name):
    """Press a button in a row as soon as the row has it: it is laid out later than its item changes."""
    await until(lambda: control(screen, item, name))
    control(screen, item, name).press()


async def wait_for_undo(screen):
    await screen.idle()
    await asyncio.sleep(0.05)


def banner_texts(screen):
    """Return the texts of the banners."""
    return [
        frame.accessibleName() for frame in screen.banners.findChildren(QFrame) if frame.property("kind") == "banner"
    ]


def dialog(screen):
    dialogs = [
        candidate for candidate in screen.window.findChildren(QDialog) if candidate.accessibleName() == "Undo changes"
    ]
    return next((candidate for candidate in dialogs if candidate.isVisible()), None)


def rows_of(dialog):
    tree = dialog.findChild(QTreeWidget)
    items = [tree.topLevelItem(index) for index in range(tree.topLevelItemCount())]
    return {item.text(0): item.text(1) for item in items}


def press(dialog, text):
    button = next(button for button in dialog.findChildren(QPushButton) if button.text() == text and button.isVisible())
    assert button.isEnabled(), text
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def notes(screen):
    session = screen.engine._sessions[screen.conversation.id]
    return [message for message in session.history if is_undo_note(message)]


async def open_undo_dialog(screen, index=-1):
    screen.window.page.transcript.undo_since_requested.emit(items(screen, UserItem)[index].id)
    return await until(lambda: dialog(screen))


def test_a_card_offers_undo_and_says_that_it_is_undone(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        assert (folder / "a.txt").read_text() == "agent"
        await press_in_row(screen, card(screen), "Undo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine"
        # The card says it, and a line of the transcript.
        assert banner_texts(screen) == []
        await until(lambda: control(screen, card(screen), "Undo") is None)
        rows = screen.window.page.transcript.row_viewport.rows
        assert "Write a file, Undone" in rows.row(rows.index_of(card(screen).id)).spoken_text()
        assert dialog(screen) is None

    on_screen(work, Turn(write(1)), DONE)


def test_the_model_reads_of_it_with_the_next_prompt_and_the_transcript_says_so(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await wait_for_undo(screen)
        (note,) = notes(screen)
        assert "`a.txt`: as it was before" in note.text
        line = items(screen, NoticeItem)[-1]
        assert str(line.sentence).startswith("Changes were undone.")
        assert [*map(str, line.folded)] == ["These files were put back:", "", "- `a.txt`: as it was before"]
        await screen.say("go on")
        request = screen.provider.requests[-1]
        assert [message.text for message in request.messages if message.role == "user"][-2:] == [note.text, "go on"]

    on_screen(work, Turn(write(1)), DONE, DONE)


def test_pressing_undo_twice_undoes_once(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        undo = control(screen, card(screen), "Undo")
        undo.press()
        undo.press()
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine"
        (folder / "a.txt").write_text("mine again")
        undo.press()
        await until(lambda: dialog(screen))
        assert "There is nothing that could be undone." in dialog(screen).words
        assert (folder / "a.txt").read_text() == "mine again"
        assert len(notes(screen)) == 1

    on_screen(work, Turn(write(1)), DONE)


def test_all_since_a_prompt_is_said_first_and_then_undone(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        await screen.say("more")
        undo_dialog = await open_undo_dialog(screen, 0)
        assert rows_of(undo_dialog) == {"a.txt": "Put back", "new.txt": "Removed again"}
        assert "Undo all changes since “change it”" in undo_dialog.words
        assert (folder / "a.txt").read_text() == "agent 2"
        press(undo_dialog, "Undo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine"
        assert not (folder / "new.txt").exists()
        assert dialog(screen) is None
        assert all(item.is_undone for item in items(screen, ToolCallItem))
        (note,) = notes(screen)
        assert "`new.txt`: removed, as it was not there before" in note.text

    on_screen(work, Turn(write(1)), DONE, Turn(write(2, text="agent 2"), write(3, "new.txt")), DONE)


def test_what_was_changed_meanwhile_stays_unless_it_is_ticked(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        (folder / "a.txt").write_text("mine, newer")
        undo_dialog = await open_undo_dialog(screen)
        assert rows_of(undo_dialog) == {"a.txt": "Stays as it is", "b.txt": "Removed again"}
        press(undo_dialog, "Undo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine, newer"
        assert not (folder / "b.txt").exists()
        # Which one, its transcript says; the banner goes.
        assert banner_texts(screen) == ["Undone: b.txt. Not all of it was undone."]
        assert "Not put back, because they were changed since: a.txt" in [
            str(e.sentence) for e in items(screen, NoticeItem)
        ]
        undo_dialog = await open_undo_dialog(screen)
        tree = undo_dialog.findChild(QTreeWidget)
        tree.topLevelItem(0).setCheckState(2, Qt.CheckState.Checked)
        assert rows_of(undo_dialog) == {"a.txt": "Put back"}
        press(undo_dialog, "Undo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine"

    on_screen(work, Turn(write(1), write(2, "b.txt")), DONE)


def test_what_is_ticked_and_then_changes_once_more_stays(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        (folder / "a.txt").write_text("mine, newer")
        undo_dialog = await open_undo_dialog(screen)
        undo_dialog.findChild(QTreeWidget).topLevelItem(0).setCheckState(2, Qt.CheckState.Checked)
        (folder / "a.txt").write_text("mine, newest")
        press(undo_dialog, "Undo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine, newest"

    on_screen(work, Turn(write(1)), DONE)


def test_a_card_whose_file_was_changed_asks_first(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        (folder / "a.txt").unlink()
        (folder / "a.txt").mkdir()
        (folder / "a.txt" / "x").write_text("mine")
        await press_in_row(screen, card(screen), "Undo")
        undo_dialog = await until(lambda: dialog(screen))
        assert rows_of(undo_dialog) == {"a.txt": "Stays as it is"}
        assert any("with something in it" in text for text in undo_dialog.words)
        assert not next(
            button for button in undo_dialog.findChildren(QPushButton) if button.text() == "Undo"
        ).isEnabled()
        undo_dialog.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_while_the_agent_works_it_is_stopped_first(on_screen, folder):
    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.conversation.session_controls.set_mode("accept-edits")
        screen.write("change it")
        screen.press("Send")
        await until(lambda: [item for item in items(screen, ToolCallItem) if item.state is CallState.ENDED])
        undo_dialog = await open_undo_dialog(screen)
        assert not next(
            button for button in undo_dialog.findChildren(QPushButton) if button.text() == "Undo"
        ).isEnabled()
        press(undo_dialog, "Stop")
        await until(lambda: not screen.conversation.working)
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "agent"
        press(undo_dialog, "Undo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine"

    on_screen(work, Turn(write(1)), Turn(ContentDelta("and"), Wait(asyncio.Event())))


def test_it_works_after_a_restart(on_screen, folder, tmp_path):
    async def work(screen):
        await run_calls(screen, folder)

    async def after_restart(screen):
        await until(lambda: card(screen).can_be_undone)
        await press_in_row(screen, card(screen), "Undo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine"

    async def after_second_restart(screen):
        await until(lambda: card(screen).is_undone)
        assert notices(screen) == ["Changes were undone"]

    on_screen(work, Turn(write(1)), DONE, folder=tmp_path / "kept")
    on_screen(after_restart, folder=tmp_path / "kept")
    on_screen(after_second_restart, folder=tmp_path / "kept")


def test_a_write_that_changes_nothing_says_so_and_offers_no_undo_also_after_a_restart(on_screen, folder, tmp_path):
    def check(screen):
        unchanged, changed = items(screen, ToolCallItem)
        rows = screen.window.page.transcript.row_viewport.rows
        summaries = [rows.row(rows.index_of(item.id)).blocks[1].plain() for item in (unchanged, changed)]
        assert summaries == ["a.txt · nothing changed", "a.txt +1 \N{MINUS SIGN}1"]
        assert (control(screen, unchanged, "Undo"), unchanged.can_be_undone) == (None, False)
        assert control(screen, changed, "Undo") is not None

    async def work(screen):
        await run_calls(screen, folder)
        check(screen)

    async def after_restart(screen):
        await until(lambda: card(screen).can_be_undone)
        await wait_for_undo(screen)
        check(screen)

    on_screen(work, Turn(write(1, text="mine")), Turn(write(2)), DONE, folder=tmp_path / "kept")
    on_screen(after_restart, folder=tmp_path / "kept")


def test_without_its_folder_nothing_is_undone_and_it_says_why(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        (folder / "a.txt").unlink()
        folder.rmdir()
        undo_dialog = await open_undo_dialog(screen)
        assert rows_of(undo_dialog) == {"a.txt": "Stays as it is"}
        assert any("There is no folder" in text for text in undo_dialog.words)
        undo_dialog.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_what_a_specialist_changed_is_undone_at_its_call_also_after_a_restart(on_screen, folder, tmp_path):
    async def define(screen):
        preferences = screen.engine.preferences.model_copy(
            update={"specialists": SpecialistPreferences(defined=(WRITER,))}
        )
        await screen.engine.change_preferences(preferences)

    async def work(screen):
        await define(screen)
        screen.conversation.change(workspace=str(folder))
        screen.conversation.session_controls.set_mode("accept-edits")
        await screen.say("change it")
        assert (folder / "a.txt").read_text() == "agent"
        assert card(screen).name == "reviewer"
        assert card(screen).can_be_undone

    async def after_restart(screen):
        await define(screen)
        screen.window.page.undo.show(screen.conversation)
        await until(lambda: card(screen).can_be_undone)
        await press_in_row(screen, card(screen), "Undo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine"
        assert card(screen).is_undone

    task = ToolUse(id="r", name="reviewer", input={"task": "look"})
    turns = (Turn(task), Turn(write(1)), Turn(ContentDelta("changed")), DONE)
    on_screen(work, *turns, folder=tmp_path / "kept")
    on_screen(after_restart, folder=tmp_path / "kept")


def test_what_cannot_be_undone_is_named(on_screen, folder):
    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.engine._sessions[screen.conversation.id].permission_policy.add(Rule(effect="allow", tool="run_command"))
        screen.conversation.session_controls.set_mode("accept-edits")
        await screen.say("change it")
        undo_dialog = await open_undo_dialog(screen)
        assert undo_dialog.words[-1].endswith("Run a command (once): echo hello")
        assert rows_of(undo_dialog) == {"a.txt": "Put back"}
        undo_dialog.reject()

    command = ToolUse(id="c", name="run_command", input={"command": "echo hello"})
    on_screen(work, Turn(write(1), command), DONE)


def test_the_menus_of_a_prompt_and_of_a_call_offer_it(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        view = screen.window.page.transcript

        def menu_actions(item):
            point = view.row_viewport.row_box(view.row_viewport.rows.index_of(item.id)).center()
            menu = view.context_menu.build_menu(point, view)
            actions = {action.text(): action for action in menu.actions()}
            menu.deleteLater()
            return actions

        assert "Undo this call" in menu_actions(card(screen))
        menu_actions(items(screen, UserItem)[0])["Undo all changes since this message…"].trigger()
        undo_dialog = await until(lambda: dialog(screen))
        undo_dialog.reject()
        await press_in_row(screen, card(screen), "Undo")
        await wait_for_undo(screen)
        assert "Undo this call" not in menu_actions(card(screen))

    on_screen(work, Turn(write(1)), DONE)


def test_the_approval_says_what_can_be_undone(on_screen, folder):
    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.write("go")
        screen.press("Send")
        await until(lambda: len(screen.conversation.approvals.waiting()) == 3)
        waiting = screen.conversation.approvals.waiting()
        assert {approval.tool: approval.undoable for approval in waiting} == {
            "write_file": True,
            "run_command": False,
            "fetch_page": False,
        }
        screen.conversation.stop()
        await until(lambda: not screen.conversation.working)
        await screen.idle()

    # Where it is confined, what only reads is not asked about.
    command = ToolUse(id="c", name="run_command", input={"command": "touch made"})
    page = ToolUse(id="p", name="fetch_page", input={"url": "https://example.org/"})
    on_screen(work, Turn(write(1), command, page), DONE)


def test_the_lines_of_a_file_are_shown_on_the_way(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        undo_dialog = await open_undo_dialog(screen)
        await screen.idle()
        assert undo_dialog._diff._view.text == "agent\nmine"
        undo_dialog.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_the_command_is_about_the_prompt_at_hand(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder, "first prompt")
        await screen.say("second prompt")
        page = screen.window.page
        page.transcript.row_viewport.focused = (0, "")
        assert current_row(page.transcript.row_viewport) == 0
        screen.action("Undo all changes since this message…").trigger()
        undo_dialog = await until(lambda: dialog(screen))
        assert "Undo all changes since “first prompt”" in undo_dialog.words
        undo_dialog.reject()

    on_screen(work, Turn(write(1)), DONE, DONE)


def test_a_prompt_that_is_only_a_file_is_called_by_its_name(on_screen, folder):
    async def work(screen):
        screen.editor.setPlainText(label_attached(AttachedText("notes.txt", "words")))
        await run_calls(screen, folder, "")
        undo_dialog = await open_undo_dialog(screen)
        assert "Undo all changes since “notes.txt”" in undo_dialog.words
        undo_dialog.reject()

    on_screen(work, Turn(write(1)), DONE)


def banner_button(screen, text):
    buttons = [
        button for button in screen.banners.findChildren(QPushButton) if button.text() == text and button.isVisible()
    ]
    return buttons[-1] if buttons else None


async def wait_out_double_press(screen):
    """Wait until a press no longer counts as the second of a double click."""
    await wait_for_undo(screen)
    screen.window.page.undo._last_request = (UndoRequest(""), 0.0)


def notices(screen):
    return [str(item.sentence).split(".")[0] for item in items(screen, NoticeItem)]


def test_a_card_offers_redo_and_then_undo_again(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        await until(lambda: control(screen, card(screen), "Redo") is None)
        for _ in range(2):
            await press_in_row(screen, card(screen), "Undo")
            await wait_out_double_press(screen)
            assert (folder / "a.txt").read_text() == "mine"
            await until(lambda: control(screen, card(screen), "Undo") is None)
            await press_in_row(screen, card(screen), "Redo")
            await wait_out_double_press(screen)
            assert (folder / "a.txt").read_text() == "agent"
            assert banner_texts(screen) == []
            await until(lambda: control(screen, card(screen), "Redo") is None)
        assert dialog(screen) is None
        assert notices(screen) == ["Changes were undone", "Changes were redone"] * 2
        assert [note.injected_by for note in notes(screen)] == ["undo", "redo"] * 2

    on_screen(work, Turn(write(1)), DONE)


def test_the_second_press_of_a_double_one_does_not_take_it_back(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await until(lambda: control(screen, card(screen), "Redo"))
        screen.window.page.undo._last_request = (UndoRequest(card(screen).id), monotonic())
        await press_in_row(screen, card(screen), "Redo")
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "mine"

    on_screen(work, Turn(write(1)), DONE)


def test_redo_stands_in_the_transcript_and_the_banner_takes_all_of_it_back(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        press(await open_undo_dialog(screen), "Undo")
        await wait_out_double_press(screen)
        assert not (folder / "b.txt").exists()
        assert banner_texts(screen) == []
        await press_in_row(screen, items(screen, NoticeItem)[-1], "Redo")
        press(await until(lambda: dialog(screen)), "Redo")
        await wait_out_double_press(screen)
        assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("agent", "agent")
        assert banner_texts(screen) == ["Redone: a.txt, b.txt."]
        banner_button(screen, "Undo").click()
        await wait_out_double_press(screen)
        assert (folder / "a.txt").read_text() == "mine"
        assert not (folder / "b.txt").exists()
        assert all(item.is_undone for item in items(screen, ToolCallItem))

    on_screen(work, Turn(write(1), write(2, "b.txt")), DONE)


def test_another_conversation_has_no_banner_and_the_way_back_stands_in_the_first(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        (folder / "b.txt").write_text("mine, newer")
        first = screen.conversation
        press(await open_undo_dialog(screen), "Undo")
        await wait_out_double_press(screen)
        assert banner_texts(screen) == ["Undone: c.txt, a.txt. Not all of it was undone."]
        assert banner_button(screen, "Review…")
        screen.desk.library.new()
        await until(lambda: screen.conversation is not first)
        await wait_for_undo(screen)
        assert banner_texts(screen) == []
        screen.desk.library.open(first.id)
        await until(lambda: screen.conversation.id == first.id)
        await screen.idle()
        line = await until(lambda: next((item for item in items(screen, NoticeItem) if item.can_be_redone), None))
        await press_in_row(screen, line, "Redo")
        press(await until(lambda: dialog(screen)), "Redo")
        await wait_out_double_press(screen)
        assert ((folder / "a.txt").read_text(), (folder / "c.txt").read_text()) == ("agent", "agent")

    on_screen(work, Turn(write(1), write(2, "b.txt"), write(3, "c.txt")), DONE)


def test_what_one_call_changed_is_redone_at_its_card_alone(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await wait_out_double_press(screen)
        assert await until(lambda: control(screen, card(screen), "Redo"))
        assert items(screen, NoticeItem)[-1].can_be_redone
        await until(lambda: control(screen, items(screen, NoticeItem)[-1], "Redo") is None)

    on_screen(work, Turn(write(1)), DONE)


def test_what_ends_after_another_conversation_was_opened_is_not_told_there(on_screen, folder, monkeypatch):
    async def work(screen):
        await run_calls(screen, folder)
        first, undo, is_undone, may_return = screen.conversation, CheckpointUndo.undo, asyncio.Event(), asyncio.Event()
        # That nothing was left to undo stands in no line of the transcript.
        (folder / "a.txt").write_text("mine")

        async def undo_late(self, *args):
            result = await undo(self, *args)
            is_undone.set()
            await may_return.wait()
            return result

        monkeypatch.setattr(CheckpointUndo, "undo", undo_late)
        await press_in_row(screen, card(screen), "Undo")
        await is_undone.wait()
        screen.desk.library.new()
        await until(lambda: screen.conversation is not first)
        may_return.set()
        await wait_for_undo(screen)
        assert banner_texts(screen) == []

    on_screen(work, Turn(write(1)), DONE)


def test_a_screen_reader_hears_of_what_lasts_only_where_something_does(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        undo_dialog = await open_undo_dialog(screen)
        assert undo_dialog.words
        assert not any("cannot be undone" in text for text in undo_dialog.words)
        assert "cannot be undone" not in undo_dialog.accessibleDescription()
        undo_dialog.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_the_row_at_hand_looks_as_in_other_lists(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        tree = (await open_undo_dialog(screen)).findChild(QTreeWidget)
        tree.setCurrentItem(tree.topLevelItem(1))
        theme = screen.window.page.undo._themes.theme
        picture = tree.viewport().grab().toImage()
        area = tree.visualItemRect(tree.topLevelItem(1))
        # Between two cells, near the upper and the lower edge: one flat ground.
        across = area.center().x()
        colors = {picture.pixelColor(across, y).name() for y in range(area.top() + 4, area.bottom() - 3)}
        assert colors == {selected_background(theme)}
        text = tree.visualRect(tree.indexFromItem(tree.topLevelItem(1), 0))
        dark = QColor(theme.text).lightness()
        inks = [picture.pixelColor(x, y).lightness() for x in range(4, 60) for y in range(text.top(), text.bottom())]
        assert min(abs(ink - dark) for ink in inks) < 25
        tree.window().reject()

    on_screen(work, Turn(write(1), write(2, "b.txt")), DONE)


def test_the_line_that_tells_of_an_undoing_offers_redo_until_it_is_done_also_after_a_restart(
    on_screen, folder, tmp_path
):
    async def work(screen):
        await run_calls(screen, folder)
        press(await open_undo_dialog(screen), "Undo")
        await wait_out_double_press(screen)

    async def after_restart(screen):
        await until(lambda: items(screen, NoticeItem)[-1].can_be_redone)
        line = items(screen, NoticeItem)[-1]
        await press_in_row(screen, line, "Redo")
        redo_dialog = await until(lambda: dialog(screen))
        assert redo_dialog.words[0] == "Redo what was undone"
        assert rows_of(redo_dialog) == {"a.txt": "Put back", "b.txt": "Brought back"}
        press(redo_dialog, "Redo")
        await wait_out_double_press(screen)
        assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("agent", "agent")
        await until(lambda: control(screen, line, "Redo") is None)
        assert all(item.can_be_undone and not item.can_be_redone for item in items(screen, ToolCallItem))

    async def after_second_restart(screen):
        await until(lambda: card(screen).can_be_undone)
        assert not any(item.can_be_redone for item in items(screen, NoticeItem))
        assert not any(item.can_be_redone for item in items(screen, ToolCallItem))

    on_screen(work, Turn(write(1), write(2, "b.txt")), DONE, folder=tmp_path / "kept")
    on_screen(after_restart, folder=tmp_path / "kept")
    on_screen(after_second_restart, folder=tmp_path / "kept")


def test_what_changed_after_the_undoing_is_asked_about_and_comes_back_by_undo(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await wait_out_double_press(screen)
        (folder / "a.txt").write_text("mine, newer")
        await press_in_row(screen, card(screen), "Redo")
        redo_dialog = await until(lambda: dialog(screen))
        assert "Redo what “Write a file” changed" in redo_dialog.words
        assert rows_of(redo_dialog) == {"a.txt": "Stays as it is"}
        assert any(text.startswith("The file was changed after the undo.") for text in redo_dialog.words)
        redo_dialog.findChild(QTreeWidget).topLevelItem(0).setCheckState(2, Qt.CheckState.Checked)
        assert any("Undo restores them" in text for text in redo_dialog.words)
        press(redo_dialog, "Redo")
        await wait_out_double_press(screen)
        assert (folder / "a.txt").read_text() == "agent"
        await press_in_row(screen, card(screen), "Undo")
        await wait_out_double_press(screen)
        assert (folder / "a.txt").read_text() == "mine, newer"

    on_screen(work, Turn(write(1)), DONE)


def test_the_menu_of_a_call_offers_redo(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await wait_out_double_press(screen)
        view = screen.window.page.transcript
        point = view.row_viewport.row_box(view.row_viewport.rows.index_of(card(screen).id)).center()
        menu = view.context_menu.build_menu(point, view)
        actions = {action.text(): action for action in menu.actions()}
        assert "Undo this call" not in actions
        actions["Redo this call"].trigger()
        menu.deleteLater()
        await wait_out_double_press(screen)
        assert (folder / "a.txt").read_text() == "agent"

    on_screen(work, Turn(write(1)), DONE)


def test_nothing_is_undone_behind_the_open_dialog(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        transcript, called = screen.window.page.transcript, card(screen).id
        undo_dialog = await open_undo_dialog(screen)
        words = undo_dialog.words
        transcript.undo_requested.emit(called)
        await wait_for_undo(screen)
        assert (folder / "a.txt").read_text() == "agent"
        assert dialog(screen) is undo_dialog
        assert undo_dialog.words == words
        undo_dialog.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_what_was_put_back_by_hand_is_undone_and_the_card_says_so(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        (folder / "a.txt").write_text("mine")
        await press_in_row(screen, card(screen), "Undo")
        await until(lambda: card(screen).is_undone and banner_texts(screen))
        await until(lambda: control(screen, card(screen), "Undo") is None)
        assert (folder / "a.txt").read_text() == "mine"
        assert banner_texts(screen) == ["Nothing was left to undo: the files are already as they were before."]
        assert dialog(screen) is None

    on_screen(work, Turn(write(1)), DONE)


def test_what_a_later_call_changed_back_has_nothing_left_to_undo(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        assert (folder / "a.txt").read_text() == "mine"
        cards = items(screen, ToolCallItem)
        await press_in_row(screen, cards[0], "Undo")
        await until(lambda: banner_texts(screen))
        assert banner_texts(screen) == ["Nothing was left to undo: the files are already as they were before."]
        assert (folder / "a.txt").read_text() == "mine"
        assert [item.is_undone for item in items(screen, ToolCallItem)] == [True, False]

    on_screen(work, Turn(write(1)), Turn(write(2, text="mine")), DONE)


def test_the_dialog_says_that_nothing_is_left_to_undo(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        (folder / "a.txt").write_text("mine")
        undo_dialog = await open_undo_dialog(screen)
        assert "There is nothing left to undo: the files are already as they were before." in undo_dialog.words

    on_screen(work, Turn(write(1)), DONE)


def test_the_difference_has_room_and_gives_way_before_what_stands_below(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        undo_dialog = await open_undo_dialog(screen)
        lines = undo_dialog.findChild(CodeView)
        await until(lambda: "line 59" in lines.toPlainText())
        row = lines.blockBoundingRect(lines.firstVisibleBlock()).height()
        assert undo_dialog.height() == undo_dialog.sizeHint().height()
        await until(lambda: lines.height() >= 12 * row)
        middle = undo_dialog.findChild(ShrinkingScrollArea)
        # No more scrolls than the difference itself.
        await until(lambda: middle.verticalScrollBar().maximum() == 0)

    on_screen(work, Turn(write(1, text="".join(f"line {number}\n" for number in range(60)))), DONE)


def test_why_a_file_has_no_lines_is_said_in_the_language_of_the_window(on_screen, folder, monkeypatch):
    async def work(screen):
        await run_calls(screen, folder)
        monkeypatch.setattr("ui.style.text.translate_sentence", lambda sentence: f"translated: {sentence.template}")
        undo_dialog = await open_undo_dialog(screen)
        lines = undo_dialog.findChild(CodeView)
        await until(lambda: lines.toPlainText().startswith("translated: “{path}” is not text"))

    on_screen(work, Turn(write(1, text="a\0b")), DONE)


def test_what_a_specialist_changed_in_several_steps_is_redone_at_its_card_alone(on_screen, folder):
    async def work(screen):
        preferences = screen.engine.preferences.model_copy(
            update={"specialists": SpecialistPreferences(defined=(WRITER,))}
        )
        await screen.engine.change_preferences(preferences)
        await run_calls(screen, folder)
        assert len(card(screen).checkpoints) == 2
        await press_in_row(screen, card(screen), "Undo")
        await wait_out_double_press(screen)
        line = items(screen, NoticeItem)[-1]
        assert len(line.redos) == 2
        assert await until(lambda: control(screen, card(screen), "Redo"))
        await until(lambda: control(screen, line, "Redo") is None)

    task = ToolUse(id="r", name="reviewer", input={"task": "look"})
    on_screen(work, Turn(task), Turn(write(1)), Turn(write(2, "b.txt")), Turn(ContentDelta("changed")), DONE)


def test_from_far_up_the_banner_offers_redo_of_all(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        transcript = screen.window.page.transcript
        for _ in range(2):
            transcript.scroller.scroll_to_start()
            assert not transcript.row_viewport.rows.following
            press(await open_undo_dialog(screen), "Undo")
            await wait_out_double_press(screen)
            assert (folder / "a.txt").read_text() == "mine"
            banner_button(screen, "Redo").click()
            press(await until(lambda: dialog(screen)), "Redo")
            await wait_out_double_press(screen)
            assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("agent", "agent")
        assert banner_button(screen, "Undo")

    on_screen(work, Turn(write(1), write(2, "b.txt")), Turn(ContentDelta("done\n\n" * 200)))
