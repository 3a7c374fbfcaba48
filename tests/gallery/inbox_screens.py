"""The inbox of waiting approvals."""

import asyncio

from desktop_agent.engine.session import Session
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import ToolUse
from tests.fakes.scripted_provider import Turn
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from tests.gallery.tools import ProjectTools

ASKING = (
    ("Refactor the import job", ToolUse(id="1", name="run_command", input={"command": "make test"})),
    ("Invoice template as HTML", ToolUse(id="2", name="write_file", input={"path": "invoice.html", "content": "<p>"})),
    (
        "Translate the contract and list what is unusual in it, clause by clause, with the page numbers",
        ToolUse(id="3", name="fetch_page", input={"url": "https://example.org/a/long/address/of/a/page?of=the+court"}),
    ),
)


async def ask(desk: Desk) -> list[Session]:
    """Have a call wait in each of several conversations, with their dialogs closed."""
    registry = ToolRegistry(ProjectTools(desk.folder / "project").all())
    desk.engine._tools_for = lambda _: registry
    desk.play(*(Turn(use) for _, use in ASKING))
    sessions = []
    for title, _ in ASKING:
        session = await desk.converse("Go on", workspace=True, title=title)
        await until(lambda session=session: session.approvals.open_approvals)
        await until(desk.window.page.approvals._created_dialog.isVisible)
        desk.window.page.approvals._created_dialog.reject()
        sessions.append(session)
    desk.window.window_layout.show_list()
    desk.library.refresh()
    await asyncio.sleep(0.4)
    return sessions


@scene("inbox")
async def inbox(desk: Desk) -> None:
    await ask(desk)
    desk.window.inbox.show()
    await asyncio.sleep(0.3)


@scene("inbox-count")
async def count(desk: Desk) -> None:
    await ask(desk)


@scene("inbox-count-narrow", 400, 760)
async def count_narrow(desk: Desk) -> None:
    await ask(desk)


@scene("inbox-empty")
async def empty(desk: Desk) -> None:
    desk.begin()
    desk.window.inbox.show()
    await asyncio.sleep(0.3)
