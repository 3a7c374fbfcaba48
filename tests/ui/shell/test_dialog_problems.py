"""What goes wrong behind a dialog is said in it: it may lie over what the window says."""

from PySide6.QtWidgets import QDialog

from desktop_agent.types.errors import StorageFailed
from tests.fakes.qt_loop import until


async def refuse(*_):
    raise StorageFailed("The disk is full.")


def texts_of(screen, dialog):
    return any("The disk is full." in words for words in screen.words(dialog))


def test_a_server_that_cannot_be_removed_is_told_in_the_settings(on_screen, monkeypatch):
    async def work(screen):
        screen.action("Providers and keys").trigger()
        dialog = await screen.wait_for(QDialog, "Settings")
        await screen.idle()
        with monkeypatch.context() as broken:
            broken.setattr(screen.engine, "change_preferences", refuse)
            screen.press("Remove server Scripted")
            screen.press("Really remove server Scripted")
            await until(lambda: texts_of(screen, dialog))
        screen.press("Remove server Scripted")
        screen.press("Really remove server Scripted")
        await until(lambda: not texts_of(screen, dialog))
        assert screen.find(QDialog, "Settings") is dialog

    on_screen(work)


def test_what_was_said_in_the_settings_is_not_said_at_their_next_opening(on_screen, monkeypatch):
    async def work(screen):
        screen.action("Settings").trigger()
        dialog = await screen.wait_for(QDialog, "Settings")
        monkeypatch.setattr(screen.engine, "change_preferences", refuse)
        screen.desk.servers.remove("scripted")
        await until(lambda: texts_of(screen, dialog))
        screen.press("Close")
        screen.action("Settings").trigger()
        await screen.idle()
        assert dialog.isVisible()
        assert not texts_of(screen, dialog)

    on_screen(work)


def test_what_cannot_go_for_good_is_told_in_the_trash(on_screen, monkeypatch):
    async def work(screen):
        record = await screen.engine.store.create_conversation(title="Old")
        await screen.engine.delete_conversation(record.id)
        screen.action("Trash").trigger()
        dialog = await screen.wait_for(QDialog, "Trash")
        with monkeypatch.context() as broken:
            broken.setattr(screen.engine.store, "purge_conversation", refuse)
            screen.desk.library.trash.purge(record.id)
            await until(lambda: texts_of(screen, dialog))
        screen.desk.library.trash.purge(record.id)
        await until(lambda: not texts_of(screen, dialog))

    on_screen(work)
