"""Model servers for the screens: connections, their models, and the keys that stay with their addresses."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.connections import FoundServer, lacks_listing, with_complete_address
from desktop_agent.engine.engine import Engine
from desktop_agent.types.errors import AgentError, KeyringMissing, SecretsUnavailable, Sentence, join_remedy
from desktop_agent.types.preferences import ProviderPreferences
from desktop_agent.types.providers import LOCAL_ENDPOINT, Capabilities, Dialect, Endpoint, ImageLimits, ModelInfo
from ui.bridge.desktop.local_models import LocalModelRunner
from ui.bridge.event_loop import BackgroundTasks, in_background


class SavedServers:
    """Adds, changes and removes servers. Every method raises StorageFailed when the preferences cannot be saved."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connections = engine.connections

    def find(self, endpoint_id: str) -> Endpoint | None:
        """Return a server that the person added."""
        return next((endpoint for endpoint in self._providers.endpoints if endpoint.id == endpoint_id), None)

    def id_for(self, address: str, mirrors: tuple[str, ...], dialect: Dialect) -> str:
        """Return the id for an address and its dialect: two dialects at one address are two servers.

        A server keeps its id after its address or dialect was changed, or if its address is typed without `/v1`.
        """
        same = [
            endpoint
            for endpoint in self._providers.endpoints
            if (endpoint.kind, endpoint.dialect) == ("custom", dialect)
            and _without_v1(endpoint.base_url, *endpoint.mirrors) == _without_v1(address, *mirrors)
        ]
        if same:
            # The person may have servers at both addresses.
            return min(same, key=lambda endpoint: endpoint.base_url != address).id
        plain = Endpoint(id=f"custom:{address}", title="", dialect=dialect, base_url=address, mirrors=mirrors)
        id_, number = plain.id, 2
        while (other := self.find(id_)) is not None and (other.origins, other.dialect) != (plain.origins, dialect):
            id_, number = f"{plain.id}#{number}", number + 1
        return id_

    def current(self, tested: Endpoint) -> Endpoint | None:
        """Return the current version of a server in use; None if it was removed, or has an address not tested."""
        servers = self._connections.endpoints()
        return next((other for other in servers if other.id == tested.id and other.origins <= tested.origins), None)

    async def use(
        self, endpoint: Endpoint, model: str | None, *, has_new_key: bool, session_only: bool = False
    ) -> None:
        """Save a server that answered; with a model, make it the default for new conversations.

        `session_only`: the new key is not in the keyring. Raises SecretsUnavailable.
        """
        old = self.find(endpoint.id)
        has_key: bool | None = has_new_key and not session_only
        if old is not None and not has_new_key:
            if endpoint.origins <= old.origins:
                has_key = old.has_key
            else:
                await self._drop_key(old)
        endpoint = endpoint.model_copy(update={"has_key": has_key})
        others = tuple(other for other in self._providers.endpoints if other.id != endpoint.id)
        choice = {} if model is None else {"endpoint_id": endpoint.id, "model": model}
        await self._change(endpoint.id, endpoints=(*others, endpoint), **choice)

    async def edit(self, changed: Endpoint) -> bool:
        """Change title, address, dialect or mirrors. Returns whether the key was dropped.

        The key is deleted first: if that fails, the address stays. Raises SecretsUnavailable and WrongUse.
        """
        old = self.find(changed.id)
        if old is None:
            return False
        changed = with_complete_address(changed)
        is_elsewhere = not changed.origins <= old.origins
        if is_elsewhere:
            await self._drop_key(old)
        # A key may have been saved while the change was edited.
        changed = changed.model_copy(update={"has_key": False if is_elsewhere else old.has_key})
        endpoints = tuple(changed if endpoint.id == changed.id else endpoint for endpoint in self._providers.endpoints)
        await self._change(changed.id, endpoints=endpoints)
        return is_elsewhere

    async def remove(self, endpoint_id: str) -> None:
        """Remove a server. The caller removes its key."""
        rest = tuple(endpoint for endpoint in self._providers.endpoints if endpoint.id != endpoint_id)
        update: dict[str, object] = {"endpoints": rest}
        if self._providers.endpoint_id == endpoint_id:
            update |= {"endpoint_id": rest[0].id if rest else None, "model": None}
        await self._change(endpoint_id, **update)

    async def choose(self, endpoint_id: str, model: str) -> None:
        """Make this the model of new conversations, if the person added its server."""
        if self.find(endpoint_id) is not None or endpoint_id == LOCAL_ENDPOINT:
            changed = self._engine.preferences.with_changes("providers", endpoint_id=endpoint_id, model=model)
            await self._engine.change_preferences(changed)

    async def servers_with_keys(self) -> tuple[str, ...]:
        """Return the ids of the servers with a key, in the keyring or in memory."""
        ids: list[str] = []
        for endpoint in self._connections.endpoints():
            if not endpoint.may_have_key:
                ids += [endpoint.id] if self._engine.secrets.remembered_secret(endpoint.id) is not None else []
                continue
            with suppress(SecretsUnavailable):
                if await self._engine.secrets.get(endpoint.id) is not None:
                    ids.append(endpoint.id)
        return tuple(ids)

    async def keyring_name(self) -> str:
        """Return the name of the keyring for the person. Raises SecretsUnavailable."""
        return await self._engine.secrets.find_keyring()

    @property
    def _providers(self) -> ProviderPreferences:
        return self._engine.preferences.providers

    async def _change(self, changed_id: str, /, **update: object) -> None:
        self._connections.forget(changed_id)
        await self._engine.change_preferences(self._engine.preferences.with_changes("providers", **update))

    async def drop_key(self, endpoint_id: str) -> None:
        """Delete the key of a server and remember that it has none. Raises SecretsUnavailable."""
        await self._connections.remove_key(endpoint_id)
        old = self.find(endpoint_id)
        if old is not None:
            changed = old.model_copy(update={"has_key": False})
            endpoints = tuple(changed if endpoint is old else endpoint for endpoint in self._providers.endpoints)
            await self._change(endpoint_id, endpoints=endpoints)

    async def _drop_key(self, endpoint: Endpoint) -> None:
        if not endpoint.may_have_key and self._engine.secrets.remembered_secret(endpoint.id) is None:
            return
        with suppress(KeyringMissing):  # then there is no key in it
            await self._connections.remove_key(endpoint.id)


