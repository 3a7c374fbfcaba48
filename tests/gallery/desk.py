"""The real window over a real engine in a folder of its own, with a model that plays a script."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from PySide6.QtWidgets import QApplication

from desktop_agent.conversation.picture_preparation import import_picture_async
from desktop_agent.engine.engine import Engine
from desktop_agent.engine.session import Session
from desktop_agent.storage.file_lock import FileLock
from desktop_agent.types.blocks import Image
from desktop_agent.types.errors import AgentError
from desktop_agent.types.messages import Message, now
from desktop_agent.types.providers import Capabilities, Endpoint, ModelInfo, Price
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.gallery.paintings import painting
from ui.bridge.event_loop import BackgroundTasks, FrameClock
from ui.bridge.exchange import Exchange
from ui.bridge.library import ConversationLibrary
from ui.bridge.mcp.servers import McpServerSettings
from ui.bridge.model_servers import ModelServers
from ui.bridge.organiser import Organiser
from ui.bridge.schedule.schedules import ScheduledPrompts
from ui.bridge.settings import Settings, SettingsSources
from ui.bridge.storage import DiskMonitor, PictureStore
from ui.shell.commands.actions import HelpPresenter, WindowActions
from ui.shell.commands.command_palette import PalettePresenter
from ui.shell.conversation_page import ConversationPage
from ui.shell.exchange import ExchangePresenter
from ui.shell.schedule.schedule_presenter import SchedulePresenter
from ui.shell.settings import SettingsPresenter
from ui.shell.side_windows.conversation_window import ConversationWindow
from ui.shell.window import MainWindow
from ui.sidebar.organising import OrganisePresenter
from ui.style.theme import ThemeSource

STUDIO = Endpoint(id="studio", title="Studio", base_url="http://127.0.0.1:9/v1", kind="custom")
LARGE = Capabilities(
    images=True,
    tools=True,
    reasoning=True,
    context_window=200_000,
    reasoning_modes=frozenset({"disabled", "effort", "adaptive", "between_tools"}),
    efforts=("low", "medium", "high", "max"),
    default_effort="high",
)
MODELS = (
    ModelInfo("aurora-large", "Aurora Large", LARGE, Price(input=3, output=15, cache_read=0.3)),
    ModelInfo("aurora-small", "Aurora Small", Capabilities(images=False, tools=True, context_window=32_000)),
    ModelInfo("qwen3-coder:30b", None, Capabilities(tools=True, context_window=262_144)),
)
PATIENCE = 60.0
AGE = "UPDATE conversations SET updated_at = ? WHERE id = ?"

TITLES = (
    ("Plan a week in Lisbon", 0),
    ("Why is the sky blue?", 0),
    ("Refactor the import job", 0),
    ("Invoice template as HTML", 1),
    ("Recipe for eight people, two of them vegan", 1),
    ("Explain the borrow checker", 3),
    ("قصيدة عن البحر", 4),
    ("会议纪要翻译", 5),
    ("Translate the contract and list what is unusual in it", 12),
    ("Names for a sailing boat", 40),
    ("What changed in the tax law", 420),
)


class Desk:
    """The window and everything behind it."""

    def __init__(self, themes: ThemeSource, engine: Engine, folder: Path) -> None:
        app = QApplication.instance()
        self.engine = engine
        self.folder = folder
        self.held: list[FileLock] = []
        self.side_windows: list[ConversationWindow] = []
        self.tasks = BackgroundTasks(self._on_problem)
        self.clock = FrameClock(app)
        self.pictures = PictureStore(engine.store)
        self.library = ConversationLibrary(engine, self.clock, self.tasks, self.pictures, app)
        self.servers = ModelServers(engine, self.tasks, app)
        self.window = MainWindow(themes)
        page = ConversationPage(
            self.window.frame, self.window.banners, themes, self.library, self.servers, self.pictures, self.tasks
        )
        self.window.set_content(page, self.library, self.servers)
        settings = Settings(engine, self.tasks, app)
        self.updates = settings.updates
        about_folder = Path("/home/ada/.local/share/desktop-agent")
        self.help = HelpPresenter(self.pictures, about_folder, self.tasks, self.updates, self.window)
        disk = DiskMonitor(engine, self.tasks, self.window)
        self.tool_servers = McpServerSettings(engine, self.clock, self.tasks, lambda: None, app)
        sources = SettingsSources(settings, self.servers, self.tool_servers, disk, self.library, self.tasks)
        self.settings = SettingsPresenter(sources, self.window)
        self.palette = PalettePresenter(self.window, self.library, self.servers, self.settings.show)
        exchange = Exchange(engine, self.library.unstored, self.tasks, app)
        self.exchange = ExchangePresenter(exchange, self.library, self.window)
        self.schedules = ScheduledPrompts(engine, self.library, self.tasks, app)
        self.scheduled = SchedulePresenter(self.schedules, settings, self.servers, self.window)
        self.organiser = Organiser(engine, self.library, self.tasks, app)
        self.organising = OrganisePresenter(themes, self.window.sidebar, self.organiser, self.library, self.window)
        WindowActions(
            self.window,
            settings,
            self.settings,
            self.help,
            self.palette,
            disk,
            lambda: self.exchange,
            self.organising,
        )

    def play(self, *turns: Turn, models: Sequence[ModelInfo] = MODELS) -> ScriptedProvider:
        """Let the model play these turns next."""
        model = ScriptedProvider(*turns, models=tuple(models))
        self.engine.connections._providers[STUDIO.id] = model
        self.engine.connections._listings.forget(STUDIO.id)
        return model

    def change_setup(self, **changes: object) -> None:
        """Let conversations that begin from now on have other parts."""
        original_setup = self.engine._setup
        self.engine._setup = lambda store: replace(original_setup(store), **changes)

    async def converse(self, *prompts: Message | str, workspace: bool = False, title: str | None = None) -> Session:
        """Open a new conversation and send the prompts one after the other, without waiting for the last."""
        session = self.begin(workspace=workspace)
        if title is not None:
            session.change_record(title=title, title_is_automatic=False)
        await asyncio.sleep(0.1)
        for prompt in prompts:
            await session.wait_idle()
            self.library.current.send(Message.user(prompt) if isinstance(prompt, str) else prompt)
        return session

    def begin(self, *, workspace: bool = False) -> Session:
        """Show an empty conversation."""
        place = str(self.folder / "project") if workspace else None
        session = self.engine.new_session(endpoint_id=STUDIO.id, model=MODELS[0].id, workspace=place)
        self.library._show(session)
        self.servers.refresh_models()
        return session

    async def show_stored(self, *messages: Message, title: str, workspace: bool = False) -> Session:
        """Store a conversation and show it."""
        place = str(self.folder / "project") if workspace else None
        record = await self.engine.store.create_conversation(
            title=title, endpoint_id=STUDIO.id, model=MODELS[0].id, workspace=place, title_is_automatic=False
        )
        await self.engine.store.commit(record.id, *messages)
        session = await self.engine.session(record.id)
        self.library._show(session)
        self.servers.refresh_models()
        return session

    async def image(self, name: str, width: int = 1200, height: int = 800, seed: int = 1) -> Image:
        """Save a painted picture among the picture files."""
        imported = await import_picture_async(painting(width, height, seed), name)
        return await self.pictures.save(imported, name)

    async def fill_list(self, titles: Sequence[tuple[str, int]] = TITLES) -> None:
        """Fill the sidebar; each title comes with the number of days since its last change."""
        for index, (title, days) in enumerate(titles):
            record = await self.engine.store.create_conversation(title=title)
            updated_at = now() - timedelta(days=days, minutes=17 * index)
            row = (int(updated_at.timestamp() * 1e6), record.id)
            await self.engine.store.run(lambda db, row=row: db.execute(AGE, row))
        self.library.refresh()

    async def close(self) -> None:
        """Close everything in the order in which the program does."""
        self.settings.close()
        self.help.close()
        await self.schedules.close()
        await self.tasks.close()
        for window in self.side_windows:
            window.finish()
        self.clock.stop()
        self.window.page.transcript.close_workers()
        self.window.allow_closing()
        self.window.close()
        self.window.deleteLater()
        await self.engine.close()
        for lock in self.held:
            lock.release()

    def _on_problem(self, error: AgentError) -> None:
        self.window.banners.show_error(error)


@asynccontextmanager
async def desk(themes: ThemeSource, *, connected: bool = True, listed: bool = True) -> AsyncIterator[Desk]:
    """Open a desk in a temporary folder, and close it afterwards."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-gallery-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        (folder / "project").mkdir()
        engine = await Engine.open(folder / "data")
        if connected:
            providers = engine.preferences.providers.model_copy(
                update={"endpoints": (STUDIO,), "endpoint_id": STUDIO.id, "model": MODELS[0].id}
            )
            await engine.change_preferences(engine.preferences.model_copy(update={"providers": providers}))
        new_desk = Desk(themes, engine, folder)
        new_desk.play()
        if listed:
            await new_desk.fill_list()
        try:
            yield new_desk
        finally:
            await new_desk.close()


async def until(condition: Callable[[], object]) -> None:
    """Wait until `condition()` is true. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)
