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


async def worked(screen, folder, text="change it"):
    """A prompt whose calls ran unasked."""
    screen.conversation.change(workspace=str(folder))
    screen.conversation.session_controls.set_mode("accept-edits")
    await screen.say(text)


def items(screen, kind):
    return [each for each in screen.conversation.transcript if isinstance(each, kind)]


def card(screen, at=-1):
    return items(screen, ToolCallItem)[at]


def control(screen, item, name):
    """A button in a row, laid out."""
    rows = screen.window.page.transcript.row_viewport.rows
    row = rows.row(rows.index_of(item.id))
    row.stack.settle(0, 10_000)
    return next((each for _, each in row.controls() if each.name == name), None)


async def press_in_row(screen, item, name):
    """Press a button in a row as soon as the row has it: it is laid out later than its item changes."""
    await until(lambda: control(screen, item, name))
    control(screen, item, name).press()


async def undone(screen):
    await screen.idle()
    await asyncio.sleep(0.05)


def said(screen):
    """What the banners say."""
    return [each.accessibleName() for each in screen.banners.findChildren(QFrame) if each.property("kind") == "banner"]


def dialog(screen):
    found = [each for each in screen.window.findChildren(QDialog) if each.accessibleName() == "Undo changes"]
    return next((each for each in found if each.isVisible()), None)


def rows_of(opened):
    tree = opened.findChild(QTreeWidget)
    items = [tree.topLevelItem(at) for at in range(tree.topLevelItemCount())]
    return {each.text(0): each.text(1) for each in items}


def press(opened, text):
    button = next(each for each in opened.findChildren(QPushButton) if each.text() == text and each.isVisible())
    assert button.isEnabled(), text
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def notes(screen):
    session = screen.engine._sessions[screen.conversation.id]
    return [each for each in session.history if is_undo_note(each)]


async def since(screen, at=-1):
    screen.window.page.transcript.undo_since_requested.emit(items(screen, UserItem)[at].id)
    return await until(lambda: dialog(screen))


