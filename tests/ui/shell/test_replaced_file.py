"""Another file takes the place of the open database: the window goes on with it, and loses nothing of the old one."""

import sqlite3
from contextlib import closing

from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.types.errors import DatabaseReplaced
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.ui.shell.test_disk_notices import banner_text


def kept_copies(screen):
    return list(screen.engine.folder.glob(f"{DATABASE_NAME}.replaced-*"))


def holds(path, words):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT count(*) FROM messages WHERE body LIKE ?", (f"%{words}%",)).fetchone()[0] > 0


async def backed_up(screen):
    backup = screen.engine.folder / "backup"
    await screen.engine.store.snapshot(backup)
    return backup


def test_the_open_conversation_and_the_list_show_the_new_file_and_go_on(on_screen):
    async def work(screen):
        await screen.say("first")
        backup = await backed_up(screen)
        await screen.say("second")
        assert screen.answers() == ["gold", "silver"]
        path = screen.engine.folder / DATABASE_NAME
        backup.replace(path)

        screen.desk.library.refresh()
        await until(lambda: screen.answers() == ["gold"])
        await screen.idle()
        (copy,) = kept_copies(screen)
        assert copy.name in banner_text(screen)
        assert holds(copy, "silver")
        await screen.say("third")
        assert screen.answers() == ["gold", "bronze"]
        assert holds(path, "bronze")
        assert not holds(path, "silver")
        assert screen.engine.unsaved == ()

    on_screen(work, Turn(ContentDelta("gold")), Turn(ContentDelta("silver")), Turn(ContentDelta("bronze")))


def test_what_was_said_before_it_was_noticed_stays_unsaved_and_goes_into_no_file(on_screen):
    async def work(screen):
        await screen.say("first")
        backup = await backed_up(screen)
        path = screen.engine.folder / DATABASE_NAME
        backup.replace(path)
        screen.write("precious thought")
        screen.press("Send")
        await until(lambda: kept_copies(screen) and screen.engine.unsaved)
        await until(lambda: screen.answers() == ["gold"])
        await screen.idle()
        (unsaved,) = screen.engine.unsaved
        assert isinstance(unsaved.reason, DatabaseReplaced)
        assert "precious thought" in [message.text for message in unsaved.messages]
        assert not holds(path, "precious thought")
        assert await screen.engine.store.list_conversations()
        screen.engine._busy.clear()  # the test ends without the question

    on_screen(work, Turn(ContentDelta("gold")), Turn(ContentDelta("silver")))


def test_what_is_being_written_outlives_its_conversation(on_screen):
    async def work(screen):
        backup = await backed_up(screen)
        await screen.say("first")
        screen.write("half a thought")
        backup.replace(screen.engine.folder / DATABASE_NAME)
        screen.desk.library.refresh()
        await until(lambda: screen.conversation is not None and screen.conversation.is_empty)
        await until(lambda: screen.editor.toPlainText() == "half a thought")
        await screen.idle()
        assert screen.answers() == []
        assert await screen.engine.store.list_conversations() == ()
        screen.editor.clear()
        await screen.say("on")
        assert screen.answers() == ["silver"]

    on_screen(work, Turn(ContentDelta("gold")), Turn(ContentDelta("silver")))
