"""The page of storage over real files: backups by hand and by the program, copies, compacting."""

import asyncio
import sqlite3
import threading
from contextlib import closing

import pytest
from PySide6.QtCore import QProcess
from PySide6.QtWidgets import QListWidget, QPushButton

from desktop_agent.storage import compaction, write_behind
from desktop_agent.storage.backups import backup as backup_storage
from desktop_agent.storage.backups.backup import list_backups, restore_backup, write_backup
from desktop_agent.storage.migrations import MIGRATIONS, apply_migrations
from desktop_agent.storage.store import DATABASE_NAME, Store
from desktop_agent.types.errors import DiskFull, Sentence
from desktop_agent.types.preferences import StoragePreferences
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from ui.bridge import backups as backups_bridge
from ui.settings.storage_form import StorageSettings
from ui.style.server_fields import StatusLine
from ui.style.widgets import QuestionBox

HI = Turn(ContentDelta("Hi"))


async def page_of(screen):
    screen.action("Storage").trigger()
    return await until(lambda: screen.window.findChild(StorageSettings))


def button_of(page, name):
    return next(button for button in page.findChildren(QPushButton) if button.accessibleName() == name)


def press(page, name):
    assert button_of(page, name).isEnabled()
    button_of(page, name).click()


async def question(page):
    return await until(lambda: next(iter(page.findChildren(QuestionBox)), None))


async def prefer(screen, **values):
    preferences = screen.engine.preferences
    storage = StoragePreferences(**values)
    await screen.engine.change_preferences(preferences.model_copy(update={"storage": storage}))


def test_a_backup_is_deleted_and_the_database_is_compacted(on_screen):
    async def work(screen):
        await screen.say("One")
        page, sentences = await page_of(screen), []
        screen.desk._disk.backups.done.connect(lambda sentence, _: sentences.append(str(sentence)))
        press(page, "Back up now")
        await until(lambda: len(sentences) == 1)
        await until(lambda: page.findChild(QListWidget).count() == 1)
        press(page, "Delete backup…")
        (await question(page)).answer_with("")
        await until(lambda: not page.findChildren(QuestionBox))
        assert page.findChild(QListWidget).count() == 1
        press(page, "Delete backup…")
        (await question(page)).answer_with("delete")
        await until(lambda: len(sentences) == 2)
        await until(lambda: page.findChild(QListWidget).count() == 0)
        press(page, "Compact")
        await until(lambda: len(sentences) == 3)
        assert sentences[2].startswith("Compacted: ")

    on_screen(work, HI)


@pytest.mark.parametrize(("name", "cancel"), [("Back up now", "Cancel"), ("Compact", "Cancel compacting")])
def test_the_keyboard_is_on_the_button_again_when_the_work_ended_unless_it_was_moved(
    on_screen, monkeypatch, name, cancel
):
    async def work(screen):
        await screen.say("One")
        page = await page_of(screen)
        gate, real_backup, real_compact = asyncio.Event(), backups_bridge.write_backup, backups_bridge.compact

        async def held_backup(*args, **values):
            await gate.wait()
            return await real_backup(*args, **values)

        async def held_compact(*args, **values):
            await gate.wait()
            return await real_compact(*args, **values)

        monkeypatch.setattr(backups_bridge, "write_backup", held_backup)
        monkeypatch.setattr(backups_bridge, "compact", held_compact)
        for moves in (False, True):
            gate.clear()
            button_of(page, name).setFocus()
            press(page, name)
            await until(lambda: not button_of(page, name).isEnabled())
            assert page.window().focusWidget() is button_of(page, cancel)
            if moves:
                button_of(page, "Open folder").setFocus()
            gate.set()
            await until(lambda: button_of(page, name).isEnabled())
            expected = "Open folder" if moves else name
            assert page.window().focusWidget() is button_of(page, expected)

    on_screen(work, HI)


