"""The MCP servers of one engine: configured, saved with their secrets, signed in to, asked; and sampling by the model
in use.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from desktop_agent.agent.provider_stream import AnswerSize, validated_events
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.engine.connections import Connections
from desktop_agent.engine.mcp_connections import OAuthManager, TransportFactory
from desktop_agent.engine.mcp_server_pool import ConfiguredServers, McpServerPool
from desktop_agent.engine.mcp_tools import ToolDigestStore
from desktop_agent.mcp.catalog import (
    complete_argument,
    load_catalog,
    prompt_blocks,
    resource_blocks,
)
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.config_import import ImportedServers
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.blocks import Image, Text, ToolResult, ToolUse
from desktop_agent.types.errors import (
    AgentError,
    KeyringMissing,
    SecretsUnavailable,
    Sentence,
    ToolFailed,
    ToolUseFailed,
    WrongUse,
)
from desktop_agent.types.mcp import (
    CLIENT_SECRET,
    ENGLISH_PAGE_TEXTS,
    ConsentHandlers,
    HttpConnection,
    McpServer,
    McpServerCatalog,
    McpServerState,
    SamplingAnswer,
    SamplingModel,
    SamplingRequest,
    ServerRequestHandlers,
    SignInPageTexts,
    UsageListener,
)
from desktop_agent.types.messages import Message, MessageState, Role, new_id, now
from desktop_agent.types.provider_events import TRUNCATED_STOP_REASONS
from desktop_agent.types.providers import ModelRequest, ProviderConfig, ToolChoice
from desktop_agent.types.tool_calls import ToolSpec

SaveServers = Callable[[tuple[McpServer, ...]], Awaitable[object]]
"""Stores the servers in the preferences."""

_UNSENDABLE_CHARACTERS = re.compile(r"[\r\n\0]")


class McpServers(McpServerPool):
    """What conversations, the composer and the settings ask for."""

    def __init__(
        self,
        configured: ConfiguredServers,
        secrets: SecretStore,
        folder: Path,
        people: Callable[[], ServerRequestHandlers] = ServerRequestHandlers,
        private_hosts: Callable[[], frozenset[str]] = frozenset,
        document: str | None = None,
    ) -> None:
        self._oauth = OAuthManager(secrets, private_hosts, document)
        super().__init__(
            configured, TransportFactory(secrets, self._oauth, configured), ToolDigestStore(folder), people
        )
        self._secrets = secrets

    async def close(self) -> None:
        """End all servers and all that they started."""
        await super().close()
        await self._oauth.close()

    def state(self, server_id: str, workspace: Path | None) -> McpServerState:
        """How a server is for this folder, and whether a sign-in is kept for it. Nothing is started for it."""
        state = super().state(server_id, workspace)
        return replace(state, is_signed_in=self._oauth.is_signed_in(server_id))

    async def check_sign_in(self, server_id: str) -> None:
        """Look whether a sign-in is kept for it; its state says so from then on."""
        server = self._find(server_id)
        if server is not None and _uses_oauth(server):
            await self._oauth.check(server)
            self._notify_state(server_id)

    async def stored_secret_names(self, server_id: str) -> frozenset[str]:
        """Of the secrets of a server those whose values are there. Raises SecretsUnavailable."""
        held: set[str] = set()
        server = self._find(server_id)
        for name in server.all_secret_names if server is not None else ():
            # Without a keyring nothing can lie there.
            with suppress(KeyringMissing):
                if server is not None and await self._secrets.get(server.keyring_name(name)) is not None:
                    held.add(name)
        return frozenset(held)

    async def add_imported(self, found: ImportedServers, keep: SaveServers) -> None:
        """Take over what was imported: secrets first, so that no server is there without its own.

        Raises SecretsUnavailable.
        """
        for name, value in found.secrets.items():
            await self._secrets.set(name, value)
        await keep((*self._configured(), *found.servers))

    async def save(self, server: McpServer, secrets: Mapping[str, SecretStr], keep: SaveServers) -> None:
        """Take it over, new or changed; a name without a value keeps what the keyring has.

        Raises SecretsUnavailable, and WrongUse for a value that cannot be sent.
        """
        _validate_secrets(server, secrets)
        async with self._transports.locks[server.id]:
            before = self._find(server.id)
            gone = _obsolete_secrets(before, server) - {*secrets} if before else set[str]()
            held = {name: await self._stored_secret(server, name) for name in (*secrets, *gone)}
            try:
                # Before it is kept: a keyring that fails must not leave them to whoever comes next.
                await self._delete_secrets(server, gone)
                for name, value in secrets.items():
                    await self._secrets.set(server.keyring_name(name), value)
                # After the keyring, for which others may have been saved meanwhile.
                await keep(_replace_server(self._configured(), before, server))
            except BaseException:
                # Else what was meant for the new address would go to the old one.
                await self._restore_secrets(server, held if self._find(server.id) else dict.fromkeys(held))
                raise
        if secrets:
            self._close_instances(server.id)
        if before and _http_url(before) and (_http_url(before) != _http_url(server) or not _uses_oauth(server)):
            self._run_in_background((await self._oauth.sign_out(before))())

    async def remove(self, server_id: str, keep: SaveServers) -> None:
        """Remove it with its secrets. Raises SecretsUnavailable; the server is there as before then."""
        for server in [each for each in self._configured() if each.id == server_id]:
            await self._delete_secrets(server, set(server.all_secret_names))
            # Also where it signs in no more: what lies there would be found by the next server of this id.
            if _http_url(server):
                self._run_in_background((await self._oauth.sign_out(server))())
        await keep(tuple(each for each in self._configured() if each.id != server_id))
        self._close_instances(server_id)

    async def sign_in(
        self, server_id: str, open_page: Callable[[str], None], words: SignInPageTexts = ENGLISH_PAGE_TEXTS
    ) -> McpServerState:
        """Have the person sign in, then start the server where it was wanted. What fails is in the state.

        The browser shows `words` at the end.
        """
        server = self._enabled().get(server_id)
        if server is None:
            return self.state(server_id, None)
        folders = self._folders_of(server_id)
        try:
            await self._oauth.sign_in(server, open_page, words)
        except AgentError as error:
            return McpServerState(server_id, "signed_out", reason=error.sentence, remedy=error.remedy)
        self._close_instances(server_id)
        return (await asyncio.gather(*(self.test(server_id, each) for each in folders)))[0]

    async def sign_out(self, server_id: str) -> None:
        """Forget who the person is there; the server is told, where it listens. Raises SecretsUnavailable."""
        for server in [each for each in self._configured() if each.id == server_id]:
            self._run_in_background((await self._oauth.sign_out(server))())
        self._close_instances(server_id)

    async def contents(self, workspace: Path | None) -> tuple[McpServerCatalog, ...]:
        """What the servers that are on offer beside tools; one that fails is left out, and its state says why."""

        async def of(live: McpClient) -> McpServerCatalog | None:
            try:
                return await load_catalog(live)
            except AgentError:
                return None

        self.apply_settings()
        places = [self._instance(config, workspace).client for config in self._enabled().values()]
        return tuple(each for each in await asyncio.gather(*map(of, places)) if each is not None)

    async def read_resource(self, server_id: str, workspace: Path | None, uri: str) -> tuple[Text | Image, ...]:
        """What lies at an address of the server. Raises ToolFailed."""
        live = self._require_client(server_id, workspace)
        return await resource_blocks(await live.read_resource(uri), live.log.redact)

    async def get_prompt(
        self, server_id: str, workspace: Path | None, name: str, arguments: dict[str, str]
    ) -> tuple[Text | Image, ...]:
        """A prompt that is ready, filled in. Raises ToolFailed."""
        live = self._require_client(server_id, workspace)
        return await prompt_blocks(await live.get_prompt(name, arguments), live.log.redact)

    async def complete(
        self,
        server_id: str,
        workspace: Path | None,
        prompt_or_template: str,
        argument: str,
        value: str,
        others: Mapping[str, str] = {},
    ) -> tuple[str, ...]:
        """What an argument could be, once `value` is written; `others` are filled in already. Raises ToolFailed."""
        live = self._require_client(server_id, workspace)
        return await complete_argument(live, prompt_or_template, argument, value, others)

    def _require_client(self, server_id: str, workspace: Path | None) -> McpClient:
        live = self.server(server_id, workspace)
        if live is None:
            what = Sentence("There is no server “{server}” that is on.", {"server": server_id})
            raise ToolFailed(what, "Turn it on in the settings.")
        return live

    async def _stored_secret(self, server: McpServer, name: str) -> SecretStr | None:
        # Without a keyring nothing can lie there.
        with suppress(KeyringMissing):
            return await self._secrets.get(server.keyring_name(name))
        return None

    async def _restore_secrets(self, server: McpServer, held: Mapping[str, SecretStr | None]) -> None:
        for name, value in held.items():
            with suppress(SecretsUnavailable):
                if value is None:
                    await self._secrets.delete(server.keyring_name(name))
                else:
                    await self._secrets.set(server.keyring_name(name), value)

    async def _delete_secrets(self, server: McpServer, names: set[str]) -> None:
        for name in sorted(names):
            # Without a keyring nothing can lie there.
            with suppress(KeyringMissing):
                await self._secrets.delete(server.keyring_name(name))


def _validate_secrets(server: McpServer, secrets: Mapping[str, SecretStr]) -> None:
    for name, value in secrets.items():
        values = {"name": name}
        if name not in server.all_secret_names:
            raise WrongUse(Sentence("The server has no secret “{name}”.", values), "Name it among them.")
        if not value.get_secret_value() or _UNSENDABLE_CHARACTERS.search(value.get_secret_value()):
            what = Sentence("The value of “{name}” is empty, or has more than one line.", values)
            raise WrongUse(what, "Copy it again, without line breaks.")


def _obsolete_secrets(before: McpServer, server: McpServer) -> set[str]:
    """The secrets of the server as it was that the server as it shall be does not get."""
    gone = {*before.all_secret_names} - {*server.all_secret_names}
    if _client_identity(before) != _client_identity(server):
        # It was given for that id at that address, and goes to no other.
        gone.add(CLIENT_SECRET)
    # What was entered for one program or host is given to no other unseen.
    return gone | {*server.all_secret_names} if _secret_recipient(before) != _secret_recipient(server) else gone


def _replace_server(known: tuple[McpServer, ...], before: McpServer | None, server: McpServer) -> tuple[McpServer, ...]:
    if not any(each.id == server.id for each in known):
        if before is not None:
            what = Sentence("The server “{server}” was removed meanwhile.", {"server": server.title})
            raise WrongUse(what, "Add it again if you want it.")
        return (*known, server)
    return tuple(server if each.id == server.id else each for each in known)


def _uses_oauth(server: McpServer) -> bool:
    return isinstance(server.connection, HttpConnection) and server.connection.sign_in


def _client_identity(server: McpServer) -> tuple[str, str] | None:
    connection = server.connection
    known = isinstance(connection, HttpConnection) and connection.client_id
    return (connection.url, connection.client_id) if isinstance(connection, HttpConnection) and known else None


def _secret_recipient(server: McpServer) -> tuple[str, ...]:
    """The program, or the host with its way and its port, that is given the secrets."""
    if not isinstance(server.connection, HttpConnection):
        # With its arguments: `npx` alone, or `python`, is any program.
        return (server.connection.command, *server.connection.args)
    parts = urlsplit(server.connection.url)
    return (parts.scheme, parts.netloc.rpartition("@")[2].lower())


def _http_url(server: McpServer) -> str | None:
    return server.connection.url if isinstance(server.connection, HttpConnection) else None


MAX_TOKENS = 8_192
"""Of one answer, whatever the server wants."""
_MAX_CHARACTERS = 400_000


class SamplingHandler:
    """Asks the model in use, once; no tool of ours is offered to it.

    `chosen` is the ids of an endpoint and a model, or None each.
    """

    def __init__(
        self,
        people: Callable[[], ConsentHandlers],
        chosen: Callable[[], tuple[str | None, str | None]],
        connections: Connections,
    ) -> None:
        self._consent = people
        self._chosen_model = chosen
        self._connections = connections

    def handlers(self) -> ServerRequestHandlers:
        """Who answers now; no model where nobody could agree to it."""
        people = self._consent()
        can_agree = people.approve_sampling is not None and people.approve_answer is not None
        return ServerRequestHandlers(people.elicit, self.sample if can_agree else None)

    async def sample(self, request: SamplingRequest, spent: UsageListener) -> SamplingAnswer | None:
        """What the model said, once the person let it pass; else None. Raises what the model's server raises."""
        people = self._consent()
        if people.approve_sampling is None or people.approve_answer is None:
            return None
        endpoint_id, model = self._chosen_model()
        wanted = replace(
            request,
            max_tokens=max(1, min(request.max_tokens, MAX_TOKENS)),
            answering_model=self._describe_model(endpoint_id, model),
        )
        if not await people.approve_sampling(wanted):
            return None
        if endpoint_id is None or not model:
            raise WrongUse("No model is chosen.", "Choose a model first.")
        answer = await self._ask(endpoint_id, model, wanted, spent)
        return answer if await people.approve_answer(wanted, answer) else None

    def _describe_model(self, endpoint_id: str | None, model: str | None) -> SamplingModel | None:
        if endpoint_id is None or not model:
            return None
        try:
            endpoint = self._connections.endpoint(endpoint_id)
        except WrongUse:
            return None
        known = self._connections.known_model(endpoint_id, model)
        title = (known.title if known is not None else None) or model
        return SamplingModel(endpoint.title, model, title, known.price if known is not None else None)

    async def _ask(self, endpoint_id: str, model: str, wanted: SamplingRequest, spent: UsageListener) -> SamplingAnswer:
        provider = await self._connections.provider(endpoint_id)
        config = ProviderConfig(max_tokens=wanted.max_tokens, system_prompt=wanted.system_prompt or None)
        tools = tuple(ToolSpec(each.name, each.description, each.schema) for each in wanted.tools)
        asked = ModelRequest(model, _to_messages(wanted), tools, ToolChoice(wanted.tool_choice), config)
        answer = AnswerBuilder(new_id(), model)
        stream = validated_events(provider.stream(asked), AnswerSize(_MAX_CHARACTERS))
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    answer.feed(event, now())
        finally:
            if answer.total_usage is not None:
                spent(answer.total_usage)
        said = answer.message(MessageState.COMPLETE, now())
        names = {each.name for each in wanted.tools}
        if any(each.malformed is not None or each.name not in names for each in said.tool_uses):
            raise ToolUseFailed("it asked for a tool of the server in a way that cannot be read.")
        return SamplingAnswer(said.text, model, said.usage, said.stop_reason in TRUNCATED_STOP_REASONS, said.tool_uses)


def _to_messages(wanted: SamplingRequest) -> tuple[Message, ...]:
    """Calls stand in the answer that they belong to, and what came of them together."""
    made: list[Message] = []
    for role, said in wanted.messages:
        last = made[-1] if made else None
        match said:
            case str():
                made.append(Message.user(said) if role == "user" else Message.assistant(said))
            case ToolUse() if last is not None and last.role is Role.ASSISTANT:
                made[-1] = last.model_copy(update={"blocks": (*last.blocks, said)})
            case ToolResult() if last is not None and last.role is Role.TOOL:
                made[-1] = last.model_copy(update={"blocks": (*last.blocks, said)})
            case ToolUse():
                made.append(Message(role=Role.ASSISTANT, blocks=(said,)))
            case ToolResult():
                made.append(Message.tool_results((said,)))
    return tuple(made)
