"""The trash of the whole window, by keyboard alone."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QFrame, QListWidget, QPushButton

from desktop_agent.storage.store import Store
from desktop_agent.types.errors import WrongUse
from tests.fakes.qt_loop import until
from ui.bridge import conversation_listing as module


async def store_in_trash(screen, *titles):
    for title in titles:
        record = await screen.engine.store.create_conversation(title=title)
        await screen.engine.delete_conversation(record.id)


async def open_trash(screen, count):
    screen.action("Trash").trigger()
    await until(lambda: screen.find(QDialog, "Trash"))
    if count:
        await until(lambda: names(screen) and len(names(screen)) == count)
    return screen.find(QDialog, "Trash")


def rows(screen):
    return screen.find(QListWidget, "Deleted conversations")


def names(screen):
    row_list = rows(screen)
    return [row_list.item(row).text() for row in range(row_list.count())] if row_list else []


def test_a_deleted_conversation_comes_back(on_screen):
    async def work(screen):
        await store_in_trash(screen, "One", "Two")
        dialog = await open_trash(screen, 2)
        assert names(screen) == ["Two", "One"]
        accessible_text = rows(screen).item(0).data(Qt.ItemDataRole.AccessibleTextRole)
        assert accessible_text.startswith("Two, deleted ")
        assert "Deleted for good in" in accessible_text
        rows(screen).setFocus()
        QTest.keyClick(rows(screen), Qt.Key.Key_Down)
        QTest.keyClick(rows(screen), Qt.Key.Key_Return)
        await until(lambda: names(screen) == ["Two"])
        await until(lambda: screen.conversation.title == "One")
        assert [conversation.title for conversation in await screen.engine.store.list_conversations()] == ["One"]
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        assert not dialog.isVisible()

    on_screen(work)


def test_what_needs_a_choice_waits_for_one(on_screen):
    async def work(screen):
        await store_in_trash(screen, "One")
        await open_trash(screen, 1)
        rows(screen).clearSelection()
        assert not screen.find(QPushButton, "Restore").isEnabled()
        assert not screen.find(QPushButton, "Delete for good…").isEnabled()
        assert screen.find(QPushButton, "Empty trash…").isEnabled()
        rows(screen).setCurrentRow(0)
        rows(screen).item(0).setSelected(True)
        assert screen.find(QPushButton, "Restore").isEnabled()

    on_screen(work)


def test_one_goes_for_good_only_after_a_yes(on_screen):
    async def work(screen):
        await store_in_trash(screen, "One", "Two")
        dialog = await open_trash(screen, 2)
        rows(screen).setFocus()
        QTest.keyClick(rows(screen), Qt.Key.Key_Delete)
        assert any("Delete “Two” for good?" in words for words in screen.words(dialog))
        keep = screen.find(QPushButton, "Keep")
        await until(keep.hasFocus)
        QTest.keyClick(keep, Qt.Key.Key_Escape)
        assert dialog.isVisible()
        assert names(screen) == ["Two", "One"]
        QTest.keyClick(rows(screen), Qt.Key.Key_Delete)
        QTest.keyClick(screen.find(QPushButton, "Really delete for good"), Qt.Key.Key_Space)
        await until(lambda: names(screen) == ["One"])
        in_trash = await screen.engine.store.list_conversations(in_trash=True)
        assert [conversation.title for conversation in in_trash] == ["One"]
        assert screen.find(QFrame, "Really delete for good") is None
        assert rows(screen).currentRow() == 0

    on_screen(work)


def test_the_trash_is_emptied_and_the_disk_knows(on_screen, tmp_path):
    async def work(screen):
        await store_in_trash(screen, "One", "Two", "Three")
        dialog = await open_trash(screen, 3)
        screen.press("Empty trash…")
        assert any("all 3 conversations" in words for words in screen.words(dialog))
        screen.press("Really delete for good")
        await until(lambda: "The trash is empty." in screen.words(dialog))
        assert not screen.find(QPushButton, "Restore").isEnabled()
        screen.press("Close")
        assert not dialog.isVisible()
        await screen.idle()

    on_screen(work, folder=tmp_path / "data")

    async def check(screen):
        assert await screen.engine.store.list_conversations(in_trash=True) == ()

    on_screen(check, folder=tmp_path / "data")


def test_what_is_deleted_while_the_trash_is_open_appears_in_it(on_screen):
    async def work(screen):
        record = await screen.engine.store.create_conversation(title="Late")
        dialog = await open_trash(screen, 0)
        await until(lambda: "The trash is empty." in screen.words(dialog))
        screen.desk.library.delete(record.id)
        await until(lambda: names(screen) == ["Late"])

    on_screen(work)


def undo_is_offered(screen):
    return any(button.text() == "Undo" and button.isVisible() for button in screen.banners.findChildren(QPushButton))


def test_what_went_for_good_is_not_offered_back(on_screen):
    async def work(screen):
        record = await screen.engine.store.create_conversation(title="Gone")
        screen.desk.library.delete(record.id)
        await until(lambda: undo_is_offered(screen))
        screen.desk.library.trash.list()
        await screen.idle()
        assert undo_is_offered(screen)
        screen.desk.library.trash.purge(record.id)
        await screen.idle()
        assert not undo_is_offered(screen)

    on_screen(work)


def test_what_took_the_place_of_the_offer_stays(on_screen):
    async def work(screen):
        record = await screen.engine.store.create_conversation(title="Gone")
        screen.desk.library.delete(record.id)
        await until(lambda: undo_is_offered(screen))
        screen.banners.show_undo("The waiting message was removed.", print)
        screen.desk.library.restore(record.id)
        await screen.idle()
        assert "The waiting message was removed." in screen.words(screen.banners)

    on_screen(work)


async def test_only_what_is_in_the_trash_can_go_for_good(tmp_path):
    store = await Store.open(tmp_path)
    record = await store.create_conversation(title="Wanted")
    with pytest.raises(WrongUse, match="not in the trash"):
        await store.purge_conversation(record.id)
    assert [conversation.title for conversation in await store.list_conversations()] == ["Wanted"]
    await store.close()


def test_the_trash_is_read_on_at_the_end_of_what_is_shown(on_screen, monkeypatch):
    monkeypatch.setattr(module, "PAGE", 30)

    async def work(screen):
        await store_in_trash(screen, *map(str, range(40)))
        await open_trash(screen, 30)
        assert names(screen)[0] == "39"
        screen.press("Empty trash…")
        assert "Delete everything in the trash for good?" in "".join(screen.words(screen.find(QDialog, "Trash")))
        screen.press("Keep")
        bar = rows(screen).verticalScrollBar()
        bar.setValue(bar.maximum())
        await until(lambda: len(names(screen)) == 40)
        assert names(screen)[-1] == "0"
        screen.press("Empty trash…")
        assert "Delete all 40 conversations" in "".join(screen.words(screen.find(QDialog, "Trash")))

    on_screen(work)
