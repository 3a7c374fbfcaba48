"""Preferences, model prices, usage, and the available tools, for the screens."""

import asyncio
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.price_overrides import ModelPriceEntry
from desktop_agent.types.errors import Sentence
from desktop_agent.types.preferences import Preferences
from desktop_agent.types.providers import Price
from desktop_agent.types.spending import UsageGrouping, UsageReport
from desktop_agent.types.tool_calls import ToolClass
from ui.bridge.desktop.updates import UpdateChecks
from ui.bridge.event_loop import BackgroundTasks, in_background
from ui.bridge.library import ConversationLibrary
from ui.bridge.mcp.servers import McpServerSettings
from ui.bridge.model_servers import ModelServers
from ui.bridge.permissions import PermissionRules
from ui.bridge.storage import DiskMonitor


@dataclass(frozen=True, slots=True)
class AvailableTool:
    """A tool to choose. `name` is its name for the model. `changes`: it may change something.

    `identity` is what an allowance is bound to, so that a replaced tool is not allowed; empty while its server is off.
    """

    name: str
    description: str
    changes: bool
    identity: str


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """The tools of one MCP server; with an empty title, the built-in ones."""

    title: str
    tools: tuple[AvailableTool, ...]


class AvailableTools(QObject):
    """`found` answers `find` with ToolGroups."""

    found = Signal(object)

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks

    @in_background
    async def find(self, conversation_id: str | None) -> None:
        """Find the tools of a conversation, or of a folder."""
        workspace: str | None = None
        if conversation_id is not None:
            workspace = (await self._engine.record(conversation_id)).workspace
        folder = Path(workspace) if workspace else None
        servers = (self._of_server(server.id, server.title, folder) for server in self._engine.preferences.mcp.servers)
        self.found.emit((_built_in_tools(), *(group for group in servers if group.tools)))

    def _of_server(self, server_id: str, title: str, folder: Path | None) -> ToolGroup:
        identities = {tool.name: tool.identity for tool in self._engine.mcp.tools(folder)}
        tools = (
            AvailableTool(
                tool.full_name,
                tool.description,
                tool.tool_class is not ToolClass.READ_ONLY,
                identities.get(tool.full_name, ""),
            )
            for tool in self._engine.mcp.state(server_id, folder).tools
            if tool.is_enabled
        )
        return ToolGroup(title, tuple(tools))


def _built_in_tools() -> ToolGroup:
    """Return all built-in tools, those for files too, whichever folder a conversation has."""
    # Late: the tools are not needed before the person looks at them.
    from desktop_agent.tools.builtin_tools import builtin_tools
    from desktop_agent.tools.workspace import Workspace

    tools = builtin_tools(Workspace(Path(gettempdir()).resolve()), "all")
    # Identified by name: a mode is valid in every folder, and no MCP server has a tool of such a name.
    described = (
        AvailableTool(tool.name, tool.description, tool.tool_class is not ToolClass.READ_ONLY, tool.name)
        for tool in tools
    )
    return ToolGroup("", tuple(described))


class UsageReports(QObject):
    """What models used, and the budgets. The database is asked in its own thread."""

    loaded = Signal(object)
    """A UsageReport."""
    budgets_changed = Signal(object)
    """The BudgetStates of all budgets."""
    counted = Signal()
    """Usage was added."""
    exported = Signal(object)
    """A Sentence."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        engine.spending.on_change(self._on_counted)
        engine.on_preferences(lambda _: self.load_budgets())

    @in_background
    async def load(self, grouping: UsageGrouping, since: date | None) -> None:
        """Find what was used from this day on; `loaded` answers."""
        self.loaded.emit(await self._engine.spending.report(grouping, since))

    @in_background
    async def load_budgets(self) -> None:
        """Find how much of the budgets is used; `budgets_changed` answers."""
        self.budgets_changed.emit(await self._engine.spending.budgets())

    @in_background
    async def export(self, report: UsageReport, path: Path) -> None:
        """Write a report as CSV; `exported` answers."""
        # Imported late, because exports are rare.
        from desktop_agent.engine.exchange.export_paths import export_target
        from desktop_agent.exchange.usage_export import usage_as_csv
        from ui.bridge.storage import save_file

        target = await asyncio.to_thread(export_target, path, self._engine.folder)
        # With a byte order mark, by which spreadsheets recognise UTF-8.
        await save_file(target, usage_as_csv(report).encode("utf-8-sig"))
        values = {"name": path.name, "folder": str(path.parent)}
        self.exported.emit(Sentence("“{name}” was saved in {folder}.", values))

    def _on_counted(self) -> None:
        self.counted.emit()
        self.load_budgets()


ZOOM_STEP, MIN_ZOOM, MAX_ZOOM = 10, 50, 300


class Settings(QObject):
    """`changed` carries the preferences now in force."""

    changed = Signal(Preferences)
    prices_changed = Signal()

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self.rules = PermissionRules(engine, tasks, self)
        self.tools = AvailableTools(engine, tasks, self)
        self.usage = UsageReports(engine, tasks, self)
        self.updates = UpdateChecks(engine, tasks, self)
        self._pending_zoom: int | None = None
        """The chosen zoom, until it is applied."""
        engine.on_preferences(self.changed.emit)

    @property
    def preferences(self) -> Preferences:
        return self._engine.preferences

    def change(self, preferences: Preferences) -> None:
        """Save and use these preferences."""
        self._tasks.start(self._engine.change_preferences(preferences))

    def prices(self) -> tuple[ModelPriceEntry, ...]:
        """Return the known prices of the models of all servers in use."""
        return self._engine.prices.models()

    @in_background
    async def change_price(self, vendor: str, model: str, changes: Price | None) -> None:
        """Set or remove the person's own price of a model."""
        try:
            await self._engine.prices.change(vendor, model, changes)
        finally:
            # Also after a failure: the screen returns to what is in force.
            self.prices_changed.emit()

    def zoom(self, steps: int) -> None:
        """Zoom by steps; 0 is the normal size. Steps that come before the previous zoom is applied add up."""
        is_waiting = self._pending_zoom is not None
        current = self.preferences.appearance.zoom if self._pending_zoom is None else self._pending_zoom
        self._pending_zoom = 100 if steps == 0 else min(MAX_ZOOM, max(MIN_ZOOM, current + steps * ZOOM_STEP))
        if not is_waiting:
            self._tasks.start(self._apply_zoom())

    async def _apply_zoom(self) -> None:
        zoom, self._pending_zoom = self._pending_zoom, None
        await self._engine.change_preferences(self.preferences.with_changes("appearance", zoom=zoom))


class SettingsSources(NamedTuple):
    """What the pages of the settings show and change."""

    settings: Settings
    servers: ModelServers
    mcp_servers: McpServerSettings
    disk: DiskMonitor
    library: ConversationLibrary
    tasks: BackgroundTasks

    def conversation_id(self) -> str | None:
        """Return the id of the open conversation."""
        return None if self.library.current is None else self.library.current.id