def _without_v1(*addresses: str) -> tuple[str, ...]:
    return tuple(address.rstrip("/").removesuffix("/v1") for address in addresses)


_TYPE_MODEL = Sentence("Check the address. If the server does not list its models, type the name of one.")
_NO_MODELS_REMEDIES = {
    "local": Sentence("Get a model with that program first, then try again."),
    "cloud": Sentence("Look in your account there which models the key may use."),
}


@dataclass(frozen=True, slots=True)
class ModelGroup:
    """The models of one server, or why they cannot be listed."""

    endpoint: Endpoint
    models: tuple[ModelInfo, ...]
    problem: Sentence | None = None


class ModelServers(QObject):
    """`models_changed` carries ModelGroups; `state_changed` carries a sentence on how connecting a server goes.

    `local` runs model files.
    """

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
        self.saved = SavedServers(engine)
        self.local = LocalModelRunner(engine, tasks, self)
        self._refreshing = 0
        self._request_number = self._listed_number = 0
        """The numbers of the last request for models, and of the request whose result is listed."""
        engine.connections.on_models_changed(self._on_listing)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return self._connections.endpoints()

    @property
    def default_system_prompt(self) -> str:
        """The system prompt of conversations without their own."""
        return self._engine.preferences.chat.system_prompt

    def capabilities(self, endpoint_id: str | None, model: str | None) -> Capabilities:
        """Return what is known of the model's capabilities."""
        known = self._connections.known_model(endpoint_id or "", model or "")
        return known.capabilities if known else Capabilities()

    def picture_limits(self, endpoint_id: str | None, model: str | None) -> ImageLimits:
        """Return what is known of the server's limits for pictures."""
        return self._connections.picture_limits(endpoint_id or "", model or "")

    def choose(self, endpoint_id: str, model: str) -> None:
        """Make this the model of new conversations, see SavedServers."""
        self._tasks.start(self.saved.choose(endpoint_id, model))

    def refresh_models(self, *, again: bool = False) -> None:
        """List the models of all servers in use."""
        self._tasks.start(self._refresh_models(again=again))

    @in_background
    async def find_local(self) -> None:
        """Find local servers."""
        servers: tuple[FoundServer, ...] = await self._connections.discover_local()
        self.local_servers_changed.emit(list(servers))

    @in_background
    async def connect_endpoint(self, endpoint: Endpoint, key: SecretStr | None, *, session_only: bool = False) -> None:
        """Test the server with this key; if it answers, save both and use its first model."""
        model = await self._save(endpoint, key, session_only=session_only, is_chosen=True)
        if model is not None:
            self.connected.emit(endpoint.id, model)

    def replace_key(self, endpoint_id: str, key: SecretStr, *, session_only: bool = False) -> None:
        """Test a server in use with another key; if it answers, save that. The default model stays."""
        endpoint = self._connections.endpoint(endpoint_id)
        self._tasks.start(self._save(endpoint, key, session_only=session_only, is_chosen=False))

    @in_background
    async def remove_key(self, endpoint_id: str) -> None:
        """Delete a key from the keyring."""
        try:
            await self.saved.drop_key(endpoint_id)
        except AgentError as error:
            self.state_changed.emit(endpoint_id, "error", error.whole)
        else:
            self.state_changed.emit(endpoint_id, "ok", Sentence("The key is removed."))

    @in_background
    async def remove(self, endpoint_id: str) -> None:
        """Remove a server and its key."""
        old = self.saved.find(endpoint_id)
        await self.saved.remove(endpoint_id)
        self.endpoints_changed.emit()
        # Without a keyring there is no key to delete. A locked one raises, after the server is removed.
        if old is None or old.may_have_key or self._engine.secrets.remembered_secret(endpoint_id) is not None:
            with suppress(KeyringMissing):
                await self._connections.remove_key(endpoint_id)
        await self._refresh_models(again=False)

    @in_background
    async def edit(self, changed: Endpoint) -> None:
        """Change title, address, dialect or mirrors; a key for other addresses is dropped first."""
        try:
            is_elsewhere = await self.saved.edit(changed)
        except AgentError as error:
            self.state_changed.emit(changed.id, "error", error.whole)
            return
        self.endpoints_changed.emit()
        if not is_elsewhere:
            await self._test(changed.id)
        await self._refresh_models(again=False)

    def test(self, endpoint_id: str) -> None:
        """Ask a server in use for its models, with its key."""
        self._tasks.start(self._test(endpoint_id))

    async def _refresh_models(self, *, again: bool) -> None:
        async def ask(endpoint: Endpoint) -> ModelGroup:
            try:
                return ModelGroup(endpoint, await self._connections.models(endpoint.id, refresh=again))
            except AgentError as error:
                return ModelGroup(endpoint, (), error.sentence)

        self._refreshing += 1
        number = self._request_number = self._request_number + 1
        try:
            # In parallel: a silent server must not hide the models of the others.
            groups = await asyncio.gather(*(ask(endpoint) for endpoint in self.endpoints))
        finally:
            self._refreshing -= 1
        # A later request may be faster, if a silent server was removed meanwhile.
        if number > self._listed_number:
            self._listed_number = number
            self.models_changed.emit(list(groups))

    def _on_listing(self, _endpoint_id: str) -> None:
        """Handle a background listing that differs from the remembered one."""
        if not self._refreshing:
            self.refresh_models()

    async def _test(self, endpoint_id: str) -> None:
        self.state_changed.emit(endpoint_id, "busy", Sentence("Asking the server for its models…"))
        try:
            models = await self._connections.models(endpoint_id, refresh=True)
            endpoint = self._connections.endpoint(endpoint_id)
        except AgentError as error:
            if not await self._move_under_v1(endpoint_id, error):
                self.state_changed.emit(endpoint_id, "error", error.whole)
            return
        if not models:
            self.state_changed.emit(endpoint_id, "error", _no_models(endpoint))
            return
        many = Sentence("It answers and has {count} models.", {"count": str(len(models))})
        sentence = Sentence("It answers and has one model.") if len(models) == 1 else many
        self.state_changed.emit(endpoint_id, "ok", sentence)

    async def _move_under_v1(self, endpoint_id: str, error: AgentError) -> bool:
        """Correct the address of a person's server that answers only under `/v1`. Return whether it was corrected."""
        old = self.saved.find(endpoint_id)
        if old is None or not lacks_listing(error):
            return False
        try:
            corrected, _ = await self._connections.check_again(endpoint_id)
            if corrected.base_url == old.base_url or self.saved.find(endpoint_id) != old:
                return False
            await self.saved.edit(corrected)
        except AgentError:
            return False
        self.endpoints_changed.emit()
        words = Sentence("It answers at {address}. That is its address from now on.", {"address": corrected.base_url})
        self.state_changed.emit(endpoint_id, "ok", words)
        return True

    async def _save(
        self, endpoint: Endpoint, key: SecretStr | None, *, session_only: bool, is_chosen: bool
    ) -> str | None:
        """Test and save a server. Return its first model, or None if it was not saved.

        Unless `is_chosen`, the server is in use: its changes meanwhile stay, and if it was removed or moved, the key is
        dropped.
        """
        given_address = endpoint.base_url
        self.state_changed.emit(
            endpoint.id, "busy", Sentence("Asking {title} for its models…", {"title": endpoint.title})
        )
        try:
            endpoint, models = await self._connections.check(endpoint, key)
            if not models:
                self.state_changed.emit(endpoint.id, "error", _no_models(endpoint))
                return None
            server = endpoint if is_chosen else self.saved.current(endpoint)
            if server is None:
                return None
            if key is not None:
                await self._connections.save_key(endpoint.id, key, session_only=session_only)
                # The keyring may have waited until the person unlocked it.
                server = endpoint if is_chosen else self.saved.current(endpoint)
            if server is None:
                await self._connections.remove_key(endpoint.id)
                return None
            model = models[0].id
            chosen = model if is_chosen else None
            await self.saved.use(server, chosen, has_new_key=key is not None, session_only=session_only)
        except SecretsUnavailable as error:
            # Without a new key, the old one of another address could not be deleted: no key can be held in memory.
            self.state_changed.emit(endpoint.id, "error" if key is None else "no_keyring", error.whole)
            return None
        except AgentError as error:
            remedy = _TYPE_MODEL if endpoint.kind == "custom" and lacks_listing(error) else error.remedy
            self.state_changed.emit(endpoint.id, "error", join_remedy(error.sentence, remedy))
            return None
        sentence = Sentence("Connected. Its address is {address}.", {"address": endpoint.base_url})
        if endpoint.base_url == given_address:
            sentence = Sentence("Connected.")
        self.state_changed.emit(endpoint.id, "ok", sentence)
        self.endpoints_changed.emit()
        self._tasks.start(self._refresh_models(again=False))
        return model


def _no_models(endpoint: Endpoint) -> Sentence:
    sentence = Sentence("{title} answered, but it has no models yet.", {"title": endpoint.title})
    return join_remedy(sentence, _NO_MODELS_REMEDIES.get(endpoint.kind, _TYPE_MODEL))
