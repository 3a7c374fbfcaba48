"""Which of the built-in tools a conversation gets."""

from typing import Literal

from desktop_agent.tools.calculate import calculate
from desktop_agent.tools.files.list_files import list_files
from desktop_agent.tools.files.read_file import read_file
from desktop_agent.tools.files.write_file import write_file
from desktop_agent.tools.tool import AnyTool
from desktop_agent.tools.workspace import Workspace

Which = Literal["none", "read", "all"]


def builtin_tools(workspace: Workspace | None, which: Which) -> tuple[AnyTool, ...]:
    """`none`: no tool. `read`: the calculator, and with a workspace those that read it. `all`: writing too."""
    if which == "none":
        return ()
    if workspace is None:
        return (calculate(),)
    reading: tuple[AnyTool, ...] = (calculate(), read_file(workspace), list_files(workspace))
    return (*reading, write_file(workspace)) if which == "all" else reading
