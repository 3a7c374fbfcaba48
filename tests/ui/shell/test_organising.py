"""Folders, pins, the archive, tags, copies and marked conversations in the whole window."""

import asyncio
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QLineEdit,
    QListView,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QWidget,
)

from desktop_agent.storage.folder_rows import FolderRows
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DiskFull
from desktop_agent.types.folders import MAX_FOLDER_INSTRUCTIONS, FolderColour
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import held, until
from tests.fakes.scripted_provider import Turn
from tests.ui.pixels import colors_of
from ui.shell.commands.menu_bar import MenuBar
from ui.sidebar.conversation_rows import ConversationView
from ui.sidebar.folder_dialogs import FolderPicker, TagDialog
from ui.sidebar.organising import OrganisePresenter
from ui.style.list_rows import RowRole
from ui.style.theme import LIGHT, ThemeSource

INSTRUCTIONS = "Instructions for every conversation in this folder"
MOVE = Qt.DropAction.MoveAction


@pytest.fixture
def menus(qt_messages):
    """Allow menus: without a screen nothing grabs the keyboard for them."""
    qt_messages.expect("grabbing the keyboard")


def rows(screen):
    return screen.find(QListView, "Conversations")


def titles(screen):
    model = rows(screen).model()
    return [model.index(row).data() for row in range(model.rowCount())]


def index_of(screen, title):
    return rows(screen).model().index(titles(screen).index(title))


def click(screen, title, modifiers=Qt.KeyboardModifier.NoModifier):
    place = rows(screen).visualRect(index_of(screen, title)).center()
    QTest.mouseClick(rows(screen).viewport(), Qt.MouseButton.LeftButton, modifiers, place)


def selected(screen):
    return [index.data() for index in rows(screen).selectedIndexes()]


def open_menu(screen, title):
    rows(screen).customContextMenuRequested.emit(rows(screen).visualRect(index_of(screen, title)).center())
    return next(menu for menu in rows(screen).findChildren(QMenu) if menu.isVisible())


def choose(screen, title, words):
    """Choose an entry of the menu of a row."""
    menu = open_menu(screen, title)
    action = next(action for action in menu.actions() if action.text() == words)
    menu.close()
    action.trigger()


def undo(screen):
    screen.find(QPushButton, "Undo").click()


async def store_conversations(screen, *names):
    ids = []
    for name in names:
        record = await screen.engine.store.create_conversation(title=name)
        await screen.engine.store.commit(record.id, Message.user(name))
        ids.append(record.id)
    return ids


async def wait_for_list(screen, *expected):
    screen.desk.library.refresh()
    await until(lambda: titles(screen) == list(expected))


def test_without_folders_the_list_is_as_ever(on_screen):
    async def work(screen):
        await store_conversations(screen, "a", "b")
        await wait_for_list(screen, "Today", "b", "a")
        assert not [button for button in screen.window.findChildren(QToolButton) if "Go up" in button.accessibleName()]

    on_screen(work)


def test_one_without_a_title_is_called_as_in_the_list_wherever_it_is_shown(on_screen):
    async def work(screen):
        (id_,) = await store_conversations(screen, "")
        await wait_for_list(screen, "Today", "New conversation")
        screen.desk.library.open(id_)
        await until(lambda: screen.conversation.id == id_ and not screen.conversation.is_empty)
        await screen.idle()
        assert screen.window.windowTitle() == "New conversation — Desktop Agent"

    on_screen(work)


def test_a_dialog_that_opens_late_is_for_what_it_was_asked_for(on_screen):
    async def work(screen):
        one, two = await store_conversations(screen, "a", "b")
        store, presenter = screen.engine.store, screen.window.findChild(OrganisePresenter)
        folder = await store.folders.create("Work", FolderColour.GREY, None)
        await wait_for_list(screen, "Work", "Today", "b", "a")
        are_read, may_return = held(store.placements, "tags")
        presenter.act_on("tag", [one])
        await are_read.wait()
        presenter.act_on("move", [two])
        picker = await until(lambda: screen.find(QDialog, "Move to a folder"))
        may_return.set()
        tags = await until(lambda: screen.find(QDialog, "Tags"))
        tags.chosen.emit(["red"], [])
        picker.chosen.emit(folder.id)
        await screen.idle()
        placements = {
            place.conversation_id: (place.tags, place.folder) for place in await store.placements.of([one, two])
        }
        assert placements == {one: (("red",), None), two: ((), folder.id)}
        tags.close()
        picker.close()

    on_screen(work)


