"""Which servers there are, which keys open them, which models they have."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import SecretStr

from desktop_agent.providers.connect import make_provider
from desktop_agent.providers.demo.server import DemoServer
from desktop_agent.providers.provider import Provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.vocabulary.endpoints import CLOUD_PROVIDERS, LOCAL_SERVERS, Endpoint
from desktop_agent.vocabulary.errors import AgentError, AuthenticationFailed, SecretsUnavailable, WrongUse
from desktop_agent.vocabulary.preferences import Preferences
from desktop_agent.vocabulary.requests import ModelInfo

DEMO = "demo"
# A local server that answers at all answers at once; in seconds.
_DISCOVERY_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A local server and its models, or None where nobody answered."""

    endpoint: Endpoint
    models: tuple[ModelInfo, ...] | None


class Connections:
    """Makes providers from endpoints and keys. `given` and its key hold for this run only and are never saved."""

    def __init__(
        self,
        secrets: SecretStore,
        http: HttpClient,
        preferences: Callable[[], Preferences],
        *,
        given: Endpoint | None = None,
        given_key: SecretStr | None = None,
    ) -> None:
        self._secrets = secrets
        self._http = http
        self._preferences = preferences
        self._given = given
        self._given_key = given_key
        self._providers: dict[str, Provider] = {}
        self._models: dict[str, tuple[ModelInfo, ...]] = {}
        self._demo = DemoServer()
        self._demo_endpoint: Endpoint | None = None
        self._starting_demo = asyncio.Lock()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The servers in use: the one of the command line, then those the person added."""
        added = self._preferences().providers.endpoints
        first = () if self._given is None else (self._given,)
        demo = () if self._demo_endpoint is None else (self._demo_endpoint,)
        return (*first, *added, *demo)

    def endpoint(self, endpoint_id: str) -> Endpoint:
        """One of them, or a preset. Raises WrongUse."""
        for endpoint in (*self.endpoints(), *LOCAL_SERVERS, *CLOUD_PROVIDERS):
            if endpoint.id == endpoint_id:
                return endpoint
        raise WrongUse(f"The server “{endpoint_id}” is no longer set up.", "Choose another model.")

    async def start_demo(self) -> Endpoint:
        """The demo's loopback server, started on first use."""
        async with self._starting_demo:
            if self._demo_endpoint is None:
                base_url = await self._demo.start()
                self._demo_endpoint = Endpoint(id=DEMO, title="Demo (offline)", base_url=base_url, kind="demo")
            return self._demo_endpoint

    async def provider(self, endpoint_id: str) -> Provider:
        """The provider for this endpoint. Raises WrongUse, SecretsUnavailable, AuthenticationFailed."""
        if endpoint_id == DEMO:
            await self.start_demo()
        if endpoint_id not in self._providers:
            endpoint = self.endpoint(endpoint_id)
            key = await self._key_for(endpoint)
            if key is None and endpoint.needs_key:
                raise AuthenticationFailed(f"there is no key for {endpoint.title} yet.")
            self._providers[endpoint_id] = self._make(endpoint, key)
        return self._providers[endpoint_id]

    async def models(self, endpoint_id: str, *, refresh: bool = False) -> tuple[ModelInfo, ...]:
        """The models of this endpoint, remembered until refreshed. Raises ProviderError and what `provider` raises."""
        if refresh or endpoint_id not in self._models:
            provider = await self.provider(endpoint_id)
            self._models[endpoint_id] = await provider.list_models()
        return self._models[endpoint_id]

    def known_model(self, endpoint_id: str, model: str) -> ModelInfo | None:
        """What is known about a model without asking anybody."""
        return next((each for each in self._models.get(endpoint_id, ()) if each.id == model), None)

    async def check(self, endpoint: Endpoint, key: SecretStr | None) -> tuple[ModelInfo, ...]:
        """Ask the server for its models with this key, without keeping anything. Raises ProviderError."""
        return await self._make(endpoint, key).list_models()

    async def keep_key(self, endpoint_id: str, key: SecretStr, *, session_only: bool = False) -> None:
        """Store a key in the keyring, or in memory when the person chose so. Raises SecretsUnavailable."""
        if session_only:
            self._secrets.remember_for_session(endpoint_id, key)
        else:
            await self._secrets.set(endpoint_id, key)
        self.forget(endpoint_id)

    async def remove_key(self, endpoint_id: str) -> None:
        """Delete it. Raises SecretsUnavailable."""
        await self._secrets.delete(endpoint_id)
        self.forget(endpoint_id)

    def forget(self, endpoint_id: str) -> None:
        """Make the provider anew next time."""
        self._providers.pop(endpoint_id, None)
        self._models.pop(endpoint_id, None)

    async def find_local(self) -> tuple[FoundServer, ...]:
        """Who of the known local servers answers on loopback."""

        async def ask(endpoint: Endpoint) -> FoundServer:
            try:
                async with asyncio.timeout(_DISCOVERY_PATIENCE):
                    return FoundServer(endpoint, await self._make(endpoint, None).list_models())
            except (AgentError, TimeoutError):
                return FoundServer(endpoint, None)

        return tuple(await asyncio.gather(*(ask(endpoint) for endpoint in LOCAL_SERVERS)))

    async def warm_up(self) -> None:
        """Load the HTTP client now, in a thread, so that the first question does not wait for it."""
        await self._http.warm_up()

    async def close(self) -> None:
        """End the demo and all connections."""
        await self._demo.aclose()
        await self._http.aclose()

    def _make(self, endpoint: Endpoint, key: SecretStr | None) -> Provider:
        return make_provider(endpoint.dialect, endpoint.base_url, key, self._http)

    async def _key_for(self, endpoint: Endpoint) -> SecretStr | None:
        """A key goes only to the server it was given for."""
        if endpoint.kind == "demo":
            return None
        if endpoint == self._given:
            return self._given_key or await self._key_of_same_server(endpoint)
        try:
            return await self._secrets.get(endpoint.id)
        except SecretsUnavailable:
            if endpoint.needs_key:
                raise
            return None

    async def _key_of_same_server(self, given: Endpoint) -> SecretStr | None:
        for endpoint in (*self._preferences().providers.endpoints, *CLOUD_PROVIDERS):
            if endpoint.base_url.rstrip("/") == given.base_url.rstrip("/"):
                try:
                    return await self._secrets.get(endpoint.id)
                except SecretsUnavailable:
                    return None
        return None


def key_from_environment(variable: str) -> SecretStr | None:
    """A key given for this run, or None when the variable is unset or empty."""
    value = os.environ.get(variable, "")
    return SecretStr(value) if value else None
