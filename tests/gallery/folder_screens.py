"""Folders, pins, the archive, tags and marked conversations in the sidebar, and their dialogs."""

import asyncio
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QMenu, QPlainTextEdit

from desktop_agent.types.folders import FolderColour
from desktop_agent.types.messages import Message
from tests.gallery.conversation_screens import said
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from ui.sidebar.folder_dialogs import FolderDialog

INSTRUCTIONS = """The boat is a Hallberg-Rassy 31 of 2011, with a Volvo Penta D1-20.

Use metric units. Where a repair can wait until winter, say so."""
FOLDERS = (
    ("Boat", FolderColour.BLUE, ("Engine", "Harbours and charts of the whole north-west coast")),
    ("House", FolderColour.ORANGE, ()),
    ("Reading", FolderColour.PURPLE, ()),
    ("Taxes", FolderColour.GREY, ()),
    ("Work", FolderColour.GREEN, ("Import job", "Interviews")),
)


async def organise(desk: Desk) -> dict[str, str]:
    """Make the folders, and put some conversations into them; return the ids of the folders by their names."""
    store = desk.engine.store
    ids: dict[str, str] = {}
    for name, colour, inside in FOLDERS:
        folder = await store.folders.create(name, colour)
        ids[name] = folder.id
        for inner in inside:
            ids[inner] = (await store.folders.create(inner, FolderColour.TEAL, folder.id)).id
    known = {row.title: row.id for row in await store.list_conversations()}
    boat = [known["Names for a sailing boat"], known["Plan a week in Lisbon"], known["Explain the borrow checker"]]
    await store.placements.change(boat, folder=ids["Boat"])
    await store.placements.change(boat[:1], pinned=True)
    await store.placements.change([known["Refactor the import job"]], pinned=True)
    await store.placements.change([known["What changed in the tax law"]], archived=True)
    await store.placements.change([known["Invoice template as HTML"]], add_tags=["later", "urgent"])
    await store.placements.change([known["Why is the sky blue?"]], add_tags=["physics"])
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    desk.window.window_layout.show_list()
    await refreshed(desk)
    return ids


async def refreshed(desk: Desk) -> None:
    desk.library.refresh()
    await asyncio.sleep(0.4)


@scene("folders")
async def folders(desk: Desk) -> None:
    await organise(desk)


@scene("folders-narrow", 400, 760)
async def folders_narrow(desk: Desk) -> None:
    await organise(desk)


@scene("folders-inside")
async def folders_inside(desk: Desk) -> None:
    ids = await organise(desk)
    desk.library.listing.open_folder(ids["Boat"])
    await asyncio.sleep(0.4)


@scene("folders-empty")
async def folders_empty(desk: Desk) -> None:
    ids = await organise(desk)
    desk.library.listing.open_folder(ids["Reading"])
    await asyncio.sleep(0.4)


@scene("folders-many")
async def folders_many(desk: Desk) -> None:
    await organise(desk)
    for number in range(200):
        await desk.engine.store.folders.create(f"Folder {number:03}", list(FolderColour)[number % 8])
    await refreshed(desk)


@scene("folders-marked-menu")
async def folders_marked(desk: Desk) -> None:
    await organise(desk)
    view = desk.window.sidebar.view
    view.setFocus()
    for row in (9, 10, 12):
        place = view.visualRect(view.rows.index(row)).center()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, place)
    view.customContextMenuRequested.emit(place)
    await until(lambda: any(menu.isVisible() for menu in view.findChildren(QMenu)))


@scene("folders-new")
async def folders_new(desk: Desk) -> None:
    await organise(desk)
    desk.organising.create_folder()
    (dialog,) = desk.window.findChildren(FolderDialog)
    QTest.keyClicks(dialog.findChild(QLineEdit), "Garden")


async def open_editor(desk: Desk) -> FolderDialog:
    ids = await organise(desk)
    store = desk.engine.store
    boat = next(folder for folder in await store.folders.all() if folder.id == ids["Boat"])
    await store.folders.change(replace(boat, instructions=INSTRUCTIONS))
    await refreshed(desk)
    desk.window.sidebar.view.folder_action_requested.emit("edit", ids["Boat"])
    (dialog,) = desk.window.findChildren(FolderDialog)
    return dialog


@scene("folders-edit")
async def folders_edit(desk: Desk) -> None:
    await open_editor(desk)


@scene("folders-edit-narrow", 360, 760)
async def folders_edit_narrow(desk: Desk) -> None:
    await open_editor(desk)


@scene("folders-edit-too-long")
async def folders_edit_too_long(desk: Desk) -> None:
    dialog = await open_editor(desk)
    dialog.findChild(QPlainTextEdit).setPlainText("Be brief. " * 20_001)


@scene("folders-move")
async def folders_move(desk: Desk) -> None:
    await organise(desk)
    desk.organising.act("move")
    await asyncio.sleep(0.4)


@scene("folders-tags")
async def folders_tags(desk: Desk) -> None:
    await organise(desk)
    desk.organising.act("tag")
    await asyncio.sleep(0.4)


@scene("folders-delete")
async def folders_delete(desk: Desk) -> None:
    ids = await organise(desk)
    desk.window.sidebar.view.folder_action_requested.emit("delete", ids["Boat"])
    await asyncio.sleep(0.4)


@scene("folders-merged")
async def folders_merged(desk: Desk) -> None:
    await organise(desk)
    store = desk.engine.store
    known = {row.title: row.id for row in await store.list_conversations()}
    for title, question in (("Names for a sailing boat", "Ten names?"), ("Plan a week in Lisbon", "Where to stay?")):
        await store.commit(known[title], Message.user(question), said("Let me think of some."))
    desk.organising.act_on("merge", [known["Names for a sailing boat"], known["Plan a week in Lisbon"]])
    await asyncio.sleep(0.8)
