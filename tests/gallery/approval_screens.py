"""The approval dialog in front of the window it belongs to."""

import asyncio

from desktop_agent.providers.scripted import Turn
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.vocabulary.blocks import ToolUse
from tests.gallery import answers
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from tests.gallery.tools import ProjectTools


async def ask(desk: Desk, *calls: ToolUse) -> None:
    """The model asks for these, and the dialog has settled."""
    tools = ProjectTools(desk.folder / "project")
    desk.engine._tools_for = lambda _: ToolRegistry(tools.all())
    desk.play(Turn(*calls))
    session = await desk.converse("Make the import faster.", workspace=True, title="Refactor the import job")
    await until(lambda: session.approvals.open_approvals)
    await until(lambda: desk.window.approvals._made is not None)
    await asyncio.sleep(0.8)


def writing(number: int, path: str, content: str) -> ToolUse:
    return ToolUse(id=f"call-{number}", name="write_file", input={"path": path, "content": content})


@scene("approval-new-file")
async def new_file(desk: Desk) -> None:
    await ask(desk, writing(1, "jobs/batches.py", answers.NEW_FILE))


@scene("approval-changed-file")
async def changed_file(desk: Desk) -> None:
    await ask(desk, writing(1, "jobs/import.py", answers.NEW_FILE))


@scene("approval-several")
async def several(desk: Desk) -> None:
    await ask(
        desk,
        writing(1, "jobs/import.py", answers.NEW_FILE),
        writing(2, "README.md", "# Jobs\n\nRun `make import`.\n"),
        ToolUse(id="call-3", name="send_report", input={"to": "team@example.org", "subject": "Import", "lines": [1]}),
    )


@scene("approval-invalid-edit")
async def invalid_edit(desk: Desk) -> None:
    await ask(desk, writing(1, "jobs/import.py", "print('hello')\n"))
    dialog = desk.window.approvals._dialog
    dialog._arguments.toggle()
    dialog._arguments._editor.setPlainText('{\n  "path": "jobs/import.py",\n  "content": 12,\n')


@scene("approval-arguments")
async def arguments(desk: Desk) -> None:
    given = {"to": "team@example.org", "subject": "The import is faster now", "lines": ["one pass", "batches"]}
    await ask(desk, ToolUse(id="call-1", name="send_report", input=given))


@scene("approval-narrow", 560, 760)
async def narrow(desk: Desk) -> None:
    await ask(desk, writing(1, "jobs/import.py", answers.NEW_FILE))
