"""The engine builds the headless half, everything below the library and the window."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary, finalize

from pydantic import SecretStr

from desktop_agent.engine.connections import Connections
from desktop_agent.engine.model_listings import ModelListingsFile, load_model_overrides
from desktop_agent.engine.permission_records import PermissionInspector, RuleBook, unreadable_rule_notices
from desktop_agent.engine.session_lifecycle import (
    DatabaseReplacement,
    IdleSessions,
    close_and_flush,
    close_unless_refused,
)
from desktop_agent.engine.spending import Spending
from desktop_agent.processes.listeners import Listeners
from desktop_agent.processes.worker_threads import runs_to_its_end, wait_for_all
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.provider import Provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.content_files import PictureFiles
from desktop_agent.storage.conversation_lists import InterruptedRuns
from desktop_agent.storage.files import data_folder, make_private_folder
from desktop_agent.storage.locks.conversation_locks import ConversationLock, ConversationLocks, Program
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import AnyTool, DynamicToolRegistry, ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import Sentence, StorageFailed
from desktop_agent.types.mcp import ConsentHandlers
from desktop_agent.types.messages import new_id, now
from desktop_agent.types.permissions import Rule
from desktop_agent.types.policies import Limits
from desktop_agent.types.preferences import Preferences
from desktop_agent.types.providers import DEMO_ENDPOINT, DEMO_MODEL, Endpoint, NoModelChosen, ProviderConfig
from desktop_agent.types.tool_calls import ToolClass

if TYPE_CHECKING:
    from desktop_agent.engine.mcp_servers import McpServers
    from desktop_agent.engine.price_overrides import PriceOverrides
    from desktop_agent.engine.session import Session
    from desktop_agent.engine.session_controls import SessionSetup
    from desktop_agent.engine.session_opening import ConversationFollower
    from desktop_agent.storage.write_behind import UnsavedConversation
    from desktop_agent.tools.builtin_tools import ToolSelection


_REVOKE_AGAIN = "Check the disk and its free space, then revoke the rule again."


@dataclass(frozen=True)
class RunDefaults:
    """Options of the command line; they hold for this process and are never saved.

    `program` describes this process to another one that is kept out of a conversation by it. `questions`: the agent
    may ask the person, because somebody is there to answer. `mode_requests`: it may ask for another mode. `titles`: a
    model names conversations, as the preferences say. `read_interval`: see HttpClient.
    """

    program: Program = "library"
    endpoint: Endpoint | None = None
    api_key: SecretStr | None = None
    model: str | None = None
    toolset: "ToolSelection" = "all"
    config: ProviderConfig = field(default_factory=ProviderConfig)
    questions: bool = False
    mode_requests: bool = False
    titles: bool = False
    read_interval: float = 0.0


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
        rule_book: RuleBook,
    ) -> None:
        self.folder = folder
        self._own_folders = (folder.resolve().as_posix(),)
        self.store = store
        self.pictures: PictureFiles = store.pictures
        self.secrets = SecretStore()
        self.preferences_file = preferences_file
        preferences_file.on_refusal = store.disk.test
        self._preferences = preferences
        self._defaults = defaults
        self._catalogue = catalogue
        self.rule_book = rule_book
        # A session lives while somebody holds it, and in `_busy` while something of it is under way or unwritten.
        self._sessions: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._busy: set[Session] = set()
        self.consent_handlers = ConsentHandlers()
        self._idle_sessions = IdleSessions(self._busy)
        self._database_replacement = DatabaseReplacement(store, rule_book, lambda: self._all_sessions)
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._locks = ConversationLocks(folder, defaults.program)
        self._preferences_changed = Listeners[[Preferences]]()
        self.on_preferences = self._preferences_changed.add
        """Call a listener at every change of the preferences."""
        self.connections = Connections(
            self.secrets,
            HttpClient(defaults.read_interval),
            lambda: self._preferences,
            given=defaults.endpoint,
            given_key=defaults.api_key,
            catalogue=catalogue,
            saved=ModelListingsFile(folder),
        )
        self.spending = Spending(store.usage, lambda: self._preferences.usage)
        self._private_hosts = lambda: self._preferences.network.private_host_names
        self.permission_inspector = PermissionInspector(store, self.record, self.session, self._tools_for)
        self.notices: tuple[Sentence, ...] = store.notices

    @classmethod
    async def open(cls, folder: Path | None = None, defaults: RunDefaults | None = None) -> "Engine":
        """Open the data folder. Raises StorageFailed."""
        folder, defaults = await asyncio.to_thread(data_folder, folder), defaults or RunDefaults()
        # First: without locks SQLite waits in vain, and reports that another process is at work.
        await ConversationLocks(folder, defaults.program).check()
        store = await Store.open(folder, defaults.program)
        preferences_file = PreferencesFile(folder)
        try:
            preferences = await preferences_file.load()
            own, own_notices = await load_model_overrides(folder)
            rules = await store.rules.load()
        except BaseException:
            await store.close()
            raise
        catalogue = Catalogue(own, shipped=True)
        engine = cls(folder, store, preferences_file, preferences, defaults, catalogue, RuleBook(rules.rules))
        engine.notices += (*preferences_file.notices, *own_notices, *unreadable_rule_notices(rules))
        return engine

    @cached_property
    def mcp(self) -> "McpServers":
        """The MCP servers. Made late: a prompt without any loads nothing of them."""
        return _make_mcp_servers(self, self._defaults, self._sessions.get, self._tools_changed)

    @cached_property
    def prices(self) -> "PriceOverrides":
        """The prices of models, which the person may change."""
        from desktop_agent.engine.price_overrides import PriceOverrides

        return PriceOverrides(self.folder, self._catalogue, self.connections)

    @property
    def _mcp_in_use(self) -> "McpServers | None":
        return self.mcp if self._preferences.mcp.servers or "mcp" in vars(self) else None

    @property
    def working_sessions(self) -> "list[Session]":
        return [session for session in self._busy if session.working]

    @property
    def preferences(self) -> Preferences:
        return self._preferences

    async def change_preferences(self, preferences: Preferences) -> None:
        """Apply and save these preferences. Raises StorageFailed; they hold for this run all the same."""
        self._preferences = preferences
        if self._mcp_in_use is not None:
            self._mcp_in_use.apply_settings()
        for session in tuple(self._sessions.values()):
            session.modes.refresh_modes()
        self._preferences_changed.notify(preferences)
        await self.preferences_file.save(preferences)

    def new_session(
        self,
        *,
        endpoint_id: str | None = None,
        model: str | None = None,
        workspace: str | None = None,
        in_memory: bool = False,
    ) -> "Session":
        """Return a session; it is stored at its first prompt, or, `in_memory`, never and lost with its holder."""
        # Late, here and below: no conversation is open yet when the window is drawn for the first time.
        from desktop_agent.engine.session import Session
        from desktop_agent.engine.session_opening import new_in_memory_session
        from desktop_agent.engine.session_writer import SessionWriter
        from desktop_agent.storage.journal_queue import JournalQueue

        record = _new_record(self._preferences, self._defaults, endpoint_id, model, workspace)
        if in_memory:
            return self._sessions.setdefault(record.id, new_in_memory_session(record, self.store, self._setup(None)))
        lock, store = self._locks.lock(record.id), self.store.pinned()
        session = Session(
            SessionWriter(JournalQueue(store, record, is_new=True, lock=lock)), self._setup(store), busy=self._busy
        )
        return self._register(session, lock)

    async def session(self, conversation_id: str, *, whole: bool = True) -> "Session":
        """Return the open session of this conversation, or open it; runs of a dead process are recovered first.

        Unless wanted `whole`, its earlier messages may stay on the disk: see Session.history_loader. Raises WrongUse
        for an unknown one, ConversationInUse for one that another process has open, and StorageFailed.
        """
        # One opening of a conversation at a time: two would both recover it.
        async with self._opening.setdefault(conversation_id, asyncio.Lock()):
            session = self._sessions.get(conversation_id)
            self._idle_sessions.keep_open(session)
            if session is not None and session.is_closed:
                # To its end: two must never write the same conversation, and what one has not written the other lacks.
                await close_and_flush(session)
                session = None
            session = session or await self._reopen(conversation_id)
            if whole:
                await session.history_loader.load_all()
            return session

    async def _reopen(self, conversation_id: str) -> "Session":
        from desktop_agent.engine.session_opening import reopen_session

        # For an unknown one no lock is made.
        await self.store.record(conversation_id)
        if self.store.read_only is not None:
            raise self.store.read_only
        lock, store = await self._locks.acquire(conversation_id), self.store.pinned()
        try:
            session = await reopen_session(store, conversation_id, self._setup(store), self._busy, lock, whole=False)
        except BaseException:
            lock.release_now()
            raise
        return self._register(session, lock)

    async def interrupted_conversations(self) -> tuple[InterruptedRuns, ...]:
        """Return conversations with runs that a dead process left open; none if read-only. Raises StorageFailed."""
        interrupted = () if self.store.read_only else await self.store.find_interrupted_runs()
        ids = [runs.conversation_id for runs in interrupted]
        checks = (_is_abandoned(self._sessions.get(id_), self._locks.lock(id_)) for id_ in ids)
        abandoned = await asyncio.gather(*checks)
        return tuple(runs for runs, is_abandoned in zip(interrupted, abandoned, strict=True) if is_abandoned)

    async def follow_conversation(self, conversation_id: str, held: StorageFailed) -> "ConversationFollower":
        """Follow a conversation that `session` refused with `held`. Raises WrongUse, and StorageFailed."""
        from desktop_agent.engine.session_opening import follow_conversation

        lock, store = self._locks.lock(conversation_id), self.store.pinned()
        return await follow_conversation(store, conversation_id, self._setup(store), held, lock)

    def _register(self, session: "Session", lock: ConversationLock) -> "Session":
        """Remember the session while somebody holds it; its lock is released with it."""
        finalize(session, lock.release_now)
        self._sessions[session.record.id] = session
        return session

    async def record(self, conversation_id: str) -> ConversationRecord:
        """Return the stored record, without opening the conversation. Raises WrongUse, and StorageFailed."""
        session = self._sessions.get(conversation_id)
        return session.record if session is not None else await self.store.record(conversation_id)

    def release_session(self, session: "Session") -> None:
        """Close the session once it is idle, unless it is opened again before; other processes may open it then."""
        self._idle_sessions.close_when_idle(session)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return all stored rules of every scope, oldest first."""
        return self.rule_book.rules

    async def revoke_rule(self, rule_id: str) -> None:
        """Delete a rule in all conversations. Raises StorageFailed; it holds as before then."""
        try:
            await self.store.rules.delete(rule_id)
        except StorageFailed as error:
            # Were it forgotten here alone, it would be back at the next start, and nobody would see it until then.
            what = Sentence("The rule could not be taken back and still holds: {why}", {"why": error.sentence})
            raise StorageFailed(what, _REVOKE_AGAIN, detail=error.detail) from error
        self.rule_book.remove(rule_id)

    async def delete_conversation(self, conversation_id: str) -> None:
        """Stop it and put it into the trash. Raises ConversationInUse, and StorageFailed.

        Where the disk refuses that, or what the conversation has not written yet, it is not deleted and stays open.
        """
        # As in `session`: who opens it meanwhile would meet our own lock.
        async with self._opening.setdefault(conversation_id, asyncio.Lock()):
            session = self._sessions.get(conversation_id)
            if session is not None:
                delete = partial(self.store.delete_conversation, conversation_id)
                if await close_unless_refused(session, delete) or session.is_new:
                    self._sessions.pop(conversation_id, None)
                    return
                await close_and_flush(session)
            async with self._locks.hold(conversation_id):
                await self.store.delete_conversation(conversation_id)
            self._sessions.pop(conversation_id, None)

    async def write_all(self, *, at_once: bool = False) -> None:
        """Try to write what waits everywhere; `unsaved` says what was refused."""
        await wait_for_all(*(busy.write_at_once() if at_once else busy.write_all() for busy in tuple(self._busy)))

    @property
    def unsaved(self) -> "tuple[UnsavedConversation, ...]":
        """Return the conversations of which the disk refused something, also after `close`."""
        return tuple(unsaved for session in self._all_sessions if (unsaved := session.unsaved) is not None)

    @property
    def _all_sessions(self) -> "set[Session]":
        """Return all sessions, also those opened anew whose predecessor still has unwritten content."""
        return {*self._sessions.values(), *self._busy}

    @runs_to_its_end
    async def close(self, *, keeps_approvals: bool = False) -> None:
        """Stop everything, write what is left, release the folder, whatever fails. `keeps_approvals`: see Session."""
        async with AsyncExitStack() as stack:
            for part in filter(None, (self._locks, self.store, self.spending, self._mcp_in_use, self.connections)):
                stack.push_async_callback(part.close)
            await self._idle_sessions.close()
            closing = (session.close(keeps_approvals=keeps_approvals) for session in self._all_sessions)
            await wait_for_all(*closing, self._database_replacement.close())

    def _tools_changed(self) -> None:
        for session in tuple(self._busy):
            session.permission_policy.tools_changed()

    def _setup(self, store: Store | None) -> "SessionSetup":
        from desktop_agent.engine.session_controls import SessionSetup
        from desktop_agent.engine.titles import title_model

        return SessionSetup(
            open_provider=partial(_open_provider, self),
            spending=self.spending,
            require_endpoint=lambda record: self.connections.require_endpoint(record.endpoint_id),
            tools_ready=self._tools_ready,
            read_picture=self.pictures.get,
            tools_for=self._tools_for,
            config_for=lambda record: _config_for(record, self._preferences, self._defaults.config),
            limits=lambda: Limits(tool_iterations=self._preferences.chat.max_tool_iterations),
            store=store,
            rule_book=self.rule_book,
            own_folders=self._own_folders,
            modes=lambda: self._preferences.modes.all,
            specialists=lambda: self._preferences.specialists.defined,
            questions=self._defaults.questions,
            mode_requests=self._defaults.mode_requests,
            title_model=lambda record: (
                title_model(record, self._preferences.chat, self.connections) if self._defaults.titles else None
            ),
        )

    async def _tools_ready(self, record: ConversationRecord) -> None:
        if self._defaults.toolset != "none" and self._mcp_in_use is not None:
            await self._mcp_in_use.ready(_workspace_of(record))

    def _tools_for(self, record: ConversationRecord) -> ToolRegistry:
        folder, selection = _workspace_of(record), self._defaults.toolset
        if selection == "none":
            return ToolRegistry(())
        workspace = Workspace(folder) if folder else None
        from desktop_agent.permissions.shell.git_checkout import is_checkout
        from desktop_agent.tools.builtin_tools import builtin_tools

        fixed = ToolRegistry(builtin_tools(workspace, selection, (self.folder,), self._private_hosts, is_checkout))
        return DynamicToolRegistry(fixed, lambda: _mcp_tools(self._mcp_in_use, folder, selection))

    async def new_demo_session(self) -> "Session":
        """Return a conversation with the demo, in a folder where its tool call may write. Raises StorageFailed."""
        await self.connections.start_demo()
        folder = await asyncio.to_thread(_make_demo_folder, self.folder)
        return self.new_session(endpoint_id=DEMO_ENDPOINT, model=DEMO_MODEL, workspace=str(folder))