def test_a_folder_that_is_moved_late_is_the_one_that_was_chosen(on_screen):
    async def work(screen):
        (one,) = await store_conversations(screen, "a")
        store, presenter = screen.engine.store, screen.window.findChild(OrganisePresenter)
        folders = [await store.folders.create(name, FolderColour.GREY, None) for name in ("Home", "Work")]
        await wait_for_list(screen, "Home", "Work", "Today", "a")
        are_read, may_return = held(store.folders, "all")
        presenter.act_on("move", [one])
        await are_read.wait()
        rows(screen).folder_action_requested.emit("move", folders[0].id)
        await asyncio.sleep(0)
        may_return.set()
        pickers = await until(
            lambda: dialogs if len(dialogs := screen.window.findChildren(FolderPicker)) == 2 else None
        )
        for picker in pickers:
            picker.chosen.emit(folders[1].id)
            picker.close()
        await screen.idle()
        assert (await store.placements.of([one]))[0].folder == folders[1].id
        assert {folder.name: folder.parent for folder in await store.folders.all()} == {
            "Home": folders[1].id,
            "Work": None,
        }

    on_screen(work)


def test_an_empty_folder_says_that_it_is_one(on_screen):
    async def work(screen):
        (id_,) = await store_conversations(screen, "Boats")
        folder = await screen.engine.store.folders.create("House", FolderColour.BLUE)
        words = "No conversations in here yet"
        screen.desk.library.listing.open_folder(folder.id)
        await until(lambda: words in screen.words(rows(screen)))
        assert rows(screen).accessibleDescription() == words
        await screen.engine.store.placements.change([id_], folder=folder.id)
        screen.desk.library.refresh()
        await until(lambda: titles(screen))
        assert words not in screen.words(rows(screen))
        assert rows(screen).accessibleDescription() == ""

    on_screen(work)


