"""Messages deleted in the window: asked about with what goes along, gone then, refused while the model works."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from desktop_agent.conversation.message_tree import Deletion
from desktop_agent.storage.backups.backup import write_backup
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.ui.shell.test_branches import commands, run, session, settled, turns, view, write
from tests.ui.shell.test_undo import dialog, press, run_calls
from ui.shell.branch_tree.message_deletion import deletion_words
from ui.style.widgets import QuestionBox


def plan(following=0, elsewhere=0, calls=0, checkpoints=()):
    return Deletion("r", frozenset("r"), None, True, following, elsewhere, calls, False, checkpoints)


def question(screen):
    return next((box for box in screen.window.findChildren(QuestionBox) if box.isVisible()), None)


async def ask_to_delete(screen, name="Delete…", row=-1):
    commands(screen, row)[name].run()
    await until(lambda: question(screen) is not None)
    return question(screen)


def answer(box, name):
    (button,) = [button for button in box.findChildren(QPushButton) if button.text() == name]
    button.click()


def test_what_goes_is_said_with_counts():
    assert deletion_words(plan()) == "It is deleted for good. This cannot be undone."
    assert deletion_words(plan(4, 2, 3)) == (
        "It is deleted for good, with 4 messages after it, 2 of them on other branches. This cannot be undone. Changes "
        "made by tools are not undone."
    )
    assert "the message after it." in deletion_words(plan(1))
    assert "the message after it on another branch." in deletion_words(plan(1, 1))
    assert "2 messages after it on other branches." in deletion_words(plan(2, 2))
    assert "2 messages after it, 1 of them on another branch." in deletion_words(plan(2, 1))
    assert "2 messages after it. This cannot be undone." in deletion_words(plan(2))
    assert "cannot be undone from here any more" in deletion_words(plan(0, 0, 1, ("c",)))


def test_backups_that_still_have_it_are_named(on_screen):
    async def work(screen):
        await screen.say("a")
        await write_backup(screen.engine.store, screen.engine.folder, screen.engine.folder / "backups")
        await screen.say("b")
        answer(await ask_to_delete(screen, row=2), "Delete for good")
        await until(lambda: screen.answers() == ["one"])
        await screen.idle()
        assert screen.banners.keys == []
        answer(await ask_to_delete(screen, row=0), "Delete for good")
        await until(lambda: "Backups and copies that still have" in " ".join(screen.words(screen.banners)))

    on_screen(work, *turns("one", "two"))


def test_a_message_is_deleted_once_that_was_asked(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        box = await ask_to_delete(screen, row=2)
        assert box.accessibleName() == "Delete your message?"
        assert "the message after it" in box.accessibleDescription()
        assert box.focusWidget().text() == "Keep"
        QTest.keyClick(box, Qt.Key.Key_Escape)
        assert screen.answers() == ["one", "two"]
        view(screen).setFocus()
        view(screen).row_viewport.focus((2, ""))
        QTest.keyClick(view(screen), Qt.Key.Key_Delete)
        await until(lambda: question(screen) is not None)
        answer(question(screen), "Delete for good")
        await until(lambda: screen.answers() == ["one"])
        await settled(screen)
        screen.window.page.branches.delete_here()
        await until(lambda: question(screen) is not None)
        assert question(screen).accessibleName() == "Delete this answer?"
        answer(question(screen), "Delete for good")
        await until(lambda: screen.answers() == [])
        await settled(screen)
        box = await ask_to_delete(screen, row=0)
        answer(box, "Delete for good")
        await until(lambda: len(screen.conversation.transcript) == 0)
        await until(lambda: screen.window.windowTitle().startswith("New conversation"))
        assert [item.title for item in await screen.engine.store.list_conversations()] == [""]

    on_screen(work, *turns("one", "two"))


def test_the_version_before_is_shown_then(on_screen):
    async def work(screen):
        await screen.say("a")
        await run(screen, "Regenerate")
        answer(await ask_to_delete(screen), "Delete for good")
        await until(lambda: screen.answers() == ["one"])
        assert "Previous version" not in commands(screen)

    on_screen(work, *turns("one", "two"))


def test_a_conversation_that_is_left_is_asked_about_no_more(on_screen):
    async def work(screen):
        await screen.say("a")
        first = screen.conversation
        await ask_to_delete(screen)
        screen.window.sidebar.new_requested.emit()
        await until(lambda: screen.conversation is not first)
        assert question(screen) is None

    on_screen(work, *turns("one"))


def test_a_conversation_can_be_left_while_a_message_is_deleted_or_a_version_is_loaded(on_screen):
    async def leave(screen):
        conversation = screen.conversation
        screen.window.sidebar.new_requested.emit()
        assert screen.conversation is not conversation
        await screen.idle()
        assert screen.banners.keys == []
        return conversation

    async def work(screen):
        await screen.say("a")
        await run(screen, "Regenerate")
        commands(screen)["Previous version"].run()
        first = await leave(screen)
        screen.desk.library.open(first.id)
        await until(lambda: screen.answers() == ["one"])
        answer(await ask_to_delete(screen), "Delete for good")
        await leave(screen)
        screen.desk.library.open(first.id)
        await until(lambda: screen.answers() == ["two"])

    on_screen(work, *turns("one", "two"))


def test_files_can_be_undone_first_and_then_it_is_asked_again(on_screen, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()

    async def work(screen):
        await run_calls(screen, folder)
        assert (folder / "a.txt").read_text() == "one"
        answer(await ask_to_delete(screen, row=0), "Undo file changes first…")
        await until(lambda: dialog(screen) is not None)
        press(dialog(screen), "Undo")
        await until(lambda: question(screen) is not None)
        assert not (folder / "a.txt").exists()
        assert "Changes made by tools are not undone" in question(screen).accessibleDescription()
        answer(question(screen), "Delete for good")
        await until(lambda: len(session(screen).history) == 0)

    on_screen(work, Turn(write(1, "one")), *turns("done"))
