"""Undoing what calls changed: at their cards, and all of it since a message."""

import asyncio

from PySide6.QtCore import QCoreApplication, Qt

from desktop_agent.conversation.items import NoticeItem, ToolCallItem, UserItem
from desktop_agent.engine.session import Session
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn, Wait
from tests.gallery.answers import OLD_FILE
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from tests.gallery.spoken import is_read
from tests.gallery.tools import ProjectTools

NEW_FILE = OLD_FILE.replace("for row in rows:", "for number, row in enumerate(rows):")


def asks(number: int, name: str, **arguments: object) -> ToolUse:
    return ToolUse(id=f"call-{number}", name=name, input=dict(arguments))


def writes(number: int, path: str, content: str) -> ToolUse:
    return asks(number, "write_file", path=path, content=content)


async def run_calls(desk: Desk, *calls: ToolUse, wait: bool = False) -> Session:
    """Run the calls without approval in a new conversation."""
    tools = ToolRegistry(ProjectTools(desk.folder / "project").all())
    desk.engine._tools_for = lambda _: tools
    (desk.folder / "project/notes.md").write_text("# Notes\n\nThe import is slow.\n")
    (desk.folder / "project/old.csv").write_text("1;2\n")
    last_deltas = (
        (ContentDelta("And now the tests."), Wait(asyncio.Event())) if wait else (ContentDelta("All of it is done."),)
    )
    desk.play(Turn(ContentDelta("I change the import and say so in the notes."), *calls), Turn(*last_deltas))
    session = desk.begin(workspace=True)
    session.change_record(title="Make the import faster", title_is_automatic=False)
    for tool in ("write_file", "delete_file", "send_report"):
        session.permission_policy.add(Rule(id=tool, effect=RuleEffect.ALLOW, tool=tool))
    await asyncio.sleep(0.1)
    desk.library.current.send(Message.user("Make the import faster, and note what you did."))
    if wait:
        await until(lambda: "And now the tests." in str(list(session.transcript)[-1]))
    else:
        await session.wait_idle()
    await asyncio.sleep(0.2)
    return session


CALLS = (
    writes(1, "jobs/import.py", NEW_FILE),
    writes(2, "notes.md", "# Notes\n\nThe import is fast.\n"),
    writes(3, "jobs/batches.py", "SIZE = 500\n"),
    asks(4, "delete_file", path="old.csv"),
    asks(5, "send_report", to="team@example.org", subject="Import", lines=["faster"]),
)


@scene("undo-cards")
async def undo_cards(desk: Desk) -> None:
    session = await run_calls(desk, *CALLS[:3])
    second = [item for item in session.transcript if isinstance(item, ToolCallItem)][1]
    desk.window.page.undo.undo_call(second.id)
    await until(lambda: second.is_undone)


@scene("undo-dialog")
async def undo_dialog(desk: Desk, *, wait: bool = False) -> None:
    session = await run_calls(desk, *CALLS, wait=wait)
    (desk.folder / "project/notes.md").write_text("# Notes\n\nThe import is fast. Thank you!\n")
    prompt = next(item for item in session.transcript if isinstance(item, UserItem))
    desk.window.page.undo.undo_since(prompt.id)
    await until(lambda: desk.window.page.undo._created_dialog is not None)
    await asyncio.sleep(0.3)


@scene("undo-dialog-conflict")
async def undo_dialog_conflict(desk: Desk) -> None:
    await undo_dialog(desk)
    files = desk.window.page.undo._created_dialog.files
    files.setCurrentItem(files.topLevelItem(2))


@scene("undo-dialog-ticked")
async def undo_dialog_ticked(desk: Desk) -> None:
    await undo_dialog(desk)
    files = desk.window.page.undo._created_dialog.files
    files.topLevelItem(2).setCheckState(2, Qt.CheckState.Checked)


@scene("undo-while-working")
async def undo_while_working(desk: Desk) -> None:
    await undo_dialog(desk, wait=True)


@scene("undo-banner", height=1100)
async def undo_banner(desk: Desk) -> None:
    """So high that all cards are drawn: of the others there are no buttons."""
    await undo_dialog(desk)
    page = desk.window.page
    page.undo._created_dialog._press()
    await until(lambda: page.undo._created_dialog is None)
    for template in (
        "Undone: {files}. {words}",
        "Not put back, because they were changed since: {paths}",
        "Changes were undone. The model is told before it goes on.",
    ):
        words = QCoreApplication.translate("Sentence", template).partition("{")[0]
        await until(lambda words=words: is_read(desk.window, words))


@scene("redo-dialog")
async def redo_dialog(desk: Desk) -> None:
    session = await run_calls(desk, *CALLS[:4])
    prompt = next(item for item in session.transcript if isinstance(item, UserItem))
    page = desk.window.page
    page.undo.undo_since(prompt.id)
    await until(lambda: page.undo._created_dialog is not None)
    page.undo._created_dialog._press()
    await until(lambda: any(isinstance(item, NoticeItem) and item.can_be_redone for item in session.transcript))
    (desk.folder / "project/notes.md").write_text("# Notes\n\nI do it otherwise.\n")
    line = next(item for item in session.transcript if isinstance(item, NoticeItem) and item.can_be_redone)
    await asyncio.sleep(0.5)
    page.undo.redo(line.id)
    await until(lambda: page.undo._created_dialog is not None)
    await asyncio.sleep(0.3)
    files = page.undo._created_dialog.files
    files.setCurrentItem(files.topLevelItem(2))
    await asyncio.sleep(0.3)


@scene("redo-line")
async def redo_line(desk: Desk) -> None:
    await redo_dialog(desk)
    desk.window.page.undo._created_dialog.reject()
    await asyncio.sleep(0.3)
