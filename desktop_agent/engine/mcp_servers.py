"""The MCP servers of one engine: running, saved with their secrets, signed in to; and answers of a model."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from desktop_agent.agent.provider_stream import AnswerSize, collect_answer
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.engine.connections import Connections
from desktop_agent.engine.mcp_connections import (
    OAuthManager,
    ServerSecrets,
    TransportFactory,
    obsolete_secrets,
    validate_secrets,
)
from desktop_agent.engine.mcp_server_instances import McpNotifier, ServerInstance, ServerTrials
from desktop_agent.engine.mcp_tools import ToolDigestStore
from desktop_agent.engine.spending import Spending
from desktop_agent.mcp.catalog import prompt_blocks, resource_blocks, visible_completions
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.config_import import ImportedServers
from desktop_agent.mcp.lifecycle import ServerContext
from desktop_agent.processes.worker_threads import wait_for_all
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import Image, Text, ToolResult, ToolUse
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed, ToolUseFailed, WrongUse
from desktop_agent.types.mcp import (
    ENGLISH_PAGE_TEXTS,
    ConsentHandlers,
    HttpConnection,
    McpLogLine,
    McpServer,
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
from desktop_agent.types.providers import ModelRequest, NoModelChosen, ProviderConfig, ToolChoice

SaveServers = Callable[[tuple[McpServer, ...]], Awaitable[object]]
"""Stores the servers in the preferences."""

READY_TIMEOUT = 15.0
"""Seconds that a run waits for servers that start; the tools of later ones come a turn later."""


class McpServers:
    """What conversations, the composer and the settings ask for: one instance of each server for each folder.

    `configured` returns the servers of the preferences; `handlers` those that answer requests of servers now.
    """

    def __init__(
        self,
        configured: Callable[[], tuple[McpServer, ...]],
        secrets: SecretStore,
        folder: Path,
        handlers: Callable[[], ServerRequestHandlers] = ServerRequestHandlers,
        private_hosts: Callable[[], frozenset[str]] = frozenset,
        client_document: str | None = None,
    ) -> None:
        self._configured = configured
        self._handlers = handlers
        self._secrets = ServerSecrets(secrets)
        self._oauth = OAuthManager(secrets, private_hosts, client_document)
        self._transports = TransportFactory(secrets, self._oauth, configured)
        self._digests = ToolDigestStore(folder)
        self.notifier = notifier = McpNotifier()
        # What the person should know: a tool that changed, a server that did not start.
        self.on_notice = notifier.notice.add
        # A failure of what the person has just agreed to; reported each time.
        self.on_failure = notifier.failure.add
        # A notice that is not true any more.
        self.on_outdated = notifier.outdated.add
        self.on_state, self.on_catalog_changed, self.on_log = notifier.state.add, notifier.catalog.add, notifier.log.add
        self._instances: dict[tuple[str, Path | None], ServerInstance] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._trials = ServerTrials(self._make_instance, notifier.state.notify)

    @property
    def notices(self) -> list[Sentence]:
        return self.notifier.notices

    def server(self, server_id: str, workspace: Path | None) -> McpClient | None:
        """Return the server for a folder; its first request starts it. None for an unknown one, or one that is off."""
        server = self._enabled().get(server_id)
        return None if server is None else self._instance(server, workspace).client

    def tools(self, workspace: Path | None) -> tuple[AnyTool, ...]:
        """Return the tools that the enabled servers offer for a folder, as far as they are known by now."""
        enabled = self._enabled()
        return tuple(
            tool
            for (server_id, folder), instance in self._instances.items()
            if folder == workspace and instance.lifecycle.server.has_same_connection(enabled.get(server_id))
            for tool in instance.offer.tools
        )

    def state(self, server_id: str, workspace: Path | None) -> McpServerState:
        """Return the state of a server for a folder, and whether somebody is signed in. Nothing is started for it."""
        state = self._state(server_id, workspace)
        return replace(state, is_signed_in=self._oauth.is_signed_in(server_id))

    def log(self, server_id: str, workspace: Path | None) -> tuple[McpLogLine, ...]:
        """Return the log of a server, oldest line first."""
        instance = self._instances.get((server_id, workspace))
        return self._trials.log(server_id, workspace) if instance is None else instance.client.log.lines

    async def ready(self, workspace: Path | None, seconds: float = READY_TIMEOUT) -> None:
        """Wait until all enabled servers have listed their tools for a folder, for at most so many seconds."""
        self.apply_settings()
        instances = [self._instance(server, workspace) for server in self._enabled().values()]
        servers = {instance.refresh(): instance.lifecycle.server for instance in instances if instance.needs_refresh}
        if servers:
            _, late = await asyncio.wait(servers, timeout=seconds)
            template = "The server “{server}” is still starting; its tools come when it is there."
            for task in late:
                notice = Sentence(template, {"server": servers[task].title})
                self.notifier.notify(notice)
                # A failure has a notice of its own.
                task.add_done_callback(lambda _, notice=notice: self.notifier.withdraw(notice))

    async def test(self, server_id: str, workspace: Path | None) -> McpServerState:
        """Start a server now, even if that failed just before, and ask it for its tools. A failure is in the state.

        A server that is off is ended again, and its tools are offered to nobody.
        """
        self.apply_settings()
        enabled, known = self._enabled().get(server_id), self._find(server_id)
        if enabled is not None:
            instance = self._instance(enabled, workspace)
            instance.lifecycle.reset_backoff()
            instance.lifecycle.is_stale = True
            await asyncio.wait([instance.refresh()])
        elif known is not None:
            await self._trials.run(known, workspace)
        return self.state(server_id, workspace)

    def apply_settings(self) -> None:
        """Close what was turned off, removed or connected otherwise; other changes hold at once."""
        enabled = self._enabled()
        self._trials.forget(frozenset(enabled), frozenset(server.id for server in self._configured()))
        for (server_id, _), instance in tuple(self._instances.items()):
            server = enabled.get(server_id)
            if server is None or not instance.lifecycle.server.has_same_connection(server):
                self._close_instances(server_id)
            elif server != instance.lifecycle.server:
                instance.apply_settings(server)
                self.notifier.state.notify(server_id)

    async def close(self) -> None:
        """End all servers and everything that they started."""
        instances = list(self._instances.values())
        self._instances.clear()
        await wait_for_all(self._trials.close(), *(instance.close() for instance in instances), *self._tasks)
        await self._oauth.close()

    async def check_sign_in(self, server_id: str) -> None:
        """Check whether the keyring has a sign-in; the server's state says so from then on."""
        server = self._find(server_id)
        if server is not None and _uses_oauth(server):
            await self._oauth.check(server)
            self.notifier.state.notify(server_id)

    async def stored_secret_names(self, server_id: str) -> frozenset[str]:
        """Return which of a server's secrets the keyring has. Raises SecretsUnavailable."""
        server = self._find(server_id)
        if server is None:
            return frozenset()
        values = {name: await self._secrets.get(server, name) for name in server.all_secret_names}
        return frozenset(name for name, value in values.items() if value is not None)

    async def add_imported(self, imported: ImportedServers, save_servers: SaveServers) -> None:
        """Add imported servers: secrets first, so that no server is there without its own.

        Raises SecretsUnavailable.
        """
        for name, value in imported.secrets.items():
            await self._secrets.store.set(name, value)
        await save_servers((*self._configured(), *imported.servers))

    async def save(self, server: McpServer, secrets: Mapping[str, SecretStr], save_servers: SaveServers) -> None:
        """Save a new or a changed server; a name without a value keeps what the keyring has.

        Raises SecretsUnavailable, and WrongUse for a value that cannot be sent.
        """
        validate_secrets(server, secrets)
        async with self._transports.locks[server.id]:
            before = self._find(server.id)
            obsolete = obsolete_secrets(before, server) - {*secrets} if before else set[str]()
            stored = {name: await self._secrets.get(server, name) for name in (*secrets, *obsolete)}
            try:
                # Before the server is saved: a keyring that fails must not leave obsolete secrets to the new one.
                await self._secrets.write(server, {**dict.fromkeys(sorted(obsolete)), **secrets})
                # Read after the keyring has answered: other servers may have been saved meanwhile.
                await save_servers(_replace_server(self._configured(), before, server))
            except BaseException:
                # Else what was meant for the new address would go to the old one.
                await self._secrets.restore(server, stored if self._find(server.id) else dict.fromkeys(stored))
                raise
        if secrets:
            self._close_instances(server.id)
        if before and _http_url(before) and (_http_url(before) != _http_url(server) or not _uses_oauth(server)):
            await self._sign_out(before)

    async def remove(self, server_id: str, save_servers: SaveServers) -> None:
        """Remove a server with its secrets. Raises SecretsUnavailable; the server stays then."""
        for server in self._servers_of(server_id):
            await self._secrets.write(server, dict.fromkeys(server.all_secret_names))
            # Also where it signs in no more: the next server of this id would find what lies there.
            if _http_url(server):
                await self._sign_out(server)
        await save_servers(tuple(server for server in self._configured() if server.id != server_id))
        self._close_instances(server_id)

    async def sign_in(
        self, server_id: str, open_page: Callable[[str], None], page_texts: SignInPageTexts = ENGLISH_PAGE_TEXTS
    ) -> McpServerState:
        """Have the person sign in, then start the server in the folders that use it. A failure is in the state."""
        server = self._enabled().get(server_id)
        if server is None:
            return self.state(server_id, None)
        folders = tuple(folder for running_id, folder in self._instances if running_id == server_id) or (None,)
        try:
            await self._oauth.sign_in(server, open_page, page_texts)
        except AgentError as error:
            return McpServerState(server_id, "signed_out", reason=error.sentence, remedy=error.remedy)
        self._close_instances(server_id)
        return (await asyncio.gather(*(self.test(server_id, folder) for folder in folders)))[0]

    async def sign_out(self, server_id: str) -> None:
        """Delete the tokens, and revoke them at the server in the background. Raises SecretsUnavailable."""
        for server in self._servers_of(server_id):
            await self._sign_out(server)
        self._close_instances(server_id)

    async def read_resource(self, server_id: str, workspace: Path | None, uri: str) -> tuple[Text | Image, ...]:
        """Return the contents of a resource. Raises ToolFailed."""
        client = self._require_client(server_id, workspace)
        return await resource_blocks(await client.read_resource(uri), client.log.redact)

    async def get_prompt(
        self, server_id: str, workspace: Path | None, name: str, arguments: dict[str, str]
    ) -> tuple[Text | Image, ...]:
        """Return a prompt with its arguments filled in. Raises ToolFailed."""
        client = self._require_client(server_id, workspace)
        return await prompt_blocks(await client.get_prompt(name, arguments), client.log.redact)

    async def complete(
        self,
        server_id: str,
        workspace: Path | None,
        prompt_or_template: str,
        argument: str,
        value: str,
        others: Mapping[str, str] = {},
    ) -> tuple[str, ...]:
        """Return completions of an argument that begins with `value`; `others` are filled in. Raises ToolFailed."""
        client = self._require_client(server_id, workspace)
        return visible_completions(await client.complete(prompt_or_template, argument, value, others))

    def _require_client(self, server_id: str, workspace: Path | None) -> McpClient:
        client = self.server(server_id, workspace)
        if client is None:
            sentence = Sentence("There is no server “{server}” that is on.", {"server": server_id})
            raise ToolFailed(sentence, "Turn it on in the settings.")
        return client

    def _enabled(self) -> dict[str, McpServer]:
        return {server.id: server for server in reversed(self._configured()) if server.on}

    def _servers_of(self, server_id: str) -> list[McpServer]:
        return [server for server in self._configured() if server.id == server_id]

    def _find(self, server_id: str) -> McpServer | None:
        return next(iter(self._servers_of(server_id)), None)

    def _state(self, server_id: str, workspace: Path | None) -> McpServerState:
        server, instance = self._enabled().get(server_id), self._instances.get((server_id, workspace))
        if server is None:
            known = self._find(server_id)
            return self._trials.state(known, workspace) if known is not None else McpServerState(server_id, "off")
        if instance is None or not instance.lifecycle.server.has_same_connection(server):
            return McpServerState(server_id, "idle")
        state, offer, failure = instance.lifecycle.state, instance.offer, instance.failure
        if failure is not None and state.state in ("idle", "running"):
            state = replace(state, state="failed", reason=failure.sentence, remedy=failure.remedy)
        return replace(state, tools=offer.listed, unusable_tools=offer.unusable)

    def _instance(self, server: McpServer, workspace: Path | None) -> ServerInstance:
        instance = self._instances.get((server.id, workspace))
        if instance is None or not instance.lifecycle.server.has_same_connection(server):
            instance = self._instances[(server.id, workspace)] = self._make_instance(server, workspace)
            instance.lifecycle.on_tools_changed = instance.schedule_refresh
        return instance

    def _make_instance(self, server: McpServer, workspace: Path | None) -> ServerInstance:
        context = ServerContext(
            partial(self._transports.transport, server, workspace),
            workspace,
            self._handlers,
            partial(self.notifier.log.notify, server.id),
            self.notifier.notify_failure,
            self._transports.private_hosts,
        )
        return ServerInstance(server, context, self._digests, self.notifier)

    def _close_instances(self, server_id: str) -> None:
        """Close a server in all folders; it is started anew when it is needed again."""
        for key in [key for key in self._instances if key[0] == server_id]:
            self._run_in_background(self._instances.pop(key).close())
        self.notifier.state.notify(server_id)

    async def _sign_out(self, server: McpServer) -> None:
        record = await self._oauth.sign_out(server)
        if record is not None:
            self._run_in_background(self._oauth.revoke(record))

    def _run_in_background(self, work: Awaitable[object]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _replace_server(
    servers: tuple[McpServer, ...], before: McpServer | None, server: McpServer
) -> tuple[McpServer, ...]:
    if not any(known.id == server.id for known in servers):
        if before is not None:
            sentence = Sentence("The server “{server}” was removed meanwhile.", {"server": server.title})
            raise WrongUse(sentence, "Add it again if you want it.")
        return (*servers, server)
    return tuple(server if known.id == server.id else known for known in servers)


def _uses_oauth(server: McpServer) -> bool:
    return isinstance(server.connection, HttpConnection) and server.connection.sign_in


def _http_url(server: McpServer) -> str | None:
    return server.connection.url if isinstance(server.connection, HttpConnection) else None


MAX_TOKENS = 8_192
"""Of one sampling answer, whatever the server wants."""
_MAX_CHARACTERS = 400_000


@dataclass(frozen=True, slots=True)
class SamplingTarget:
    """The model that answers a server, and the conversation and the folder of work that its answer counts for.

    An empty text: it is not known, or must not be stored.
    """

    endpoint_id: str | None
    model: str | None
    conversation_id: str = ""
    project: str = ""


class SamplingHandler:
    """Answers a server's sampling requests with one request to a model, without tools of this program.

    `find_target` takes the id of the conversation for which the server asks, None where it is not known.
    """

    def __init__(
        self,
        consent: Callable[[], ConsentHandlers],
        find_target: Callable[[str | None], SamplingTarget],
        connections: Connections,
        spending: Spending,
    ) -> None:
        self._consent = consent
        self._find_target = find_target
        self._connections = connections
        self._spending = spending

    def handlers(self) -> ServerRequestHandlers:
        """Return who answers requests now; no model answers where nobody could agree to it."""
        consent = self._consent()
        can_agree = consent.approve_sampling is not None and consent.approve_answer is not None
        return ServerRequestHandlers(consent.elicit, self.sample if can_agree else None)

    async def sample(self, request: SamplingRequest, on_usage: UsageListener) -> SamplingAnswer | None:
        """Return the model's answer, or None where the person did not agree. Raises what the model's server raises."""
        consent = self._consent()
        if consent.approve_sampling is None or consent.approve_answer is None:
            return None
        target = self._find_target(request.conversation_id)
        # Before the person is asked for what could not be sent, and again before it is: both may take long.
        await self._spending.check(target.endpoint_id, target.conversation_id)
        bounded = replace(
            request,
            max_tokens=max(1, min(request.max_tokens, MAX_TOKENS)),
            answering_model=self._describe_model(target.endpoint_id, target.model),
        )
        if not await consent.approve_sampling(bounded):
            return None
        answer = await self._ask(target, bounded, on_usage)
        return answer if await consent.approve_answer(bounded, answer) else None

    def _describe_model(self, endpoint_id: str | None, model: str | None) -> SamplingModel | None:
        if endpoint_id is None or not model:
            return None
        try:
            endpoint = self._connections.endpoint(endpoint_id)
        except WrongUse:
            return None
        known = self._connections.known_model(endpoint_id, model)
        if known is None:
            return SamplingModel(endpoint.title, model, model)
        return SamplingModel(endpoint.title, model, known.title or model, known.price)

    async def _ask(self, target: SamplingTarget, request: SamplingRequest, on_usage: UsageListener) -> SamplingAnswer:
        endpoint_id, model = target.endpoint_id, target.model
        if endpoint_id is None or not model:
            raise NoModelChosen("No model is chosen.")
        await self._spending.check(endpoint_id, target.conversation_id)
        provider = await self._connections.provider(endpoint_id)
        config = ProviderConfig(max_tokens=request.max_tokens, system_prompt=request.system_prompt or None)
        model_request = ModelRequest(
            model, _to_messages(request), request.tools, ToolChoice(request.tool_choice), config, text_only=True
        )
        answer = AnswerBuilder(new_id(), model)
        try:
            await collect_answer(provider.stream(model_request), answer, AnswerSize(_MAX_CHARACTERS))
        finally:
            self._spending.count(endpoint_id, provider, answer, target.project)
            if answer.total_usage is not None:
                on_usage(answer.total_usage)
        message = answer.message(MessageState.COMPLETE, now())
        names = {tool.name for tool in request.tools}
        if any(call.malformed is not None or call.name not in names for call in message.tool_uses):
            raise ToolUseFailed(Sentence("it asked for a tool of the server in a way that cannot be read."))
        is_truncated = message.stop_reason in TRUNCATED_STOP_REASONS
        return SamplingAnswer(message.text, model, message.usage, is_truncated, message.tool_uses)


def _to_messages(request: SamplingRequest) -> tuple[Message, ...]:
    """Convert the entries: calls join the answer that they belong to, and results join into one message."""
    messages: list[Message] = []
    for role, content in request.messages:
        last = messages[-1] if messages else None
        match content:
            case str():
                messages.append(Message.user(content) if role == "user" else Message.assistant(content))
            case ToolUse() if last is not None and last.role is Role.ASSISTANT:
                messages[-1] = last.model_copy(update={"blocks": (*last.blocks, content)})
            case ToolResult() if last is not None and last.role is Role.TOOL:
                messages[-1] = last.model_copy(update={"blocks": (*last.blocks, content)})
            case ToolUse():
                messages.append(Message(role=Role.ASSISTANT, blocks=(content,)))
            case ToolResult():
                messages.append(Message.tool_results((content,)))
    return tuple(messages)
