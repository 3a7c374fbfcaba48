"""Which tools there are to choose from, for the screens: the built-in ones, and those of servers that are known."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.tool_calls import ToolClass
from ui.bridge.tasks import BackgroundTasks


@dataclass(frozen=True, slots=True)
class AvailableTool:
    """`name` is how a model calls it. `changes`: it may change something.

    `identity` is what an allowance is for, so that a tool that becomes another one is not allowed; empty while the
    tool's server does not run.
    """

    name: str
    description: str
    changes: bool
    identity: str


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """The tools of one MCP server; without a title, those that are built in."""

    title: str
    tools: tuple[AvailableTool, ...]


class AvailableTools(QObject):
    """`found` answers `find` with ToolGroups."""

    found = Signal(object)

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks

    def find(self, conversation_id: str | None) -> None:
        """Those that a conversation has, or would have with a folder."""
        self._tasks.start(self._find(conversation_id))

    async def _find(self, conversation_id: str | None) -> None:
        place: str | None = None
        if conversation_id is not None:
            place = (await self._engine.record(conversation_id)).workspace
        folder = Path(place) if place else None
        servers = (self._of_server(each.id, each.title, folder) for each in self._engine.preferences.mcp.servers)
        self.found.emit((_built_in_tools(), *(group for group in servers if group.tools)))

    def _of_server(self, server_id: str, title: str, folder: Path | None) -> ToolGroup:
        offered = {each.name: each.identity for each in self._engine.mcp.tools(folder)}
        tools = (
            AvailableTool(
                each.full_name,
                each.description,
                each.tool_class is not ToolClass.READ_ONLY,
                offered.get(each.full_name, ""),
            )
            for each in self._engine.mcp.state(server_id, folder).tools
            if each.is_enabled
        )
        return ToolGroup(title, tuple(tools))


def _built_in_tools() -> ToolGroup:
    """All of them: those of files too, whichever folder a conversation has."""
    # Late: nothing of the tools is needed before somebody looks at them.
    from desktop_agent.tools.toolsets import builtin_tools
    from desktop_agent.tools.workspace import Workspace

    tools = builtin_tools(Workspace(Path(gettempdir())), "all")
    # By name: a mode holds in every folder, and no server has a tool of such a name.
    described = (
        AvailableTool(each.name, each.description, each.tool_class is not ToolClass.READ_ONLY, each.name)
        for each in tools
    )
    return ToolGroup("", tuple(described))
