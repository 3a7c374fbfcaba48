"""The servers in the preferences and their keys: a key stays with the addresses that it was given for."""

from contextlib import suppress

from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.endpoints import Dialect, Endpoint
from desktop_agent.vocabulary.errors import KeyringMissing, SecretsUnavailable
from desktop_agent.vocabulary.preferences import ProviderPreferences


class SavedServers:
    """Adds, changes and removes them. Every method raises StorageFailed when the preferences cannot be saved."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connections = engine.connections

    def find(self, endpoint_id: str) -> Endpoint | None:
        """One that the person added."""
        return next((each for each in self._providers.endpoints if each.id == endpoint_id), None)

    def id_for(self, address: str, mirrors: tuple[str, ...], dialect: Dialect) -> str:
        """The id of a server by its address and what it speaks there: two dialects are two servers.

        One that was since given another address or dialect keeps its id for itself.
        """
        plain = Endpoint(id=f"custom:{address}", title="", dialect=dialect, base_url=address, mirrors=mirrors)
        id_, number = plain.id, 2
        while (taken := self.find(id_)) is not None and (taken.origins, taken.dialect) != (plain.origins, dialect):
            id_, number = f"{plain.id}#{number}", number + 1
        return id_

    async def use(
        self, endpoint: Endpoint, model: str | None, *, has_new_key: bool, session_only: bool = False
    ) -> None:
        """Keep a server that answered; with a model, make both the choice of new ones. Raises SecretsUnavailable.

        `session_only`: the new key is not in the keyring.
        """
        old = self.find(endpoint.id)
        has_key: bool | None = has_new_key and not session_only
        if old is not None and not has_new_key:
            if endpoint.origins <= old.origins:
                has_key = old.has_key
            else:
                await self._drop_key(old)
        endpoint = endpoint.model_copy(update={"has_key": has_key})
        others = tuple(each for each in self._providers.endpoints if each.id != endpoint.id)
        choice = {} if model is None else {"endpoint_id": endpoint.id, "model": model}
        await self._change(endpoint.id, endpoints=(*others, endpoint), **choice)

    async def edit(self, changed: Endpoint) -> bool:
        """Another title, address, dialect or mirrors; answers whether its key was dropped.

        The key goes first: where it cannot be deleted, the address stays what it was. Raises SecretsUnavailable.
        """
        old = self.find(changed.id)
        if old is None:
            return False
        is_elsewhere = not changed.origins <= old.origins
        if is_elsewhere:
            await self._drop_key(old)
            changed = changed.model_copy(update={"has_key": False})
        endpoints = tuple(changed if each.id == changed.id else each for each in self._providers.endpoints)
        await self._change(changed.id, endpoints=endpoints)
        return is_elsewhere

    async def remove(self, endpoint_id: str) -> None:
        """Forget a server. Its key is the caller's to remove."""
        rest = tuple(each for each in self._providers.endpoints if each.id != endpoint_id)
        update: dict[str, object] = {"endpoints": rest}
        if self._providers.endpoint_id == endpoint_id:
            update |= {"endpoint_id": rest[0].id if rest else None, "model": None}
        await self._change(endpoint_id, **update)

    async def choose(self, endpoint_id: str, model: str) -> None:
        """Make this the model of the next new conversation, where the server is one that the person added."""
        if self.find(endpoint_id) is not None:
            preferences = self._engine.preferences
            providers = self._providers.model_copy(update={"endpoint_id": endpoint_id, "model": model})
            await self._engine.change_preferences(preferences.model_copy(update={"providers": providers}))

    async def servers_with_keys(self) -> tuple[str, ...]:
        """The servers whose key is held, in the keyring or, without one, in memory."""
        held: list[str] = []
        for endpoint in self._connections.endpoints():
            if not endpoint.may_have_key:
                held += [endpoint.id] if self._engine.secrets.remembered_secret(endpoint.id) is not None else []
                continue
            with suppress(SecretsUnavailable):
                if await self._engine.secrets.get(endpoint.id) is not None:
                    held.append(endpoint.id)
        return tuple(held)

    async def keyring_name(self) -> str:
        """Which keyring holds the keys, for the person. Raises SecretsUnavailable."""
        return await self._engine.secrets.find_backend()

    @property
    def _providers(self) -> ProviderPreferences:
        return self._engine.preferences.providers

    async def _change(self, changed_id: str, /, **update: object) -> None:
        preferences = self._engine.preferences
        providers = preferences.providers.model_copy(update=update)
        self._connections.forget(changed_id)
        await self._engine.change_preferences(preferences.model_copy(update={"providers": providers}))

    async def drop_key(self, endpoint_id: str) -> None:
        """Delete the key of a server, and remember that it has none. Raises SecretsUnavailable."""
        await self._connections.remove_key(endpoint_id)
        old = self.find(endpoint_id)
        if old is not None:
            without = old.model_copy(update={"has_key": False})
            endpoints = tuple(without if each is old else each for each in self._providers.endpoints)
            await self._change(endpoint_id, endpoints=endpoints)

    async def _drop_key(self, endpoint: Endpoint) -> None:
        if not endpoint.may_have_key and self._engine.secrets.remembered_secret(endpoint.id) is None:
            return
        with suppress(KeyringMissing):  # then there was none in it
            await self._connections.remove_key(endpoint.id)
