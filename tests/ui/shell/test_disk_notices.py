"""What the window says about its disk, and that it says so no longer than it is so."""

from PySide6.QtWidgets import QPushButton, QWidget

from desktop_agent.engine import session_opening
from desktop_agent.storage import database_thread
from desktop_agent.storage.guarded_database import NO_DAMAGE
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.storage.store import Store
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.frame.disks import fill, remount
from tests.ui.shell.test_drafts import composer, png
from ui.bridge import storage
from ui.shell.storage import DISK_BANNER_KEY
from ui.style.list_rows import RowRole


def banner_text(screen):
    return "\n".join(screen.words(screen.banners))


def test_a_read_only_folder_is_shown_and_used_as_soon_as_it_can_be(on_screen, small_disk, monkeypatch):
    monkeypatch.setattr(database_thread, "FIRST_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(session_opening, "POLL_SECONDS", 0.02)
    folder = small_disk / "data"

    async def work(screen):
        await screen.say("precious")

    async def check(screen):
        assert screen.engine.store.read_only is not None
        assert "cannot be written to" in banner_text(screen)
        await until(lambda: screen.conversation is not None)
        assert screen.banners.keys == [DISK_BANNER_KEY]
        assert screen.answers() == ["gold"]
        assert [record.title for record in await screen.engine.store.list_conversations()] == ["precious"]
        screen.write("half a thought")
        assert not screen.find(QWidget, "Send").isEnabled()
        await screen.desk._save_draft()
        assert screen.desk._lost_draft.record.text == "half a thought"
        assert screen.banners.keys == [DISK_BANNER_KEY]

        remount(small_disk, "rw")
        await until(lambda: screen.banners.keys == [])
        assert screen.engine.store.read_only is None
        await until(lambda: screen.conversation.held_by is None)
        await screen.idle()
        assert screen.editor.toPlainText() == "half a thought"
        screen.editor.clear()
        await screen.say("and on")
        assert screen.answers() == ["gold", "silver"]

    on_screen(work, Turn(ContentDelta("gold")), folder=folder)
    remount(small_disk, "ro")
    on_screen(check, Turn(ContentDelta("silver")), folder=folder, saved=True)


def test_a_draft_with_a_picture_is_saved_as_soon_as_there_is_room(on_screen, small_disk, monkeypatch):
    monkeypatch.setattr(database_thread, "FIRST_RETRY_SECONDS", 0.02)
    folder = small_disk / "data"

    async def work(screen):
        await screen.say("precious")
        ballast = small_disk / "ballast"
        fill(ballast)
        screen.write("look at this")
        composer(screen).attachments.add_pasted(png(), "red.png")
        await composer(screen).attachments.wait_until_ready()
        screen.window.page._drafts.save_soon()
        await until(lambda: screen.banners.keys == [DISK_BANNER_KEY])
        assert f"There is no room left on the disk of “{folder}”." in banner_text(screen)

        ballast.unlink()
        await until(lambda: screen.banners.keys == [])
        await screen.idle()
        draft = await screen.engine.store.load_draft(screen.conversation.id)
        assert (draft.text, [image.name for image in draft.images]) == ("look at this", ["red.png"])

    on_screen(work, Turn(ContentDelta("gold")), folder=folder)


def test_a_setting_is_saved_as_soon_as_there_is_room(on_screen, small_disk, monkeypatch):
    monkeypatch.setattr(database_thread, "FIRST_RETRY_SECONDS", 0.02)
    folder = small_disk / "data"

    async def work(screen):
        ballast = small_disk / "ballast"
        fill(ballast)
        settings = screen.desk._settings
        settings.change(settings.preferences.with_changes("appearance", theme="dark"))
        await until(lambda: screen.banners.keys == [DISK_BANNER_KEY])
        assert (await PreferencesFile(folder).load()).appearance.theme == "system"

        ballast.unlink()
        await until(lambda: screen.banners.keys == [])
        await screen.idle()
        assert (await PreferencesFile(folder).load()).appearance.theme == "dark"

    on_screen(work, folder=folder)


def test_a_new_conversation_in_a_read_only_folder_keeps_what_was_written(on_screen, small_disk):
    folder = small_disk / "data"

    async def work(_screen):
        pass

    async def check(screen):
        await until(lambda: screen.conversation is not None)
        screen.write("lost?")
        screen.press("Send")
        await screen.idle()
        assert screen.editor.toPlainText() == "lost?"
        assert "cannot be written to" in "\n".join(screen.words())

    on_screen(work, folder=folder)
    remount(small_disk, "ro")
    on_screen(check, folder=folder, saved=True)


def test_a_check_is_asked_for_in_the_settings_and_its_result_told(on_screen):
    async def work(screen):
        screen.action("Settings").trigger()
        dialog = await until(lambda: screen.desk._settings_presenter._dialog)
        await screen.idle()
        page = dialog.storage
        assert page._folder.text() == str(screen.engine.folder)
        button = next(button for button in page.findChildren(QPushButton) if button.text() == "Check now")
        button.click()
        await until(lambda: page._check_state.text == str(NO_DAMAGE))
        await screen.idle()
        assert button.isEnabled()
        assert screen.engine.store.integrity_checker.last() is not None
        assert page._last_check.text().startswith("Checked last: ")
        dialog.hide()

    on_screen(work)


def test_a_backup_is_written_and_restored_in_the_settings(on_screen, tmp_path):
    async def work(screen):
        await screen.say("precious")
        screen.action("Settings").trigger()
        dialog = await until(lambda: screen.desk._settings_presenter._dialog)
        page = dialog.storage
        await until(lambda: page._size.text().startswith("Conversations: 1, in the trash: 0, messages: 2, "))
        assert not page._restore.isVisibleTo(page)
        page._backup.click()
        await until(lambda: page._backups.count() == 1)
        assert page._backup_state.text.startswith("The backup is in “")
        assert page._backups.item(0).data(RowRole.SUBTITLE) == "Conversations: 1, messages: 2"
        full = tmp_path / "full"
        full.mkdir()
        (full / "mine").write_text("x")
        page._restore.click()
        page._dialog.fileSelected.emit(str(full))
        await until(lambda: "is not empty" in page._backup_state.text)
        new = tmp_path / "new"
        page._dialog.fileSelected.emit(str(new))
        await until(lambda: page._backup_state.text.startswith("Restored, as much as there was: conversations: 1,"))
        page._dialog.reject()
        store = await Store.open(new)
        assert [record.title for record in await store.list_conversations()] == ["precious"]
        await store.close()
        dialog.hide()

    on_screen(work, Turn(ContentDelta("gold")))


def test_a_check_is_a_command_and_its_result_told(on_screen):
    async def work(screen):
        screen.action("Check saved conversations").trigger()
        await until(lambda: str(NO_DAMAGE) in banner_text(screen))

    on_screen(work)


def test_it_is_checked_while_nobody_waits(on_screen, monkeypatch):
    monkeypatch.setattr(storage, "IDLE_MS", 1)

    async def work(screen):
        await until(lambda: screen.engine.store.integrity_checker.last() is not None)
        await screen.idle()
        assert screen.banners.keys == []

    on_screen(work)