def test_the_keyboard_is_on_the_button_again_when_all_was_checked(on_screen):
    async def work(screen):
        await screen.say("One")
        page = await page_of(screen)
        check = button_of(page, "Check now")
        check.setFocus()
        press(page, "Check now")
        await until(lambda: not check.isEnabled())
        assert page.window().focusWidget() is not check
        await until(check.isEnabled)
        assert page.window().focusWidget() is check

    on_screen(work, HI)


def test_compacting_shows_that_it_goes_on_and_is_cancelled(on_screen, monkeypatch):
    def endless(db, _):
        db.execute("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n").fetchone()

    monkeypatch.setattr(compaction, "_compact_database", endless)

    async def work(screen):
        await screen.say("One")
        page = await page_of(screen)
        assert not button_of(page, "Cancel compacting").isVisible()
        press(page, "Compact")
        await until(lambda: button_of(page, "Cancel compacting").isVisible())
        (line,) = [line for line in page.findChildren(StatusLine) if "Compacting…" in screen.words(line)]
        assert line.isVisible()
        assert line.y() < button_of(page, "Back up now").parentWidget().y()
        assert not button_of(page, "Cancel").isVisible()
        press(page, "Cancel compacting")
        await until(lambda: "Cancelled. Everything is as it was." in screen.words(line))
        assert not button_of(page, "Cancel compacting").isVisible()
        await screen.idle()

    on_screen(work, HI)


def test_the_program_backs_up_by_itself_where_it_is_told_to(on_screen, tmp_path):
    async def work(screen):
        await screen.say("One")
        backups = screen.desk._disk.backups
        await prefer(screen, backups="off")
        await backups.write_if_due()
        assert await list_backups(backups.folder) == ()
        await prefer(screen, backup_folder=str(tmp_path / "elsewhere"))
        await backups.write_if_due()
        await backups.write_if_due()
        (backup,) = await list_backups(tmp_path / "elsewhere")
        assert backup.is_automatic

    on_screen(work, HI)


@pytest.mark.parametrize("name", ["Back up now", "Compact"])
def test_what_is_asked_for_waits_for_an_automatic_backup_and_says_so(on_screen, monkeypatch, name):
    async def work(screen):
        await screen.say("One")
        page, backups = await page_of(screen), screen.desk._disk.backups
        reached, may_write, real = asyncio.Event(), asyncio.Event(), backups_bridge.write_backup

        async def write_late(*args, is_automatic=False):
            if is_automatic:
                reached.set()
                await may_write.wait()
            return await real(*args, is_automatic=is_automatic)

        monkeypatch.setattr(backups_bridge, "write_backup", write_late)
        sentences = []
        backups.done.connect(lambda sentence, _: sentences.append(str(sentence)))
        automatic = asyncio.ensure_future(backups.write_if_due())
        await reached.wait()
        waits = "An automatic backup is being written. This begins by itself when it is done."
        for cancel in (True, False):
            press(page, name)
            (line,) = await until(
                lambda: [line for line in page.findChildren(StatusLine) if waits in screen.words(line)]
            )
            assert line.isVisible()
            assert not button_of(page, name).isEnabled()
            if cancel:
                press(page, "Cancel compacting" if name == "Compact" else "Cancel")
                await until(lambda: sentences)
                assert sentences == ["Cancelled. Everything is as it was."]
                assert not automatic.done()
        may_write.set()
        await until(lambda: len(sentences) == 2)
        assert sentences[1].startswith("Compacted: " if name == "Compact" else "The backup is in ")
        assert waits not in screen.words(line)
        await automatic
        assert sum(backup.is_automatic for backup in await list_backups(backups.folder)) == 1
        await screen.idle()

    on_screen(work, HI)