def _make_demo_folder(data: Path) -> Path:
    folder = data / "demo workspace"
    make_private_folder(folder, data)
    return folder.resolve()


async def _open_provider(engine: Engine, record: ConversationRecord, model: str) -> Provider:
    endpoint_id = _endpoint_for(record, model)
    await engine.spending.check(endpoint_id, record.id)
    return await engine.connections.provider(endpoint_id)


def _make_mcp_servers(
    engine: Engine,
    defaults: RunDefaults,
    open_session: Callable[[str], "Session | None"],
    on_state: Callable[[], None],
) -> "McpServers":
    from desktop_agent.engine.mcp_servers import McpServers, SamplingHandler, SamplingTarget

    def find_target(conversation_id: str | None) -> SamplingTarget:
        session = open_session(conversation_id) if conversation_id else None
        if session is None:
            return SamplingTarget(*_default_model(defaults, engine.preferences))
        record = session.record
        project = "" if session.is_in_memory else record.workspace or ""
        return SamplingTarget(record.endpoint_id, record.model, record.id, project)

    sampling = SamplingHandler(
        lambda: engine.consent_handlers,
        find_target,
        engine.connections,
        engine.spending,
    )
    servers = McpServers(
        lambda: engine.preferences.mcp.servers,
        engine.secrets,
        engine.folder,
        sampling.handlers,
        lambda: engine.preferences.network.private_host_names,
    )
    servers.on_state(lambda _: on_state())
    return servers


