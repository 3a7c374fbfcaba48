"""Conversations that are never stored, and the page of storage."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QPushButton, QScrollArea

from desktop_agent.storage.backups.backup import write_backup
from desktop_agent.storage.store import DATABASE_NAME
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn
from tests.gallery import answers
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from ui.bridge.exchange import ExportResult
from ui.bridge.storage import DiskMonitor
from ui.settings.storage_form import StorageSettings
from ui.shell.storage import DiskBanner


async def unstored(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.3)
    desk.play(Turn(ContentDelta(answers.HALF)))
    desk.library.new(in_memory=True)
    desk.library.current.send(Message.user("Why is the sky blue?"))
    await desk.library._session.wait_idle()
    await asyncio.sleep(0.3)


@scene("unstored")
async def unstored_page(desk: Desk) -> None:
    await unstored(desk)


@scene("unstored-empty-conversation")
async def unstored_offer(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.3)
    desk.library.new()
    await asyncio.sleep(0.3)


@scene("unstored-closing")
async def unstored_closing(desk: Desk) -> None:
    await unstored(desk)
    buttons = desk.window.findChildren(QPushButton)
    name = QCoreApplication.translate("UnstoredBar", "Close this conversation")
    close = next(button for button in buttons if button.accessibleName() == name)
    close.click()
    await until(lambda: desk.window.unstored._question is not None)
    await asyncio.sleep(0.3)


async def storage_page(desk: Desk) -> StorageSettings:
    desk.begin()
    for is_automatic in (False, True):
        folder = desk.engine.folder
        await write_backup(desk.engine.store, folder, folder / "backups", is_automatic=is_automatic)
    copy = desk.engine.folder / f"{DATABASE_NAME}.before-version-7"
    await desk.engine.store.snapshot(copy)
    desk.settings.show().show_page("storage")
    page = desk.settings.show().storage
    await until(lambda: page._backups.count() == 2)
    page.offer_program(desk.engine.folder)
    page.show_done(
        Sentence("Compacted: {before} before, {after} now.", {"before": "120.4 MB", "after": "31.0 MB"}), went_well=True
    )
    await asyncio.sleep(0.3)
    return page


@scene("settings-storage-full")
async def storage_full(desk: Desk) -> None:
    await storage_page(desk)


@scene("settings-storage-copies")
async def storage_copies(desk: Desk) -> None:
    page = await storage_page(desk)
    bars = [
        area.verticalScrollBar() for area in desk.settings.show().findChildren(QScrollArea) if area.isAncestorOf(page)
    ]
    bars[0].setValue(bars[0].maximum())
    await asyncio.sleep(0.3)


@scene("deleted-but-kept")
async def deleted_but_kept(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.3)
    disk = DiskMonitor(desk.engine, desk.tasks, desk.window)
    DiskBanner(disk, desk.window.banners, desk.window)
    backups = [Path(f"/home/ada/Backups/2026-11-0{day} 08-00-00") for day in (1, 8)]
    disk.backups.deleted_but_kept.emit(backups, [], [Path("/media/ada/Stick/Backups")])
    desk.exchange._show_exported(
        ExportResult((Path("/home/ada/Downloads/Conversations/Boats.html"),) * 2, 2, ("A trip to Rome", "Trees"))
    )
    await asyncio.sleep(0.3)
