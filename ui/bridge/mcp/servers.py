"""MCP servers for the settings: state, log, test, sign-in, saving, and notices about them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr
from PySide6.QtCore import QCoreApplication, QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.types.errors import AgentError, SecretsUnavailable, Sentence, join_remedy
from desktop_agent.types.mcp import McpLogLine, McpServer, McpServerState, SignInPageTexts
from desktop_agent.types.preferences import Preferences
from ui.bridge.event_loop import BackgroundTasks, FrameClock, in_background
from ui.bridge.mcp.imports import McpImports

ServerChange = Callable[[McpServer], McpServer]


class McpNotices(QObject):
    """`noticed` carries each notice once, even if two have the same text.

    `notify_all` emits the earlier ones. A failure that the person waits for is emitted each time.
    """

    noticed = Signal(object)
    outdated = Signal(object)
    """A notice that is not true any more."""

    def __init__(self, engine: Engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._notified: dict[int, Sentence] = {}
        engine.mcp.on_notice(self._notify_once)
        engine.mcp.on_failure(self._notify)
        engine.mcp.on_outdated(self._withdraw)

    def notify_all(self) -> None:
        """Emit the notices that came before the signal was connected."""
        for notice in self._engine.mcp.notices:
            self._notify_once(notice)

    def _notify_once(self, sentence: Sentence) -> None:
        if id(sentence) not in self._notified:
            self._notify(sentence)

    def _notify(self, sentence: Sentence) -> None:
        # Kept alive, so that no other notice can get its id.
        self._notified[id(sentence)] = sentence
        self.noticed.emit(sentence)

    def _withdraw(self, sentence: Sentence) -> None:
        self._notified.pop(id(sentence), None)
        self.outdated.emit(sentence)


class McpServerSettings(QObject):
    """States and log lines come at most once a frame, however fast the servers emit them."""

    servers_changed = Signal(object)
    """A tuple of McpServers."""
    state_changed = Signal(str, object)
    """A server's id and its McpServerState."""
    tested = Signal(str, object)
    log_lines_added = Signal(str, object, bool)
    """A server's id, its new McpLogLines, and whether they are the whole log."""
    saved = Signal(str)
    failed = Signal(str, object)
    """A server's id, and a Sentence: why a change failed."""
    secrets_found = Signal(str, object)
    """A server's id, and a frozenset of its secrets that have a value."""
    sign_in_ended = Signal(str, object)
    """A server's id, and a Sentence that says why it failed, or None."""

    def __init__(
        self,
        engine: Engine,
        clock: FrameClock,
        tasks: BackgroundTasks,
        current_workspace: Callable[[], str | None] = lambda: None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._clock = clock
        self._tasks = tasks
        self._current_workspace = current_workspace
        self._servers = self.servers
        self._changed_servers: set[str] = set()
        self._watched = ""
        self._last_line: McpLogLine | None = None
        self._has_new_lines = False
        self._sign_ins: dict[str, asyncio.Task[None]] = {}
        self.imports = McpImports(engine, tasks, self)
        self._saving = asyncio.Lock()
        """Each change is saved on top of the result of the previous one."""
        engine.on_preferences(self._on_preferences)
        engine.mcp.on_state(self._on_state)
        engine.mcp.on_log(self._on_line)
        clock.tick.connect(self._emit_changes)

    @property
    def servers(self) -> tuple[McpServer, ...]:
        return self._engine.preferences.mcp.servers

    def state(self, server_id: str) -> McpServerState:
        """Return the state for the folder of the open conversation."""
        return self._engine.mcp.state(server_id, self._workspace)

    def watch_log(self, server_id: str) -> None:
        """Emit this server's log lines, the earlier and all later ones; "" stops that."""
        self._watched = server_id
        self._last_line = None
        self._has_new_lines = False
        if server_id:
            self._emit_log_lines()

    @in_background
    async def test(self, server_id: str) -> None:
        """Start the server now and ask for its tools."""
        self.tested.emit(server_id, await self._engine.mcp.test(server_id, self._workspace))

    def save(self, server: McpServer, secrets: Mapping[str, SecretStr]) -> None:
        """Save a new or changed server; a secret without a value stays as it is in the keyring.

        A sign-in is cancelled: the address may be another one, and the card of another title does not know of it.
        """
        self.cancel_sign_in(server.id)
        self._tasks.start(self._run(server.id, self._save(server, secrets), lambda: self.saved.emit(server.id)))

    def change(self, server_id: str, change: ServerChange) -> None:
        """Change a server after all earlier changes are saved; nothing happens if it was removed meanwhile."""
        self._tasks.start(self._run(server_id, self._change(server_id, change)))

    @in_background
    async def find_secrets(self, server_id: str) -> None:
        """Find which of its secrets have a value; `secrets_found` answers, unless the keyring cannot be read."""
        with suppress(SecretsUnavailable):
            self.secrets_found.emit(server_id, await self._engine.mcp.stored_secret_names(server_id))

    def look_up_sign_in(self, server_id: str) -> None:
        """Find whether a sign-in is stored for it; `state_changed` answers."""
        self._tasks.start(self._engine.mcp.check_sign_in(server_id))

    def remove(self, server_id: str) -> None:
        """Remove a server and everything in the keyring for it."""
        self.cancel_sign_in(server_id)
        self._tasks.start(self._run(server_id, self._remove(server_id)))

    def sign_in(self, server_id: str, open_page: Callable[[str], None]) -> None:
        """Sign in by OAuth; `open_page` gets the address to visit."""
        if server_id not in self._sign_ins:
            self._tasks.start(self._sign_in(server_id, open_page))

    def cancel_sign_in(self, server_id: str) -> None:
        """Stop waiting for the sign-in."""
        task = self._sign_ins.get(server_id)
        if task is not None:
            task.cancel()

    def sign_out(self, server_id: str) -> None:
        """Delete the stored sign-in."""
        self._tasks.start(self._run(server_id, self._engine.mcp.sign_out(server_id)))

    @property
    def _workspace(self) -> Path | None:
        folder = self._current_workspace()
        return Path(folder) if folder else None

    async def _save(self, server: McpServer, secrets: Mapping[str, SecretStr]) -> None:
        async with self._saving:
            await self._engine.mcp.save(server, secrets, self.imports.save)

    async def _change(self, server_id: str, change: ServerChange) -> None:
        async with self._saving:
            for server in self.servers:
                if server.id == server_id:
                    await self._engine.mcp.save(change(server), {}, self.imports.save)

    async def _remove(self, server_id: str) -> None:
        async with self._saving:
            await self._engine.mcp.remove(server_id, self.imports.save)

    async def _sign_in(self, server_id: str, open_page: Callable[[str], None]) -> None:
        task = asyncio.current_task()
        if task is None or server_id in self._sign_ins:
            return
        self._sign_ins[server_id] = task
        why: Sentence | None = None
        try:
            state = await self._engine.mcp.sign_in(server_id, open_page, _page_words())
            if state.state in {"failed", "signed_out"}:
                why = _sign_in_error(state)
        except AgentError as error:
            why = error.whole
        finally:
            del self._sign_ins[server_id]
            self.sign_in_ended.emit(server_id, why)
            self._on_state(server_id)

    async def _run(self, server_id: str, work: Awaitable[object], then: Callable[[], object] = lambda: None) -> None:
        """Emit `failed` if the action fails."""
        try:
            await work
        except AgentError as error:
            self.failed.emit(server_id, error.whole)
        else:
            then()
        finally:
            self._on_state(server_id)

    def _on_preferences(self, preferences: Preferences) -> None:
        servers = preferences.mcp.servers
        if servers != self._servers:
            self._servers = servers
            self.servers_changed.emit(servers)

    def _on_state(self, server_id: str) -> None:
        self._changed_servers.add(server_id)
        self._clock.request()

    def _on_line(self, server_id: str, _line: McpLogLine) -> None:
        if server_id == self._watched:
            self._has_new_lines = True
            self._clock.request()

    def _emit_changes(self) -> None:
        changed, self._changed_servers = self._changed_servers, set()
        for server_id in changed:
            self.state_changed.emit(server_id, self.state(server_id))
        if self._has_new_lines:
            self._emit_log_lines()

    def _emit_log_lines(self) -> None:
        """Emit the lines since the last time, without those of another folder's server."""
        self._has_new_lines = False
        lines = self._engine.mcp.log(self._watched, self._workspace)
        new: list[McpLogLine] = []
        for line in reversed(lines):
            if line is self._last_line:
                break
            new.append(line)
        if new or not lines:
            self._last_line = lines[-1] if lines else None
            self.log_lines_added.emit(self._watched, tuple(reversed(new)), len(new) == len(lines))


def _sign_in_error(state: McpServerState) -> Sentence:
    """Return why the sign-in failed, and what to do about it."""
    why = state.reason or Sentence("You are not signed in.")
    return join_remedy(why, state.remedy) if state.remedy is not None else why


def _page_words() -> SignInPageTexts:
    return SignInPageTexts(
        done=_translate("You can close this page and go back to Desktop Agent."),
        refused=_translate("The sign-in was refused. You can close this page and go back to Desktop Agent."),
        finished=_translate("This sign-in has ended."),
        invalid_response=_translate("This is not an answer to a sign-in."),
        not_found=_translate("There is nothing here."),
        # The translator puts the tag of the language here (BCP 47).
        language=_translate("en"),
    )


def _translate(text: str) -> str:
    return QCoreApplication.translate("McpServerSettings", text)