def test_a_card_offers_undo_and_says_that_it_is_undone(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        assert (folder / "a.txt").read_text() == "agent"
        await press_in_row(screen, card(screen), "Undo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine"
        # The card says it, and a line of the transcript.
        assert said(screen) == []
        await until(lambda: control(screen, card(screen), "Undo") is None)
        rows = screen.window.page.transcript.row_viewport.rows
        assert "Write a file, Undone" in rows.row(rows.index_of(card(screen).id)).spoken_text()
        assert dialog(screen) is None

    on_screen(work, Turn(write(1)), DONE)


def test_the_model_reads_of_it_with_the_next_prompt_and_the_transcript_says_so(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await undone(screen)
        (note,) = notes(screen)
        assert "`a.txt`: as it was before" in note.text
        line = items(screen, NoticeItem)[-1]
        assert str(line.sentence).startswith("Changes were undone.")
        assert [*map(str, line.folded)] == ["These files were put back:", "", "- `a.txt`: as it was before"]
        await screen.say("go on")
        request = screen.provider.requests[-1]
        assert [each.text for each in request.messages if each.role == "user"][-2:] == [note.text, "go on"]

    on_screen(work, Turn(write(1)), DONE, DONE)


def test_twice_is_once(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        undo = control(screen, card(screen), "Undo")
        undo.press()
        undo.press()
        await undone(screen)
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
        await worked(screen, folder)
        await screen.say("more")
        opened = await since(screen, 0)
        assert rows_of(opened) == {"a.txt": "Put back", "new.txt": "Removed again"}
        assert "Undo all changes since “change it”" in opened.words
        assert (folder / "a.txt").read_text() == "agent 2"
        press(opened, "Undo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine"
        assert not (folder / "new.txt").exists()
        assert dialog(screen) is None
        assert all(each.is_undone for each in items(screen, ToolCallItem))
        (note,) = notes(screen)
        assert "`new.txt`: removed, as it was not there before" in note.text

    on_screen(work, Turn(write(1)), DONE, Turn(write(2, text="agent 2"), write(3, "new.txt")), DONE)


def test_what_was_changed_meanwhile_stays_unless_it_is_ticked(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        (folder / "a.txt").write_text("mine, newer")
        opened = await since(screen)
        assert rows_of(opened) == {"a.txt": "Stays as it is", "b.txt": "Removed again"}
        press(opened, "Undo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine, newer"
        assert not (folder / "b.txt").exists()
        # Which one, its transcript says; the banner goes.
        assert said(screen) == ["Undone: b.txt. Not all of it was undone."]
        assert "Not put back, because they were changed since: a.txt" in [
            str(e.sentence) for e in items(screen, NoticeItem)
        ]
        opened = await since(screen)
        tree = opened.findChild(QTreeWidget)
        tree.topLevelItem(0).setCheckState(2, Qt.CheckState.Checked)
        assert rows_of(opened) == {"a.txt": "Put back"}
        press(opened, "Undo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine"

    on_screen(work, Turn(write(1), write(2, "b.txt")), DONE)


def test_what_is_ticked_and_then_changes_once_more_stays(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        (folder / "a.txt").write_text("mine, newer")
        opened = await since(screen)
        opened.findChild(QTreeWidget).topLevelItem(0).setCheckState(2, Qt.CheckState.Checked)
        (folder / "a.txt").write_text("mine, newest")
        press(opened, "Undo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine, newest"

    on_screen(work, Turn(write(1)), DONE)


def test_a_card_whose_file_was_changed_asks_first(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        (folder / "a.txt").unlink()
        (folder / "a.txt").mkdir()
        (folder / "a.txt" / "x").write_text("mine")
        await press_in_row(screen, card(screen), "Undo")
        opened = await until(lambda: dialog(screen))
        assert rows_of(opened) == {"a.txt": "Stays as it is"}
        assert any("with something in it" in each for each in opened.words)
        assert not next(each for each in opened.findChildren(QPushButton) if each.text() == "Undo").isEnabled()
        opened.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_while_the_agent_works_it_is_stopped_first(on_screen, folder):
    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.conversation.session_controls.set_mode("accept-edits")
        screen.write("change it")
        screen.press("Send")
        await until(lambda: [each for each in items(screen, ToolCallItem) if each.state is CallState.ENDED])
        opened = await since(screen)
        assert not next(each for each in opened.findChildren(QPushButton) if each.text() == "Undo").isEnabled()
        press(opened, "Stop")
        await until(lambda: not screen.conversation.working)
        await undone(screen)
        assert (folder / "a.txt").read_text() == "agent"
        press(opened, "Undo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine"

    on_screen(work, Turn(write(1)), Turn(ContentDelta("and"), Wait(asyncio.Event())))


def test_it_works_after_a_restart(on_screen, folder, tmp_path):
    async def before(screen):
        await worked(screen, folder)

    async def after(screen):
        await until(lambda: card(screen).can_be_undone)
        await press_in_row(screen, card(screen), "Undo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine"

    async def later(screen):
        await until(lambda: card(screen).is_undone)
        assert notices(screen) == ["Changes were undone"]

    on_screen(before, Turn(write(1)), DONE, folder=tmp_path / "kept")
    on_screen(after, folder=tmp_path / "kept")
    on_screen(later, folder=tmp_path / "kept")


def test_a_write_that_changes_nothing_says_so_and_offers_no_undo_also_after_a_restart(on_screen, folder, tmp_path):
    def check(screen):
        same, other = items(screen, ToolCallItem)
        rows = screen.window.page.transcript.row_viewport.rows
        shown = [rows.row(rows.index_of(each.id)).blocks[1].plain() for each in (same, other)]
        assert shown == ["a.txt · nothing changed", "a.txt +1 \N{MINUS SIGN}1"]
        assert (control(screen, same, "Undo"), same.can_be_undone) == (None, False)
        assert control(screen, other, "Undo") is not None

    async def before(screen):
        await worked(screen, folder)
        check(screen)

    async def after(screen):
        await until(lambda: card(screen).can_be_undone)
        await undone(screen)
        check(screen)

    on_screen(before, Turn(write(1, text="mine")), Turn(write(2)), DONE, folder=tmp_path / "kept")
    on_screen(after, folder=tmp_path / "kept")


def test_without_its_folder_nothing_is_undone_and_it_says_why(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        (folder / "a.txt").unlink()
        folder.rmdir()
        opened = await since(screen)
        assert rows_of(opened) == {"a.txt": "Stays as it is"}
        assert any("There is no folder" in each for each in opened.words)
        opened.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_what_a_specialist_changed_is_undone_at_its_call_also_after_a_restart(on_screen, folder, tmp_path):
    async def define(screen):
        preferences = screen.engine.preferences.model_copy(
            update={"specialists": SpecialistPreferences(defined=(WRITER,))}
        )
        await screen.engine.change_preferences(preferences)

    async def before(screen):
        await define(screen)
        screen.conversation.change(workspace=str(folder))
        screen.conversation.session_controls.set_mode("accept-edits")
        await screen.say("change it")
        assert (folder / "a.txt").read_text() == "agent"
        assert card(screen).name == "reviewer"
        assert card(screen).can_be_undone

    async def after(screen):
        await define(screen)
        screen.window.page.undo.show(screen.conversation)
        await until(lambda: card(screen).can_be_undone)
        await press_in_row(screen, card(screen), "Undo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine"
        assert card(screen).is_undone

    task = ToolUse(id="r", name="reviewer", input={"task": "look"})
    turns = (Turn(task), Turn(write(1)), Turn(ContentDelta("changed")), DONE)
    on_screen(before, *turns, folder=tmp_path / "kept")
    on_screen(after, folder=tmp_path / "kept")


def test_what_cannot_be_undone_is_named(on_screen, folder):
    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.engine._sessions[screen.conversation.id].permission_policy.add(Rule(effect="allow", tool="run_command"))
        screen.conversation.session_controls.set_mode("accept-edits")
        await screen.say("change it")
        opened = await since(screen)
        assert opened.words[-1].endswith("Run a command (once): echo hello")
        assert rows_of(opened) == {"a.txt": "Put back"}
        opened.reject()

    command = ToolUse(id="c", name="run_command", input={"command": "echo hello"})
    on_screen(work, Turn(write(1), command), DONE)


def test_the_menus_of_a_prompt_and_of_a_call_offer_it(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        view = screen.window.page.transcript

        def offered(item):
            point = view.row_viewport.row_box(view.row_viewport.rows.index_of(item.id)).center()
            menu = view.context_menu.build_menu(point, view)
            words = {each.text(): each for each in menu.actions()}
            menu.deleteLater()
            return words

        assert "Undo this call" in offered(card(screen))
        offered(items(screen, UserItem)[0])["Undo all changes since this message…"].trigger()
        opened = await until(lambda: dialog(screen))
        opened.reject()
        await press_in_row(screen, card(screen), "Undo")
        await undone(screen)
        assert "Undo this call" not in offered(card(screen))

    on_screen(work, Turn(write(1)), DONE)


def test_the_approval_says_what_can_be_undone(on_screen, folder):
    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        screen.write("go")
        screen.press("Send")
        await until(lambda: len(screen.conversation.approvals.waiting()) == 3)
        waiting = screen.conversation.approvals.waiting()
        assert {each.tool: each.undoable for each in waiting} == {
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
        await worked(screen, folder)
        opened = await since(screen)
        await screen.idle()
        assert opened._diff.accessible_text == "agent\nmine"
        opened.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_the_command_is_about_the_prompt_at_hand(on_screen, folder):
    async def work(screen):
        await worked(screen, folder, "first prompt")
        await screen.say("second prompt")
        page = screen.window.page
        page.transcript.row_viewport.focused = (0, "")
        assert current_row(page.transcript.row_viewport) == 0
        screen.action("Undo all changes since this message…").trigger()
        opened = await until(lambda: dialog(screen))
        assert "Undo all changes since “first prompt”" in opened.words
        opened.reject()

    on_screen(work, Turn(write(1)), DONE, DONE)


def test_a_prompt_that_is_only_a_file_is_called_by_its_name(on_screen, folder):
    async def work(screen):
        screen.editor.setPlainText(label_attached(AttachedText("notes.txt", "words")))
        await worked(screen, folder, "")
        opened = await since(screen)
        assert "Undo all changes since “notes.txt”" in opened.words
        opened.reject()

    on_screen(work, Turn(write(1)), DONE)


def banner_button(screen, text):
    shown = [each for each in screen.banners.findChildren(QPushButton) if each.text() == text and each.isVisible()]
    return shown[-1] if shown else None


async def calm(screen):
    """Past the time in which a press counts as the second of a double one."""
    await undone(screen)
    screen.window.page.undo._last_request = (UndoRequest(""), 0.0)


def notices(screen):
    return [str(each.sentence).split(".")[0] for each in items(screen, NoticeItem)]


def test_a_card_offers_redo_and_then_undo_again(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        await until(lambda: control(screen, card(screen), "Redo") is None)
        for _ in range(2):
            await press_in_row(screen, card(screen), "Undo")
            await calm(screen)
            assert (folder / "a.txt").read_text() == "mine"
            await until(lambda: control(screen, card(screen), "Undo") is None)
            await press_in_row(screen, card(screen), "Redo")
            await calm(screen)
            assert (folder / "a.txt").read_text() == "agent"
            assert said(screen) == []
            await until(lambda: control(screen, card(screen), "Redo") is None)
        assert dialog(screen) is None
        assert notices(screen) == ["Changes were undone", "Changes were redone"] * 2
        assert [each.injected_by for each in notes(screen)] == ["undo", "redo"] * 2

    on_screen(work, Turn(write(1)), DONE)


def test_the_second_press_of_a_double_one_does_not_take_it_back(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await until(lambda: control(screen, card(screen), "Redo"))
        screen.window.page.undo._last_request = (UndoRequest(card(screen).id), monotonic())
        await press_in_row(screen, card(screen), "Redo")
        await undone(screen)
        assert (folder / "a.txt").read_text() == "mine"

    on_screen(work, Turn(write(1)), DONE)


def test_redo_stands_in_the_transcript_and_the_banner_takes_all_of_it_back(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        press(await since(screen), "Undo")
        await calm(screen)
        assert not (folder / "b.txt").exists()
        assert said(screen) == []
        await press_in_row(screen, items(screen, NoticeItem)[-1], "Redo")
        press(await until(lambda: dialog(screen)), "Redo")
        await calm(screen)
        assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("agent", "agent")
        assert said(screen) == ["Redone: a.txt, b.txt."]
        banner_button(screen, "Undo").click()
        await calm(screen)
        assert (folder / "a.txt").read_text() == "mine"
        assert not (folder / "b.txt").exists()
        assert all(each.is_undone for each in items(screen, ToolCallItem))

    on_screen(work, Turn(write(1), write(2, "b.txt")), DONE)


def test_another_conversation_has_no_banner_and_the_way_back_stands_in_the_first(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        (folder / "b.txt").write_text("mine, newer")
        first = screen.conversation
        press(await since(screen), "Undo")
        await calm(screen)
        assert said(screen) == ["Undone: c.txt, a.txt. Not all of it was undone."]
        assert banner_button(screen, "Review…")
        screen.desk.library.new()
        await until(lambda: screen.conversation is not first)
        await undone(screen)
        assert said(screen) == []
        screen.desk.library.open(first.id)
        await until(lambda: screen.conversation.id == first.id)
        await screen.idle()
        line = await until(lambda: next((each for each in items(screen, NoticeItem) if each.can_be_redone), None))
        await press_in_row(screen, line, "Redo")
        press(await until(lambda: dialog(screen)), "Redo")
        await calm(screen)
        assert ((folder / "a.txt").read_text(), (folder / "c.txt").read_text()) == ("agent", "agent")

    on_screen(work, Turn(write(1), write(2, "b.txt"), write(3, "c.txt")), DONE)


def test_what_one_call_changed_is_redone_at_its_card_alone(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await calm(screen)
        assert await until(lambda: control(screen, card(screen), "Redo"))
        assert items(screen, NoticeItem)[-1].can_be_redone
        await until(lambda: control(screen, items(screen, NoticeItem)[-1], "Redo") is None)

    on_screen(work, Turn(write(1)), DONE)


def test_what_ends_after_another_conversation_was_opened_is_not_told_there(on_screen, folder, monkeypatch):
    async def work(screen):
        await worked(screen, folder)
        first, undo, done, gate = screen.conversation, CheckpointUndo.undo, asyncio.Event(), asyncio.Event()
        # That nothing was left to undo stands in no line of the transcript.
        (folder / "a.txt").write_text("mine")

        async def later(self, *given):
            result = await undo(self, *given)
            done.set()
            await gate.wait()
            return result

        monkeypatch.setattr(CheckpointUndo, "undo", later)
        await press_in_row(screen, card(screen), "Undo")
        await done.wait()
        screen.desk.library.new()
        await until(lambda: screen.conversation is not first)
        gate.set()
        await undone(screen)
        assert said(screen) == []

    on_screen(work, Turn(write(1)), DONE)


def test_a_screen_reader_hears_of_what_lasts_only_where_something_does(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        opened = await since(screen)
        assert opened.words
        assert not any("cannot be undone" in each for each in opened.words)
        assert "cannot be undone" not in opened.accessibleDescription()
        opened.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_the_row_at_hand_looks_as_in_other_lists(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        tree = (await since(screen)).findChild(QTreeWidget)
        tree.setCurrentItem(tree.topLevelItem(1))
        theme = screen.window.page.undo._themes.theme
        picture = tree.viewport().grab().toImage()
        area = tree.visualItemRect(tree.topLevelItem(1))
        # Between two cells, near the upper and the lower edge: one flat ground.
        across = area.center().x()
        found = {picture.pixelColor(across, y).name() for y in range(area.top() + 4, area.bottom() - 3)}
        assert found == {selected_background(theme)}
        text = tree.visualRect(tree.indexFromItem(tree.topLevelItem(1), 0))
        dark = QColor(theme.text).lightness()
        inks = [picture.pixelColor(x, y).lightness() for x in range(4, 60) for y in range(text.top(), text.bottom())]
        assert min(abs(each - dark) for each in inks) < 25
        tree.window().reject()

    on_screen(work, Turn(write(1), write(2, "b.txt")), DONE)


def test_the_line_that_tells_of_an_undoing_offers_redo_until_it_is_done_also_after_a_restart(
    on_screen, folder, tmp_path
):
    async def before(screen):
        await worked(screen, folder)
        press(await since(screen), "Undo")
        await calm(screen)

    async def after(screen):
        await until(lambda: items(screen, NoticeItem)[-1].can_be_redone)
        line = items(screen, NoticeItem)[-1]
        await press_in_row(screen, line, "Redo")
        opened = await until(lambda: dialog(screen))
        assert opened.words[0] == "Redo what was undone"
        assert rows_of(opened) == {"a.txt": "Put back", "b.txt": "Brought back"}
        press(opened, "Redo")
        await calm(screen)
        assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("agent", "agent")
        await until(lambda: control(screen, line, "Redo") is None)
        assert all(each.can_be_undone and not each.can_be_redone for each in items(screen, ToolCallItem))

    async def later(screen):
        await until(lambda: card(screen).can_be_undone)
        assert not any(each.can_be_redone for each in items(screen, NoticeItem))
        assert not any(each.can_be_redone for each in items(screen, ToolCallItem))

    on_screen(before, Turn(write(1), write(2, "b.txt")), DONE, folder=tmp_path / "kept")
    on_screen(after, folder=tmp_path / "kept")
    on_screen(later, folder=tmp_path / "kept")


def test_what_changed_after_the_undoing_is_asked_about_and_comes_back_by_undo(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await calm(screen)
        (folder / "a.txt").write_text("mine, newer")
        await press_in_row(screen, card(screen), "Redo")
        opened = await until(lambda: dialog(screen))
        assert "Redo what “Write a file” changed" in opened.words
        assert rows_of(opened) == {"a.txt": "Stays as it is"}
        assert any(each.startswith("The file was changed after the undo.") for each in opened.words)
        opened.findChild(QTreeWidget).topLevelItem(0).setCheckState(2, Qt.CheckState.Checked)
        assert any("Undo restores them" in each for each in opened.words)
        press(opened, "Redo")
        await calm(screen)
        assert (folder / "a.txt").read_text() == "agent"
        await press_in_row(screen, card(screen), "Undo")
        await calm(screen)
        assert (folder / "a.txt").read_text() == "mine, newer"

    on_screen(work, Turn(write(1)), DONE)


def test_the_menu_of_a_call_offers_redo(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        await press_in_row(screen, card(screen), "Undo")
        await calm(screen)
        view = screen.window.page.transcript
        point = view.row_viewport.row_box(view.row_viewport.rows.index_of(card(screen).id)).center()
        menu = view.context_menu.build_menu(point, view)
        words = {each.text(): each for each in menu.actions()}
        assert "Undo this call" not in words
        words["Redo this call"].trigger()
        menu.deleteLater()
        await calm(screen)
        assert (folder / "a.txt").read_text() == "agent"

    on_screen(work, Turn(write(1)), DONE)


def test_nothing_is_undone_behind_the_open_dialog(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        transcript, called = screen.window.page.transcript, card(screen).id
        opened = await since(screen)
        words = opened.words
        transcript.undo_requested.emit(called)
        await undone(screen)
        assert (folder / "a.txt").read_text() == "agent"
        assert dialog(screen) is opened
        assert opened.words == words
        opened.reject()

    on_screen(work, Turn(write(1)), DONE)


def test_what_was_put_back_by_hand_is_undone_and_the_card_says_so(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        (folder / "a.txt").write_text("mine")
        await press_in_row(screen, card(screen), "Undo")
        await until(lambda: card(screen).is_undone and said(screen))
        await until(lambda: control(screen, card(screen), "Undo") is None)
        assert (folder / "a.txt").read_text() == "mine"
        assert said(screen) == ["Nothing was left to undo: the files are already as they were before."]
        assert dialog(screen) is None

    on_screen(work, Turn(write(1)), DONE)


def test_what_a_later_call_changed_back_has_nothing_left_to_undo(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        assert (folder / "a.txt").read_text() == "mine"
        cards = items(screen, ToolCallItem)
        await press_in_row(screen, cards[0], "Undo")
        await until(lambda: said(screen))
        assert said(screen) == ["Nothing was left to undo: the files are already as they were before."]
        assert (folder / "a.txt").read_text() == "mine"
        assert [each.is_undone for each in items(screen, ToolCallItem)] == [True, False]

    on_screen(work, Turn(write(1)), Turn(write(2, text="mine")), DONE)


def test_the_dialog_says_so_too(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        (folder / "a.txt").write_text("mine")
        opened = await since(screen)
        assert "There is nothing left to undo: the files are already as they were before." in opened.words

    on_screen(work, Turn(write(1)), DONE)


def test_the_difference_has_room_and_gives_way_before_what_stands_below(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        opened = await since(screen)
        lines = opened.findChild(CodeView)
        await until(lambda: "line 59" in lines.toPlainText())
        row = lines.blockBoundingRect(lines.firstVisibleBlock()).height()
        assert opened.height() == opened.sizeHint().height()
        await until(lambda: lines.height() >= 12 * row)
        middle = opened.findChild(ShrinkingScrollArea)
        # No more scrolls than the difference itself.
        await until(lambda: middle.verticalScrollBar().maximum() == 0)

    on_screen(work, Turn(write(1, text="".join(f"line {number}\n" for number in range(60)))), DONE)


def test_why_a_file_has_no_lines_is_said_in_the_language_of_the_window(on_screen, folder, monkeypatch):
    async def work(screen):
        await worked(screen, folder)
        monkeypatch.setattr("ui.style.text.translate_sentence", lambda sentence: f"translated: {sentence.template}")
        opened = await since(screen)
        lines = opened.findChild(CodeView)
        await until(lambda: lines.toPlainText().startswith("translated: “{path}” is not text"))

    on_screen(work, Turn(write(1, text="a\0b")), DONE)


def test_what_a_specialist_changed_in_several_steps_is_redone_at_its_card_alone(on_screen, folder):
    async def work(screen):
        preferences = screen.engine.preferences.model_copy(
            update={"specialists": SpecialistPreferences(defined=(WRITER,))}
        )
        await screen.engine.change_preferences(preferences)
        await worked(screen, folder)
        assert len(card(screen).checkpoints) == 2
        await press_in_row(screen, card(screen), "Undo")
        await calm(screen)
        line = items(screen, NoticeItem)[-1]
        assert len(line.redos) == 2
        assert await until(lambda: control(screen, card(screen), "Redo"))
        await until(lambda: control(screen, line, "Redo") is None)

    task = ToolUse(id="r", name="reviewer", input={"task": "look"})
    on_screen(work, Turn(task), Turn(write(1)), Turn(write(2, "b.txt")), Turn(ContentDelta("changed")), DONE)


def test_from_far_up_the_banner_offers_redo_of_all(on_screen, folder):
    async def work(screen):
        await worked(screen, folder)
        transcript = screen.window.page.transcript
        for _ in range(2):
            transcript.scroller.scroll_to_start()
            assert not transcript.row_viewport.rows.following
            press(await since(screen), "Undo")
            await calm(screen)
            assert (folder / "a.txt").read_text() == "mine"
            banner_button(screen, "Redo").click()
            press(await until(lambda: dialog(screen)), "Redo")
            await calm(screen)
            assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("agent", "agent")
        assert banner_button(screen, "Undo")

    on_screen(work, Turn(write(1), write(2, "b.txt")), Turn(ContentDelta("done\n\n" * 200)))