def test_an_automatic_backup_that_fails_is_said_once(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        backups, sentences = screen.desk._disk.backups, []
        backups.noticed.connect(lambda sentence: sentences.append(str(sentence)))

        async def refuse(*_, **__):
            raise DiskFull("There is no room.", "Free some space.")

        with monkeypatch.context() as full:
            full.setattr(backups_bridge, "write_backup", refuse)
            await backups.write_if_due()
            await backups.write_if_due()
        assert sentences == ["The automatic backup was not written: There is no room. Free some space."]
        await prefer(screen, backup_folder="here")
        await backups.write_if_due()
        assert len(sentences) == 1
        await prefer(screen)
        await backups.write_if_due()
        assert len(await list_backups(backups.folder)) == 1

    on_screen(work, HI)


def test_a_backup_that_is_written_while_an_answer_streams_has_what_has_come_of_it(on_screen, tmp_path, monkeypatch):
    # Nothing is written by itself in time.
    monkeypatch.setattr(write_behind, "FLUSH_INTERVAL", 3600)
    first, wait = Wait(asyncio.Event(), asyncio.Event()), Wait(asyncio.Event(), asyncio.Event())

    async def work(screen):
        screen.write("Tides")
        screen.press("Send")
        await first.reached.wait()
        await screen.engine.write_all()
        first.until.set()
        await wait.reached.wait()
        id_, backups, results = screen.conversation.id, screen.desk._disk.backups, []
        backups.done.connect(lambda _, went_well: results.append(went_well))
        backups.back_up()
        await until(lambda: results == [True])
        assert screen.conversation.working
        (backup,) = await list_backups(backups.folder)
        original_counts, restored_counts = await restore_backup(backup.folder, tmp_path / "again")
        assert original_counts == restored_counts
        store = await Store.open(tmp_path / "again")
        loaded = await store.load(id_)
        assert [message.text for message in loaded.messages] == ["Tides"]
        assert "half an answer" in "".join(row.event.text for row in loaded.journal if hasattr(row.event, "text"))
        await store.close()
        wait.until.set()
        await until(lambda: screen.answers() == ["half an answer, and the rest"])
        await screen.idle()

    on_screen(work, Turn(ContentDelta("half"), first, ContentDelta(" an answer"), wait, ContentDelta(", and the rest")))


def test_cancelling_a_backup_leaves_no_half_file(on_screen, monkeypatch):
    is_sharing, may_share = threading.Event(), threading.Event()
    share = backup_storage._share

    def slow(source, target):
        is_sharing.set()
        may_share.wait(30)
        share(source, target)

    monkeypatch.setattr(backup_storage, "_share", slow)

    async def work(screen):
        await screen.say("One")
        (screen.engine.folder / "preferences.json").write_text("{}")
        page, folder = await page_of(screen), screen.desk._disk.backups.folder
        press(page, "Back up now")
        await until(is_sharing.is_set)
        assert len(list(folder.glob("*/*"))) > 0
        press(page, "Cancel")
        may_share.set()
        await until(lambda: "Cancelled. Everything is as it was." in screen.words(page))
        assert list(folder.rglob("*")) == []
        await screen.idle()

    on_screen(work, HI)


def test_backups_that_have_what_was_deleted_for_good_are_offered_for_deletion(on_screen):
    async def work(screen):
        await screen.say("One")
        backups, id_ = screen.desk._disk.backups, screen.conversation.id
        backups.back_up()
        await screen.idle()
        screen.action("Delete this conversation").trigger()
        await until(lambda: screen.conversation.id != id_)
        await screen.idle()
        screen.desk.library.trash.purge(id_)
        button = await screen.wait_for(QPushButton, "Delete them too")
        assert "still have what was deleted for good: 1." in " ".join(screen.words(screen.banners))
        button.click()
        await screen.idle()
        assert await list_backups(backups.folder) == ()

    on_screen(work, HI)


def test_backups_in_folders_of_before_are_looked_at_and_folders_that_are_gone_are_named(on_screen, tmp_path):
    async def purge(screen):
        await screen.say("One")
        id_ = screen.conversation.id
        screen.action("Delete this conversation").trigger()
        await until(lambda: screen.conversation.id != id_)
        await screen.idle()
        screen.desk.library.trash.purge(id_)

    async def work(screen):
        engine, existing, missing = screen.engine, tmp_path / "there", tmp_path / "gone"
        await screen.say("One")
        await engine.write_all()
        for folder in (existing, missing):
            await write_backup(engine.store, engine.folder, folder)
        missing.rename(tmp_path / "away")
        await purge(screen)
        button = await screen.wait_for(QPushButton, "Delete them too")
        words = " ".join(screen.words(screen.banners))
        assert "still have what was deleted for good: 1. Backups were written into folders" in words
        assert f"“{missing}”" in words
        button.click()
        await screen.idle()
        assert await list_backups(existing) == ()
        await purge(screen)
        (await screen.wait_for(QPushButton, "These folders are gone")).click()
        assert "Delete them too" not in screen.words(screen.banners)
        await screen.idle()
        await purge(screen)
        await screen.idle()
        assert "what was deleted for good" not in " ".join(screen.words(screen.banners))

    on_screen(work, HI, HI, HI, HI)


def test_damaged_files_that_were_kept_are_offered_for_deletion_with_a_conversation(on_screen):
    async def work(screen):
        await screen.say("One")
        id_, database = screen.conversation.id, screen.engine.folder / DATABASE_NAME
        damaged = database.with_name(f"{DATABASE_NAME}.damaged-20260101-101112")
        replaced = database.with_name(f"{DATABASE_NAME}.replaced-20260101-101112")
        damaged.write_bytes(b"what a rescue has set aside")
        damaged.with_name(f"{damaged.name}-wal").write_bytes(b"its log")
        screen.action("Delete this conversation").trigger()
        await until(lambda: screen.conversation.id != id_)
        await screen.idle()
        await screen.engine.store.snapshot(replaced)
        screen.desk.library.trash.purge(id_)
        button = await screen.wait_for(QPushButton, "Delete them too")
        words = " ".join(screen.words(screen.banners))
        assert "still have what was deleted for good: 1. Damaged files that may have it too: 1." in words
        button.click()
        await screen.idle()
        assert [path.name for path in screen.engine.folder.iterdir() if "20260101" in path.name] == []

    on_screen(work, HI)


@pytest.fixture
def migrated(tmp_path):
    """Return a data folder whose database was upgraded."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / DATABASE_NAME, isolation_level=None)) as connection:
        apply_migrations(connection, MIGRATIONS[:-1])
        connection.execute("PRAGMA application_id = 3004")
    return folder


def test_what_was_restored_can_be_opened_after_compacting(on_screen, tmp_path):
    async def work(screen):
        page = await page_of(screen)
        page.offer_program(tmp_path)
        page.show_done(Sentence("Restored."), True)
        press(page, "Compact")
        assert page._is_compacting
        await until(lambda: not page._is_compacting)
        primary = [button.text() for button in page.findChildren(QPushButton) if button.property("kind") == "primary"]
        assert primary == ["Open the restored folder"]

    on_screen(work)


def test_a_copy_made_before_an_upgrade_is_opened_in_a_new_folder(on_screen, migrated, tmp_path, monkeypatch):
    async def work(screen):
        page, started = await page_of(screen), []
        await until(lambda: page._copies.isVisibleTo(page))
        assert any("Written by version 0.3.4" in word for word in screen.words(page._copies))
        (copy,) = migrated.glob("*.before-version-*")
        page._disk.backups.open_copy(copy, tmp_path / "again")
        await until(lambda: page._new_folder is not None and not page._is_busy)
        store = await Store.open(tmp_path / "again")
        await store.close()
        primary = [button.text() for button in page.findChildren(QPushButton) if button.property("kind") == "primary"]
        assert primary == ["Open the restored folder"]
        monkeypatch.setattr(QProcess, "startDetached", lambda *command: started.append(command))
        press(page, "Open the restored folder")
        assert started[0][1][-2:] == ["--data-dir", str(tmp_path / "again")]
        press(page, "Delete this copy")
        (await question(page)).answer_with("")
        await until(lambda: not page.findChildren(QuestionBox))
        assert copy.exists()
        press(page, "Delete this copy")
        (await question(page)).answer_with("delete")
        await until(lambda: not copy.exists() and not page._copies.isVisibleTo(page))

    on_screen(work, folder=migrated)