def _mcp_tools(servers: "McpServers | None", workspace: Path | None, selection: "ToolSelection") -> tuple[AnyTool, ...]:
    """Return what the servers offer for a folder, as far as it belongs to this selection."""
    offered = () if servers is None else servers.tools(workspace)
    if selection == "all":
        return offered
    return tuple(tool for tool in offered if selection == "read" and tool.tool_class is ToolClass.READ_ONLY)


def _new_record(
    preferences: Preferences,
    defaults: RunDefaults,
    endpoint_id: str | None,
    model: str | None,
    workspace: str | None,
) -> ConversationRecord:
    default_endpoint, default_model = _default_model(defaults, preferences)
    return ConversationRecord(
        id=new_id(),
        title="New conversation",
        title_is_automatic=True,
        created_at=now(),
        updated_at=now(),
        endpoint_id=endpoint_id or default_endpoint,
        model=model or default_model,
        workspace=workspace,
        reasoning=preferences.models.default_reasoning,
    )


def _default_model(defaults: RunDefaults, preferences: Preferences) -> tuple[str | None, str | None]:
    """Return the ids of endpoint and model for new conversations."""
    chosen, endpoint = preferences.providers, defaults.endpoint
    return (endpoint.id if endpoint else chosen.endpoint_id), defaults.model or (None if endpoint else chosen.model)


