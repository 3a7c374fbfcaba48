"""Model servers for the screens: which there are, their models, their keys."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.connections import FoundServer, lacks_listing
from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import AgentError, KeyringMissing, SecretsUnavailable, Sentence, join_remedy
from desktop_agent.vocabulary.requests import Capabilities, ImageLimits, ModelInfo
from ui.bridge.kept_servers import SavedServers
from ui.bridge.tasks import BackgroundTasks

ConnectionState = Literal["busy", "ok", "error", "no_keyring"]

_TYPE_MODEL = Sentence("Check the address. If the server does not list its models, type the name of one.")


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """The models of one server, or why they cannot be listed."""

    endpoint: Endpoint
    models: tuple[ModelInfo, ...]
    problem: Sentence | None = None


class ModelServers(QObject):
    """`models_changed` carries ModelGroups; `state_changed` says in words how connecting a server goes."""

    models_changed = Signal(list)
    local_servers_changed = Signal(list)
    state_changed = Signal(str, str, object)
    connected = Signal(str, str)
    endpoints_changed = Signal()

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._connections = engine.connections
        self._tasks = tasks
        self.kept = SavedServers(engine)
        self._refreshing = 0
        engine.connections.on_models_changed(self._on_listing)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Those in use."""
        return self._connections.endpoints()

    @property
    def default_system_prompt(self) -> str:
        """What models are told in conversations without a system prompt of their own."""
        return self._engine.preferences.chat.system_prompt

    def capabilities(self, endpoint_id: str | None, model: str | None) -> Capabilities:
        """What this model can do, as far as is known."""
        known = self._connections.known_model(endpoint_id or "", model or "")
        return known.capabilities if known else Capabilities()

    def picture_limits(self, endpoint_id: str | None, model: str | None) -> ImageLimits:
        """What this model's server takes of pictures, as far as is known."""
        return self._connections.picture_limits(endpoint_id or "", model or "")

    def refresh_models(self, *, again: bool = False) -> None:
        """List the models of all servers in use."""
        self._tasks.start(self._refresh_models(again=again))

    def find_local(self) -> None:
        """Look for local servers."""
        self._tasks.start(self._find_local())

    def connect_endpoint(self, endpoint: Endpoint, key: SecretStr | None, *, session_only: bool = False) -> None:
        """Test the server with this key; when it answers, keep both and use its first model."""
        self._tasks.start(self._connect(endpoint, key, session_only=session_only))

    def replace_key(self, endpoint_id: str, key: SecretStr, *, session_only: bool = False) -> None:
        """Test a server in use with another key; when it answers, keep that. What new ones begin with stays."""
        endpoint = self._connections.endpoint(endpoint_id)
        self._tasks.start(self._replace_key(endpoint, key, session_only=session_only))

    def remove_key(self, endpoint_id: str) -> None:
        """Delete a key from the keyring."""
        self._tasks.start(self._remove_key(endpoint_id))

    def remove(self, endpoint_id: str) -> None:
        """Forget a server and its key."""
        self._tasks.start(self._remove(endpoint_id))

    def edit(self, changed: Endpoint) -> None:
        """Another title, address, dialect or mirrors; a key that was given for other addresses is dropped first."""
        self._tasks.start(self._edit(changed))

    def test(self, endpoint_id: str) -> None:
        """Ask a server in use for its models, with the key it has."""
        self._tasks.start(self._test(endpoint_id))

    async def _refresh_models(self, *, again: bool) -> None:
        async def ask(endpoint: Endpoint) -> ModelGroup:
            try:
                return ModelGroup(endpoint, await self._connections.models(endpoint.id, refresh=again))
            except AgentError as error:
                return ModelGroup(endpoint, (), error.sentence)

        self._refreshing += 1
        try:
            # Together: one server that does not answer must not hide the models of the others.
            groups = await asyncio.gather(*(ask(endpoint) for endpoint in self.endpoints))
        finally:
            self._refreshing -= 1
        self.models_changed.emit(list(groups))

    def _on_listing(self, _endpoint_id: str) -> None:
        """A listing that was asked for in the background is another than was remembered."""
        if not self._refreshing:
            self.refresh_models()

    async def _find_local(self) -> None:
        found: tuple[FoundServer, ...] = await self._connections.discover_local()
        self.local_servers_changed.emit(list(found))

    async def _test(self, endpoint_id: str) -> None:
        self.state_changed.emit(endpoint_id, "busy", Sentence("Asking the server for its models…"))
        try:
            models = await self._connections.models(endpoint_id, refresh=True)
        except AgentError as error:
            both = error.whole
            self.state_changed.emit(endpoint_id, "error", both)
        else:
            found = Sentence("It answers and has {count} models.", {"count": str(len(models))})
            self.state_changed.emit(endpoint_id, "ok", found)

    async def _connect(self, endpoint: Endpoint, key: SecretStr | None, *, session_only: bool) -> None:
        model = await self._save(endpoint, key, session_only=session_only, is_chosen=True)
        if model is not None:
            self.connected.emit(endpoint.id, model)

    async def _replace_key(self, endpoint: Endpoint, key: SecretStr, *, session_only: bool) -> None:
        await self._save(endpoint, key, session_only=session_only, is_chosen=False)

    async def _save(
        self, endpoint: Endpoint, key: SecretStr | None, *, session_only: bool, is_chosen: bool
    ) -> str | None:
        """Test it and keep it; returns its first model, or None after saying why not."""
        self.state_changed.emit(
            endpoint.id, "busy", Sentence("Asking {title} for its models…", {"title": endpoint.title})
        )
        try:
            models = await self._connections.check(endpoint, key)
            if not models:
                self.state_changed.emit(endpoint.id, "error", _no_models(endpoint))
                return None
            if key is not None:
                await self._connections.save_key(endpoint.id, key, session_only=session_only)
            model = models[0].id
            chosen = model if is_chosen else None
            await self.kept.use(endpoint, chosen, has_new_key=key is not None, session_only=session_only)
        except SecretsUnavailable as error:
            # Of another address, the old key could not be deleted: there is none that memory could hold instead.
            self.state_changed.emit(endpoint.id, "error" if key is None else "no_keyring", error.whole)
            return None
        except AgentError as error:
            remedy = _TYPE_MODEL if endpoint.kind == "custom" and lacks_listing(error) else error.remedy
            self.state_changed.emit(endpoint.id, "error", join_remedy(error.sentence, remedy))
            return None
        self.state_changed.emit(endpoint.id, "ok", Sentence("Connected."))
        self.endpoints_changed.emit()
        self._tasks.start(self._refresh_models(again=False))
        return model

    async def _edit(self, changed: Endpoint) -> None:
        try:
            is_elsewhere = await self.kept.edit(changed)
        except AgentError as error:
            both = error.whole
            self.state_changed.emit(changed.id, "error", both)
            return
        self.endpoints_changed.emit()
        if not is_elsewhere:
            await self._test(changed.id)
        await self._refresh_models(again=False)

    async def _remove_key(self, endpoint_id: str) -> None:
        try:
            await self.kept.drop_key(endpoint_id)
        except AgentError as error:
            self.state_changed.emit(endpoint_id, "error", error.whole)
        else:
            self.state_changed.emit(endpoint_id, "ok", Sentence("The key is removed."))

    async def _remove(self, endpoint_id: str) -> None:
        old = self.kept.find(endpoint_id)
        await self.kept.remove(endpoint_id)
        self.endpoints_changed.emit()
        # Without a keyring there is no key to delete; a locked one is worth a word, when the server is gone already.
        if old is None or old.may_have_key or self._engine.secrets.remembered_secret(endpoint_id) is not None:
            with suppress(KeyringMissing):
                await self._connections.remove_key(endpoint_id)
        await self._refresh_models(again=False)


def _no_models(endpoint: Endpoint) -> Sentence:
    sentence = Sentence("{title} answered, but it has no models yet.", {"title": endpoint.title})
    return join_remedy(sentence, _TYPE_MODEL) if endpoint.kind == "custom" else sentence
