"""Choose the built-in tools of a conversation; among them the to-do list."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.calculator import calculate
from desktop_agent.tools.commands.powershell_command import run_powershell
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.files.change_tools import delete_file, edit_file, move_file, write_file
from desktop_agent.tools.files.read_tools import list_files, read_file, view_image
from desktop_agent.tools.files.search_tools import find_files, search_files
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.tools.web.fetch_page import fetch_page
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Text
from desktop_agent.types.tool_calls import ToolClass

IS_WINDOWS = os.name == "nt"

MAX_ITEMS = 50
_CHECKBOXES = {"open": "[ ]", "started": "[~]", "done": "[x]"}


class TodoItem(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=300, description="What is to be done, in a few words.")
    state: Literal["open", "started", "done"] = "open"


class UpdateTodosInput(BaseModel):
    """The whole list."""

    model_config = ConfigDict(extra="forbid")

    items: list[TodoItem] = Field(max_length=MAX_ITEMS, description="All of the list, in order; it replaces the old.")


def update_todos() -> Tool[UpdateTodosInput]:
    """Make the tool. It keeps no state: the list is in the conversation."""

    async def run(params: UpdateTodosInput, _call: RunningCall) -> tuple[Text, ...]:
        return (Text(text=format_checklist(params.items)),)

    return Tool(
        name="update_todos",
        description=(
            "Keep a list of what is to be done in longer work. Each call gives the whole list anew; the person sees it."
        ),
        schema=ModelSchema(UpdateTodosInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
    )


def format_checklist(items: list[TodoItem]) -> str:
    """Format the list as Markdown, with the progress."""
    if not items:
        return "The list is empty."
    states = Counter(item.state for item in items)
    # A line end would begin another item.
    lines = [f"- {_CHECKBOXES[item.state]} {' '.join(item.text.split())}" for item in items]
    return "\n".join([f"{states['done']} of {len(items)} done.", "", *lines])


ToolSelection = Literal["none", "read", "all"]


def builtin_tools(
    workspace: Workspace | None,
    which: ToolSelection,
    own_folders: tuple[Path, ...] = (),
    private_hosts: Callable[[], frozenset[str]] = frozenset,
    is_checkout: Callable[[str, str], bool] = lambda _line, _workspace: False,
) -> tuple[AnyTool, ...]:
    """Return the built-in tools.

    `none`: no tool. `read`: those that only read, with a workspace also its files. `all`: those that change too.
    `own_folders`: where this program keeps its data, which no command may read. `private_hosts` are those on this
    machine and in private networks that pages and commands may reach. `is_checkout` is as in `run_command`.
    """
    if which == "none":
        return ()
    anywhere = (calculate(), update_todos(), fetch_page(private_hosts))
    if workspace is None:
        return anywhere
    readers = (read_file, list_files, find_files, search_files, view_image)
    reading = (*anywhere, *(reader(workspace) for reader in readers))
    if which == "read":
        return reading
    changing = (write_file(workspace), edit_file(workspace), move_file(workspace), delete_file(workspace))
    if IS_WINDOWS:
        return (*reading, *changing, run_powershell(workspace))
    return (*reading, *changing, run_command(workspace, own_folders, private_hosts, is_checkout=is_checkout))