def _endpoint_for(record: ConversationRecord, model: str) -> str:
    if record.endpoint_id is None:
        raise NoModelChosen("No model server is set up yet.", "Connect a model first.")
    if not model:
        raise NoModelChosen("No model is chosen for this conversation.")
    return record.endpoint_id


def _workspace_of(record: ConversationRecord) -> Path | None:
    return Path(record.workspace) if record.workspace else None


def _config_for(record: ConversationRecord, preferences: Preferences, base: ProviderConfig) -> ProviderConfig:
    """Return the provider configuration; the command line wins."""
    timeouts = preferences.network.timeouts.model_copy(update=base.timeouts.model_dump(exclude_unset=True))
    explicit = base.model_fields_set
    models = preferences.models
    chosen = {
        "show_reasoning": models.show_reasoning,
        "caching": models.prompt_caching,
        "reasoning": record.reasoning,
        **record.parameters.model_dump(),
    }
    chosen["system_prompt"] = record.parameters.system_prompt or preferences.chat.system_prompt or None
    chosen = {name: value for name, value in chosen.items() if getattr(base, name) is None or name not in explicit}
    return base.model_copy(update={**chosen, "timeouts": timeouts})


async def _is_abandoned(session: "Session | None", lock: ConversationLock) -> bool:
    """Return whether nobody is at work in a conversation. It may be open here, to be renamed for instance."""
    return await lock.is_free() if session is None or session.is_closed else session.can_resume
