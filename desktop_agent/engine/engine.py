"""Builds the headless half: everything below the faces and the window, once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import SecretStr

from desktop_agent.engine.connections import DEMO, Connections
from desktop_agent.engine.own_models import own_table
from desktop_agent.engine.own_prices import OwnPrices
from desktop_agent.engine.recovery import recovered_messages
from desktop_agent.engine.session import Session, SessionSetup
from desktop_agent.engine.writer import Writer
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.provider import Provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.listings_file import ListingsFile
from desktop_agent.storage.paths import data_folder
from desktop_agent.storage.pictures import PictureFiles
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.storage.records import ConversationRecord, LoadedConversation
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.storage.store import Store
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.tools.toolsets import Which, builtin_tools
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.engine_events import RunEnd, RunFinished
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.messages import new_id, now
from desktop_agent.vocabulary.preferences import Preferences
from desktop_agent.vocabulary.requests import ProviderConfig, Timeouts


@dataclass(frozen=True)
class RunDefaults:
    """What was said on the command line; it holds for this process and is never saved."""

    endpoint: Endpoint | None = None
    api_key: SecretStr | None = None
    model: str | None = None
    toolset: Which = "all"
    config: ProviderConfig = field(default_factory=ProviderConfig)


class Engine:
    """Conversations, connections, preferences, pictures. Open it with `Engine.open`, close it with `close`."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        preferences_file: PreferencesFile,
        preferences: Preferences,
        defaults: RunDefaults,
        catalogue: Catalogue,
    ) -> None:
        self.folder = folder
        self.store = store
        self.pictures: PictureFiles = store.pictures
        self.secrets = SecretStore()
        self._preferences_file = preferences_file
        self._preferences = preferences
        self._defaults = defaults
        self._sessions: dict[str, Session] = {}
        self._opening = asyncio.Lock()
        self._preference_listeners: list[Callable[[Preferences], None]] = []
        self.connections = Connections(
            self.secrets,
            HttpClient(),
            lambda: self._preferences,
            given=defaults.endpoint,
            given_key=defaults.api_key,
            catalogue=catalogue,
            saved=ListingsFile(folder),
        )
        self.prices = OwnPrices(folder, catalogue, self.connections)
        self.notices: tuple[Sentence, ...] = store.report.notices

    @classmethod
    async def open(cls, folder: Path | None = None, defaults: RunDefaults | None = None) -> "Engine":
        """Open the data folder. Raises StorageFailed."""
        folder = await asyncio.to_thread(data_folder, folder)
        store = await Store.open(folder)
        preferences_file = PreferencesFile(folder)
        try:
            preferences = await preferences_file.load()
            own, own_notices = await own_table(folder)
        except BaseException:
            await store.close()
            raise
        catalogue = Catalogue(own, shipped=True)
        engine = cls(folder, store, preferences_file, preferences, defaults or RunDefaults(), catalogue)
        engine.notices += (*preferences_file.notices, *own_notices)
        return engine

    @property
    def working(self) -> bool:
        """Whether a run is under way in any conversation."""
        return any(session.working for session in self._sessions.values())

    @property
    def preferences(self) -> Preferences:
        """As they are now."""
        return self._preferences

    async def change_preferences(self, preferences: Preferences) -> None:
        """Use these from now on, and save them. Raises StorageFailed; they hold for this run all the same."""
        self._preferences = preferences
        for listener in tuple(self._preference_listeners):
            listener(preferences)
        await self._preferences_file.save(preferences)

    def on_preferences(self, listener: Callable[[Preferences], None]) -> None:
        """Be told of every change."""
        self._preference_listeners.append(listener)

    def new_session(
        self, *, endpoint_id: str | None = None, model: str | None = None, workspace: str | None = None
    ) -> Session:
        """A conversation that is written at its first prompt."""
        chosen = self._preferences.providers
        given = self._defaults.endpoint
        record = ConversationRecord(
            id=new_id(),
            title="New conversation",
            title_is_automatic=True,
            created_at=now(),
            updated_at=now(),
            endpoint_id=endpoint_id or (given.id if given else chosen.endpoint_id),
            model=model or self._defaults.model or (None if given else chosen.model),
            workspace=workspace,
            reasoning=self._preferences.models.first_reasoning,
        )
        session = Session(Writer(self.store, record, (), is_new=True), self._setup())
        self._sessions[record.id] = session
        return session

    async def session(self, conversation_id: str) -> Session:
        """The open conversation, or the stored one opened; what a dead process left is put in order first."""
        # One at a time: who opens it twice at once would put it in order twice.
        async with self._opening:
            if conversation_id not in self._sessions:
                self._sessions[conversation_id] = await self._opened(conversation_id)
            return self._sessions[conversation_id]

    async def _opened(self, conversation_id: str) -> Session:
        loaded = await self.store.load(conversation_id)
        lost = recovered_messages(loaded.messages, loaded.journal)
        # By the writer: a disk that refuses keeps nobody from reading, and is tried again.
        writer = Writer(self.store, loaded.record, (*loaded.messages, *lost), is_new=False)
        await writer.write(*lost)
        await _end_lost_runs(writer, loaded)
        return Session(writer, self._setup())

    async def delete_conversation(self, conversation_id: str) -> None:
        """Stop it and put it into the trash. Raises StorageFailed."""
        session = self._sessions.pop(conversation_id, None)
        if session is not None:
            await session.close()
        if session is None or not session.is_new:
            await self.store.delete_conversation(conversation_id)

    async def close(self) -> None:
        """Stop everything, write what is left, and let go of the folder."""
        try:
            await asyncio.gather(*(session.close() for session in self._sessions.values()))
            await self.connections.close()
        finally:
            await self.store.close()

    def _setup(self) -> SessionSetup:
        return SessionSetup(
            open_provider=self._open_provider,
            read_picture=self.pictures.get,
            tools_for=self._tools_for,
            config_for=self._config_for,
            max_tool_iterations=lambda: self._preferences.chat.max_tool_iterations,
        )

    async def _open_provider(self, record: ConversationRecord) -> Provider:
        if record.endpoint_id is None:
            raise WrongUse("No model server is set up yet.", "Connect a model first.")
        if not record.model:
            raise WrongUse("No model is chosen for this conversation.", "Choose a model first.")
        return await self.connections.provider(record.endpoint_id)

    def _tools_for(self, record: ConversationRecord) -> ToolRegistry:
        workspace = Workspace(Path(record.workspace)) if record.workspace else None
        return ToolRegistry(builtin_tools(workspace, self._defaults.toolset))

    def _config_for(self, record: ConversationRecord) -> ProviderConfig:
        preferences = self._preferences
        timeouts = Timeouts(connect=preferences.network.connect_timeout, idle=preferences.network.idle_timeout)
        base = self._defaults.config
        said = base.model_fields_set
        prompt = base.system_prompt or preferences.chat.system_prompt or None
        models = preferences.models
        chosen = {
            "show_reasoning": models.show_reasoning,
            "caching": models.prompt_caching,
            "reasoning": record.reasoning,
        }
        # What was said on the command line wins.
        chosen = {name: value for name, value in chosen.items() if getattr(base, name) is None or name not in said}
        return base.model_copy(update={**chosen, "timeouts": timeouts, "system_prompt": prompt})

    async def demo_workspace(self) -> Path:
        """A folder of the demo's own, so that its tool call has somewhere to write."""
        folder = self.folder / "demo workspace"
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        return folder

    async def new_demo_session(self) -> Session:
        """A conversation with the demo, in the demo's folder."""
        await self.connections.start_demo()
        return self.new_session(endpoint_id=DEMO, model="demo", workspace=str(await self.demo_workspace()))


async def _end_lost_runs(writer: Writer, loaded: LoadedConversation) -> None:
    """Say in the journal that the runs of a dead process are over, so that nobody looks at them again."""
    last = {envelope.run_id: envelope for envelope in loaded.journal}
    for envelope in last.values():
        writer.take(replace(envelope, seq=envelope.seq + 1, at=now(), event=RunFinished(RunEnd.ABORTED)))
        await writer.finish_run(envelope.run_id)
