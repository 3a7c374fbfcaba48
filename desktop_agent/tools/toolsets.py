"""Which of the built-in tools a conversation gets."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from desktop_agent.tools.calculate import calculate
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.files.delete_file import delete_file
from desktop_agent.tools.files.edit_file import edit_file
from desktop_agent.tools.files.list_files import list_files
from desktop_agent.tools.files.move_file import move_file
from desktop_agent.tools.files.read_file import read_file
from desktop_agent.tools.files.view_image import view_image
from desktop_agent.tools.files.write_file import write_file
from desktop_agent.tools.searching.find_files import find_files
from desktop_agent.tools.searching.search_files import search_files
from desktop_agent.tools.todo.update_todos import update_todos
from desktop_agent.tools.tool import AnyTool
from desktop_agent.tools.web.fetch_page import fetch_page
from desktop_agent.tools.workspace import Workspace

ToolSelection = Literal["none", "read", "all"]


def _no_hosts() -> frozenset[str]:
    return frozenset()


def builtin_tools(
    workspace: Workspace | None,
    which: ToolSelection,
    own_folders: tuple[Path, ...] = (),
    private_hosts: Callable[[], frozenset[str]] = _no_hosts,
    is_checkout: Callable[[str, str], bool] = lambda _line, _workspace: False,
) -> tuple[AnyTool, ...]:
    """`none`: no tool. `read`: those that only read, with a workspace also its files. `all`: those that change too.

    `own_folders`: where this program keeps its data, which no command may read. `private_hosts` are those on this
    machine and in private networks that pages and commands may come to. `is_checkout` is as in `run_command`.
    """
    if which == "none":
        return ()
    anywhere = (calculate(), update_todos(), fetch_page(private_hosts))
    if workspace is None:
        return anywhere
    reading = (*anywhere, *_read_tools(workspace))
    return (*reading, *_change_tools(workspace, own_folders, private_hosts, is_checkout)) if which == "all" else reading


def _read_tools(workspace: Workspace) -> tuple[AnyTool, ...]:
    return (
        read_file(workspace),
        list_files(workspace),
        find_files(workspace),
        search_files(workspace),
        view_image(workspace),
    )


def _change_tools(
    workspace: Workspace,
    own_folders: tuple[Path, ...],
    private_hosts: Callable[[], frozenset[str]],
    is_checkout: Callable[[str, str], bool],
) -> tuple[AnyTool, ...]:
    files = (write_file(workspace), edit_file(workspace), move_file(workspace), delete_file(workspace))
    # Windows has no shell that the program can read the lines of.
    if os.name == "nt":
        return files
    return (*files, run_command(workspace, own_folders, private_hosts, is_checkout=is_checkout))