def test_a_list_without_conversations_shows_the_keyboard_at_its_words(on_screen):
    async def work(screen):
        view, words = rows(screen), "No conversations yet"
        await until(lambda: words in screen.words(view))
        await until(screen.desk.window.isActiveWindow)
        view.setFocus()
        assert colors_of(view.grab().toImage())[LIGHT.accent] > 100
        screen.desk.window.page.composer.setFocus()
        assert not colors_of(view.grab().toImage())[LIGHT.accent]

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_a_folder_is_made_opened_left_and_deleted(on_screen):
    async def work(screen):
        (one, _) = await store_conversations(screen, "a", "b")
        await wait_for_list(screen, "Today", "b", "a")
        screen.action("New folder…").trigger()
        dialog = await until(lambda: screen.find(QDialog, "New folder"))
        QTest.keyClicks(screen.find(QLineEdit, "Name of the folder"), "Work")
        screen.find(QToolButton, "Teal").click()
        QTest.keyClicks(screen.find(QPlainTextEdit, INSTRUCTIONS), "Be brief.")
        screen.find(QPushButton, "Create").click()
        await until(lambda: titles(screen) == ["Work", "Today", "b", "a"])
        assert index_of(screen, "Work").data(RowRole.TINT) == FolderColour.TEAL
        assert index_of(screen, "Work").data(Qt.ItemDataRole.AccessibleTextRole) == "Folder: Work"
        (folder,) = await screen.engine.store.folders.all()
        assert folder.instructions == "Be brief."
        choose(screen, "a", "Move to a folder…")
        dialog = await until(lambda: screen.find(QDialog, "Move to a folder"))
        QTest.keyClicks(dialog.findChild(QLineEdit), "wor")
        QTest.keyClick(dialog.findChild(QLineEdit), Qt.Key.Key_Return)
        await until(lambda: titles(screen) == ["Work", "Today", "b"])
        click(screen, "Work")
        await until(lambda: titles(screen) == ["Today", "a"])
        assert screen.find(QToolButton, "Work. Go up to: All conversations").isVisible()
        QTest.keyClick(rows(screen), Qt.Key.Key_Backspace)
        await until(lambda: titles(screen) == ["Work", "Today", "b"])
        undo(screen)
        await until(lambda: titles(screen) == ["Work", "Today", "b", "a"])
        await screen.engine.store.placements.change([one], folder=(await screen.engine.store.folders.all())[0].id)
        choose(screen, "Work", "Delete folder…")
        await until(lambda: screen.find(QPushButton, "Delete folder"))
        sentence = "Its conversations and folders move up one level. Its instructions are deleted."
        assert sentence in screen.words(screen.find(QDialog, "Delete the folder “Work”?"))
        screen.find(QPushButton, "Delete folder").click()
        await until(lambda: titles(screen) == ["Today", "b", "a"])

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_a_changed_folder_is_changed_back_by_the_notice(on_screen):
    async def work(screen):
        store = screen.engine.store
        folder = await store.folders.create("Work", FolderColour.RED, None, "Be brief.")
        screen.desk.library.refresh()
        await wait_for_list(screen, "Work")
        choose(screen, "Work", "Name, colour and instructions…")
        dialog = await until(lambda: screen.find(QDialog, "Name, colour and instructions"))
        editor = screen.find(QPlainTextEdit, INSTRUCTIONS)
        assert editor.toPlainText() == "Be brief."
        # In lines: one word of 200,000 letters takes seconds to be wrapped.
        editor.setPlainText(("x" * 99 + "\n") * (MAX_FOLDER_INSTRUCTIONS // 100 + 1))
        screen.find(QPushButton, "Save").click()
        assert dialog.isVisible()
        assert "The instructions have more than 200,000 characters. Shorten them." in editor.accessibleDescription()
        editor.setPlainText("Be long.")
        QTest.keyClick(screen.find(QLineEdit, "Name of the folder"), Qt.Key.Key_Return)
        changed = replace(folder, instructions="Be long.")
        await until(lambda: "Changed the folder “Work”." in screen.words(screen.banners))
        assert await store.folders.all() == (changed,)
        undo(screen)
        await screen.idle()
        assert await store.folders.all() == (folder,)

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_a_folder_that_the_disk_refuses_is_there_to_be_saved_again(on_screen, monkeypatch):
    async def refuse(*_values):
        raise DiskFull("The disk is full.")

    async def save_twice(screen, button, name):
        editor = await until(lambda: screen.find(QPlainTextEdit, INSTRUCTIONS))
        with monkeypatch.context() as patch:
            patch.setattr(FolderRows, "create", refuse)
            patch.setattr(FolderRows, "change", refuse)
            screen.find(QLineEdit, "Name of the folder").setText(name)
            editor.setPlainText(f"Of {name}.")
            screen.find(QPushButton, button).click()
            await until(lambda: "The disk is full." in screen.words(screen.banners))
            await screen.idle()
        assert screen.find(QLineEdit, "Name of the folder").text() == name
        screen.find(QPushButton, button).click()
        await until(lambda: titles(screen)[:1] == [name])
        (folder,) = await screen.engine.store.folders.all()
        assert (folder.name, folder.instructions) == (name, f"Of {name}.")
        screen.banners.clear()

    async def work(screen):
        screen.action("New folder…").trigger()
        await save_twice(screen, "Create", "Work")
        choose(screen, "Work", "Name, colour and instructions…")
        await save_twice(screen, "Save", "House")

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_pins_and_the_archive_are_undone_by_the_notice(on_screen):
    async def work(screen):
        await store_conversations(screen, "a", "b", "c")
        await wait_for_list(screen, "Today", "c", "b", "a")
        choose(screen, "a", "Pin")
        await until(lambda: titles(screen) == ["Pinned", "a", "Today", "c", "b"])
        assert "pinned" in index_of(screen, "a").data(Qt.ItemDataRole.AccessibleTextRole)
        undo(screen)
        await until(lambda: titles(screen) == ["Today", "c", "b", "a"])
        choose(screen, "b", "Archive")
        await until(lambda: titles(screen) == ["Archive", "Today", "c", "a"])
        click(screen, "Archive")
        await until(lambda: titles(screen) == ["Today", "b"])
        choose(screen, "b", "Bring back from the archive")
        await until(lambda: titles(screen) == [])
        screen.find(QToolButton, "Archive. Go up to: All conversations").click()
        await until(lambda: titles(screen) == ["Today", "c", "b", "a"])

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_menus_show_one_of_pin_and_unpin(on_screen):
    async def work(screen):
        await store_conversations(screen, "a", "b")
        await wait_for_list(screen, "Today", "b", "a")
        choose(screen, "a", "Pin")
        await until(lambda: titles(screen) == ["Pinned", "a", "Today", "b"])
        bar = await until(lambda: screen.window.findChild(MenuBar))
        in_bar = next(menu for menu in bar.findChildren(QMenu) if menu.accessibleName() == "Conversation")

        def texts_of_entries():
            """Return the entries of the row's menu and of the menu bar that pin or archive."""
            texts = []
            for open_entries in (lambda: open_menu(screen, "a"), lambda: in_bar.popup(QPoint()) or in_bar):
                menu = open_entries()
                entries = [action.text() for action in menu.actions() if action.isVisible()]
                texts += [text for text in entries if "pin" in text.lower() or "rchive" in text]
                menu.close()
            return texts

        choose(screen, "a", "Select several")
        archive = ["Archive", "Archive this conversation"]
        assert texts_of_entries() == ["Unpin", archive[0], "Unpin this conversation", archive[1]]
        choose(screen, "b", "Select several")
        assert texts_of_entries() == ["Pin", archive[0], "Pin this conversation", archive[1]]
        # Hidden entries would have no keys.
        assert all(action.isVisible() for action in in_bar.actions())

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_marked_conversations_are_handled_together(on_screen):
    async def work(screen):
        await store_conversations(screen, "a", "b", "c", "d")
        await wait_for_list(screen, "Today", "d", "c", "b", "a")
        click(screen, "c", Qt.KeyboardModifier.ControlModifier)
        click(screen, "a", Qt.KeyboardModifier.ShiftModifier)
        assert selected(screen) == ["c", "b", "a"]
        QTest.keyClick(rows(screen), Qt.Key.Key_Escape)
        assert selected(screen) == []
        click(screen, "d", Qt.KeyboardModifier.ControlModifier)
        for _ in range(2):
            QTest.keyClick(rows(screen), Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
        assert selected(screen) == ["d", "c", "b"]
        QTest.keyClick(rows(screen), Qt.Key.Key_Delete)
        await until(lambda: titles(screen) == ["Today", "a"])
        undo(screen)
        await until(lambda: titles(screen) == ["Today", "d", "c", "b", "a"])
        click(screen, "b", Qt.KeyboardModifier.ControlModifier)
        click(screen, "a", Qt.KeyboardModifier.ControlModifier)
        choose(screen, "a", "Merge into one")
        await until(lambda: "a + b" in titles(screen))
        await until(lambda: screen.conversation.title == "a + b")

    on_screen(work)


def test_what_was_clicked_is_marked_with_the_next_before_it_is_open(on_screen):
    async def work(screen):
        await store_conversations(screen, "a", "b", "c")
        await wait_for_list(screen, "Today", "c", "b", "a")
        click(screen, "c")
        await until(lambda: screen.conversation.title == "c")
        click(screen, "a")
        click(screen, "b", Qt.KeyboardModifier.ControlModifier)
        assert screen.conversation.title == "c"
        assert selected(screen) == ["b", "a"]
        await until(lambda: screen.conversation.title == "a")
        assert selected(screen) == ["b", "a"]

    on_screen(work)


def test_a_row_is_dragged_while_none_is_selected(on_screen, monkeypatch):
    dragged = []

    def begin(view, _actions):
        dragged.append(view.rows.id_at(view.currentIndex().row()))

    monkeypatch.setattr(ConversationView, "startDrag", begin)

    async def work(screen):
        await store_conversations(screen, "a", "b")
        await wait_for_list(screen, "Today", "b", "a")
        view = rows(screen)
        assert selected(screen) == []
        index = index_of(screen, "a")
        place = view.visualRect(index).center()
        QTest.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
        for step in (2, 60):
            position = QPointF(place + QPoint(0, step))
            global_position = QPointF(view.viewport().mapToGlobal(position.toPoint()))
            left_button, no_keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
            event = QMouseEvent(
                QEvent.Type.MouseMove, position, global_position, Qt.MouseButton.NoButton, left_button, no_keys
            )
            QApplication.sendEvent(view.viewport(), event)
        QTest.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=place + QPoint(0, 60))
        assert dragged == [view.rows.id_at(index.row())]

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_several_are_marked_in_their_menus(on_screen):
    async def work(screen):
        await store_conversations(screen, "a", "b", "c")
        await wait_for_list(screen, "Today", "c", "b", "a")
        shown_id = screen.conversation.id
        choose(screen, "c", "Select several")
        click(screen, "a")
        assert selected(screen) == ["c", "a"]
        choose(screen, "b", "Select several")
        choose(screen, "c", "Deselect")
        assert selected(screen) == ["b", "a"]
        rows(screen).setCurrentIndex(index_of(screen, "c"))
        QTest.keyClick(rows(screen), Qt.Key.Key_Return)
        assert selected(screen) == ["c", "b", "a"]
        click(screen, "c")
        assert screen.conversation.id == shown_id
        choose(screen, "a", "Archive")
        await until(lambda: titles(screen) == ["Archive", "Today", "c"])
        choose(screen, "c", "Select several")
        click(screen, "c")
        click(screen, "c")
        await until(lambda: screen.conversation.title == "c")
        choose(screen, "c", "Select several")
        QTest.keyClick(rows(screen), Qt.Key.Key_Escape)
        assert not rows(screen).marks.has_begun
        choose(screen, "c", "Select several")
        assert rows(screen).marks.has_begun
        await screen.engine.store.delete_conversation(screen.conversation.id)
        await wait_for_list(screen, "Archive")
        assert not rows(screen).marks.has_begun

    on_screen(work)


def test_what_is_left_of_several_comes_back_from_the_trash(on_screen):
    async def work(screen):
        store = screen.engine.store
        ids = await store_conversations(screen, "a", "b", "c")
        await wait_for_list(screen, "Today", "c", "b", "a")
        organiser = screen.window.findChild(OrganisePresenter)._organiser
        organiser.trash(ids)
        await until(lambda: titles(screen) == [])
        await store.purge_conversation(ids[0])
        undo(screen)
        await until(lambda: titles(screen) == ["Today", "c", "b"])
        organiser.trash(ids)
        await until(lambda: titles(screen) == [])
        undo(screen)
        await until(lambda: titles(screen) == ["Today", "c", "b"])

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_a_command_is_for_the_one_that_is_marked(on_screen):
    async def work(screen):
        ids = await store_conversations(screen, "a", "b")
        await wait_for_list(screen, "Today", "b", "a")
        screen.desk.library.open(ids[1])
        await until(lambda: screen.conversation.id == ids[1])
        choose(screen, "a", "Select several")
        assert selected(screen) == ["a"]
        screen.window.findChild(OrganisePresenter).act("archive")
        await until(lambda: titles(screen) == ["Archive", "Today", "b"])

    on_screen(work)


def test_nothing_is_said_of_a_move_to_where_it_is(on_screen):
    async def work(screen):
        one, second = await store_conversations(screen, "a", "b")
        folder = await screen.engine.store.folders.create("Work", FolderColour.RED, None)
        await screen.engine.store.placements.change([one], folder=folder.id)
        organiser, sentences = screen.window.findChild(OrganisePresenter)._organiser, []
        organiser.done.connect(lambda sentence, _: sentences.append(str(sentence)))
        organiser.move([one], folder.id)
        organiser.move([one, second], folder.id)
        await until(lambda: sentences)
        assert sentences == ["Moved “b”."]
        organiser.pin([one], pinned=True)
        await until(lambda: sentences[1:])
        organiser.pin([one, second], pinned=False)
        await until(lambda: sentences[2:])
        organiser.archive([one, second], archived=True)
        await until(lambda: sentences[3:])
        assert sentences[1:] == ["Pinned “a”.", "Unpinned “a”.", "Archived conversations: 2."]

    on_screen(work)


@pytest.mark.usefixtures("menus")
def test_tags_are_given_in_a_dialog_and_shown_in_the_row(on_screen):
    async def work(screen):
        await store_conversations(screen, "a")
        await wait_for_list(screen, "Today", "a")
        choose(screen, "a", "Tags…")
        dialog = await until(lambda: screen.find(QDialog, "Tags"))
        field = dialog.findChild(QLineEdit)
        for name in ("later", "urgent"):
            QTest.keyClicks(field, name)
            QTest.keyClick(field, Qt.Key.Key_Return)
        screen.find(QPushButton, "Done").click()
        await until(lambda: str(index_of(screen, "a").data(RowRole.DETAIL)).startswith("later +1 · "))
        assert "tags: later, urgent" in index_of(screen, "a").data(Qt.ItemDataRole.AccessibleTextRole)

    on_screen(work)


def test_enter_after_a_typed_tag_is_done_and_takes_nothing_away(qtbot):
    themes, window = ThemeSource(), QWidget()
    qtbot.addWidget(window)
    dialog = TagDialog(themes, ("later", "urgent"), ((),), window)
    dialog.show()
    chosen = []
    dialog.chosen.connect(lambda *tags: chosen.append(tags))
    field = dialog.findChild(QLineEdit)
    for name in ("new", "urg"):
        QTest.keyClicks(field, name)
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert field.text() == ""
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert (chosen, dialog.isVisible()) == ([(["new", "urgent"], [])], False)


def test_enter_without_any_tag_waits_for_a_name(qtbot):
    themes, window = ThemeSource(), QWidget()
    qtbot.addWidget(window)
    dialog = TagDialog(themes, (), ((),), window)
    dialog.show()
    field = dialog.findChild(QLineEdit)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert dialog.isVisible()
    QTest.keyClicks(field, "new")
    QTest.keyClick(field, Qt.Key.Key_Return)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert not dialog.isVisible()


def test_rows_are_dropped_on_a_folder_and_on_the_line_above(on_screen):
    async def work(screen):
        await store_conversations(screen, "a", "b")
        store = screen.engine.store
        await store.folders.create("Outer")
        await store.folders.create("Sub")
        await wait_for_list(screen, "Outer", "Sub", "Today", "b", "a")
        for title in ("b", "Sub"):
            data = rows(screen).model().mimeData([index_of(screen, title)])
            drop(rows(screen).viewport(), data, rows(screen).visualRect(index_of(screen, "Outer")).center())
            await until(lambda title=title: title not in titles(screen))
        click(screen, "Outer")
        await until(lambda: titles(screen) == ["Sub", "Today", "b"])
        data = rows(screen).model().mimeData([index_of(screen, "b")])
        header = screen.find(QToolButton, "Outer. Go up to: All conversations").parentWidget()
        drop(header, data, QPoint(5, 5))
        await until(lambda: titles(screen) == ["Sub"])

    on_screen(work)


def drop(widget, data, place):
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(widget, QDragEnterEvent(place, MOVE, data, buttons, keys))
    QApplication.sendEvent(widget, QDropEvent(QPointF(place), MOVE, data, buttons, keys))


@pytest.mark.usefixtures("menus")
def test_a_copy_is_made_and_a_new_conversation_belongs_to_the_folder_that_is_shown(on_screen):
    async def work(screen):
        await store_conversations(screen, "a")
        folder = await screen.engine.store.folders.create("Work", instructions="Be brief.")
        await wait_for_list(screen, "Work", "Today", "a")
        choose(screen, "a", "Duplicate")
        await until(lambda: screen.conversation.title == "a (copy)")
        click(screen, "Work")
        await until(lambda: titles(screen) == [])
        screen.desk.library.new()
        id_ = screen.desk.library.current.id
        await screen.say("new")
        assert screen.provider.requests[0].config.system_prompt == "Be brief."
        await until(lambda: titles(screen) == ["Today", "new"])
        (place,) = await screen.engine.store.placements.of([id_])
        assert place.folder == folder.id

    on_screen(work, Turn(ContentDelta("Hi")))


def test_one_that_is_empty_by_now_is_not_moved_where_it_is_opened(on_screen):
    async def work(screen):
        store = screen.engine.store
        (id_,) = await store_conversations(screen, "a")
        await store.branches.delete(id_, (await store.load(id_)).messages[0].id, head_message_id=None)
        await store.folders.create("Work")
        await wait_for_list(screen, "Work", "Today", "a")
        click(screen, "Work")
        await until(lambda: titles(screen) == [])
        screen.desk.library.open(id_)
        await until(lambda: screen.conversation.id == id_)
        screen.desk.library.refresh()
        await screen.idle()
        (place,) = await store.placements.of([id_])
        assert place.folder is None

    on_screen(work)


def test_one_that_the_disk_keeps_out_of_the_trash_can_be_gone_on_with(on_screen, monkeypatch, menus):
    async def work(screen):
        await screen.say("Hello")
        id_ = screen.conversation.id

        async def refuse(_self, _id):
            raise DiskFull("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(Store, "delete_conversation", refuse)
            await wait_for_list(screen, "Today", "Hello")
            choose(screen, "Hello", "Delete")
            await until(lambda: "The disk is full." in screen.words(screen.banners))
            await screen.idle()
        await screen.say("again")
        assert (screen.conversation.id, len(screen.answers())) == (id_, 2)

    on_screen(work, Turn(ContentDelta("Hi")), Turn(ContentDelta("Ho")))


def test_many_folders_do_not_push_the_conversations_away(on_screen):
    async def work(screen):
        await store_conversations(screen, "a")
        names = [f"Folder {number:02}" for number in range(20)]
        for name in names:
            await screen.engine.store.folders.create(name)
        await wait_for_list(screen, *names[:12], "All folders (20)", "Today", "a")
        rows(screen).setCurrentIndex(index_of(screen, "All folders (20)"))
        QTest.keyClick(rows(screen), Qt.Key.Key_Return)
        assert titles(screen) == [*names, "Today", "a"]
        assert rows(screen).currentIndex().data() == names[12]

    on_screen(work)


def accessible_text(screen, title):
    return index_of(screen, title).data(Qt.ItemDataRole.AccessibleTextRole)


def test_a_folder_shows_that_a_conversation_in_it_works_or_waits(on_screen):
    async def work(screen):
        store, sidebar = screen.engine.store, screen.window.sidebar
        one, second, _ = await store_conversations(screen, "a", "b", "c")
        outer = await store.folders.create("Outer")
        inner = await store.folders.create("Inner", parent=outer.id)
        await store.placements.change([one], folder=inner.id)
        await store.placements.change([second], folder=outer.id)
        await wait_for_list(screen, "Outer", "Today", "c")
        sidebar.set_badge(one, "working")
        await until(lambda: index_of(screen, "Outer").data(RowRole.BADGE) == "working")
        assert accessible_text(screen, "Outer") == "Folder: Outer, working"
        sidebar.set_badge(second, "attention")
        await until(lambda: index_of(screen, "Outer").data(RowRole.BADGE) == "attention")
        assert accessible_text(screen, "Outer") == "Folder: Outer, waits for you"
        click(screen, "Outer")
        await until(lambda: titles(screen) == ["Inner", "Today", "b"])
        await until(lambda: index_of(screen, "Inner").data(RowRole.BADGE) == "working")
        sidebar.set_badge(one, "unread")
        assert accessible_text(screen, "Inner") == "Folder: Inner"

    on_screen(work)


def test_the_row_of_the_other_folders_shows_what_goes_on_in_them(on_screen):
    async def work(screen):
        store = screen.engine.store
        one, _ = await store_conversations(screen, "a", "b")
        folders = [await store.folders.create(f"Folder {number:02}") for number in range(20)]
        await store.placements.change([one], folder=folders[-1].id)
        screen.window.sidebar.set_badge(one, "working")
        screen.desk.library.refresh()
        await until(lambda: "All folders (20)" in titles(screen))
        await until(lambda: index_of(screen, "All folders (20)").data(RowRole.BADGE) == "working")
        assert accessible_text(screen, "All folders (20)") == "All folders (20), working"
        assert not index_of(screen, "Folder 00").data(RowRole.BADGE)

    on_screen(work)
