"""Between MCP servers and the person: elicitation and sampling one way, prompts and resources the other."""

import asyncio
import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, SignalInstance

from desktop_agent.engine.engine import Engine
from desktop_agent.mcp.catalog import load_catalog
from desktop_agent.types.blocks import Base64Source, Image, Text
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed
from desktop_agent.types.mcp import (
    ConsentHandlers,
    ElicitationAnswer,
    ElicitationRequest,
    McpServerCatalog,
    SamplingAnswer,
    SamplingRequest,
)
from desktop_agent.types.messages import new_id
from ui.bridge.event_loop import BackgroundTasks


@dataclass(frozen=True, slots=True)
class PendingElicitation:
    """A form to fill in, or a page to open."""

    id: str
    request: ElicitationRequest


@dataclass(frozen=True, slots=True)
class PendingSampling:
    """A request to a model to approve; with `answer`, the model's answer to approve for the server."""

    id: str
    request: SamplingRequest
    answer: SamplingAnswer | None = None


McpRequest = PendingElicitation | PendingSampling


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """The conversation that a request belongs to. `title` is "" where it is in view, or not known."""

    title: str = ""
    can_stop: bool = False


_CANCELLED = ElicitationAnswer("cancel")


class McpRequests(QObject):
    """The waiting requests, oldest first. Those of a call that ended are withdrawn automatically."""

    changed = Signal()
    began_in = Signal(str)
    """The id of the conversation whose call a new request comes from, where that is known."""
    ended_in = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: dict[str, tuple[McpRequest, asyncio.Future[Any]]] = {}
        self._is_closed = False

    @property
    def consent_handlers(self) -> ConsentHandlers:
        """The callbacks for the engine."""
        return ConsentHandlers(self._elicit, self._approve_sampling, self._approve_answer)

    @property
    def waiting(self) -> tuple[McpRequest, ...]:
        """Oldest first."""
        return tuple(request for request, _ in self._waiting.values())

    def wait_in(self, conversation_id: str) -> bool:
        """Return whether a request of a call of this conversation waits."""
        return any(request.request.conversation_id == conversation_id for request in self.waiting)

    def answer(self, request_id: str, answer: ElicitationAnswer | bool) -> None:  # noqa: FBT001  # a slot
        """Answer a form or a page, or with a bool a sampling request; ignored if it no longer waits."""
        request, future = self._waiting.pop(request_id, (None, None))
        if request is None or future is None:
            return
        if not future.done():
            future.set_result(answer)
        self._emit_changed(self.ended_in, request)

    def refuse(self, request_id: str) -> None:
        """Decline a form or a page, or deny a sampling request; ignored if it no longer waits."""
        request, _ = self._waiting.get(request_id, (None, None))
        self.answer(request_id, ElicitationAnswer("decline") if isinstance(request, PendingElicitation) else False)

    def close(self) -> None:
        """Cancel all waiting and future requests."""
        self._is_closed = True
        # Clear the list first: no request may be shown any more while the others are cancelled.
        waiting, self._waiting = self._waiting, {}
        for request, future in waiting.values():
            if not future.done():
                future.set_result(_CANCELLED if isinstance(request, PendingElicitation) else False)
        self._emit_changed(self.ended_in, *(request for request, _ in waiting.values()))

    async def _elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        return await self._wait_for_answer(lambda id_: PendingElicitation(id_, request), _CANCELLED)

    async def _approve_sampling(self, request: SamplingRequest) -> bool:
        return await self._wait_for_answer(lambda id_: PendingSampling(id_, request), otherwise=False)

    async def _approve_answer(self, request: SamplingRequest, answer: SamplingAnswer) -> bool:
        return await self._wait_for_answer(lambda id_: PendingSampling(id_, request, answer), otherwise=False)

    async def _wait_for_answer(self, create: Callable[[str], McpRequest], otherwise: Any) -> Any:
        if self._is_closed:
            return otherwise
        request = create(new_id())
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = (request, future)
        self._emit_changed(self.began_in, request)
        try:
            return await future
        finally:
            if self._waiting.pop(request.id, None) is not None:
                self._emit_changed(self.ended_in, request)

    def _emit_changed(self, began_or_ended: SignalInstance, *requests: McpRequest) -> None:
        self.changed.emit()
        for request in requests:
            if request.request.conversation_id is not None:
                began_or_ended.emit(request.request.conversation_id)


MAX_RESOURCE_CHARACTERS = 200_000
"""Characters of one resource: some 50,000 tokens."""
_RESOURCE_HEAD = "[resource: "
_OMITTED_HEAD = "[left out: "


@dataclass(frozen=True, slots=True)
class ServerCatalog:
    """The catalog of one server. While it is loading, both `contents` and `problem` are None."""

    server_id: str
    title: str
    contents: McpServerCatalog | None = None
    problem: Sentence | None = None


ContentPart = str | bytes
"""A text, or the bytes of a picture."""


class McpCatalog(QObject):
    """Asks every enabled server separately, so that a slow one does not delay the others."""

    changed = Signal()
    outdated = Signal(str)
    """The id of a server whose catalog has changed: a view that shows it may call `refresh_server`."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._workspace: Path | None = None
        self._catalogs: dict[str, ServerCatalog] = {}
        self._refresh_number = 0
        engine.on_preferences(lambda _: self.changed.emit())
        engine.mcp.on_catalog_changed(self.outdated.emit)

    @property
    def has_enabled_server(self) -> bool:
        return any(server.on for server in self._engine.preferences.mcp.servers)

    @property
    def groups(self) -> tuple[ServerCatalog, ...]:
        """The catalogs in the person's own order."""
        servers = [server for server in self._engine.preferences.mcp.servers if server.on]
        return tuple(self._catalogs.get(server.id, ServerCatalog(server.id, server.title)) for server in servers)

    def refresh(self, workspace: str | None) -> None:
        """Ask for the catalogs that belong to this folder; `changed` is emitted for each answer."""
        folder = Path(workspace) if workspace else None
        if folder != self._workspace:
            self._catalogs.clear()
        self._workspace = folder
        self._refresh_number += 1
        self.changed.emit()
        for group in self.groups:
            if group.problem is not None:
                self._catalogs[group.server_id] = replace(group, problem=None)
            self._tasks.start(self._fetch(group.server_id, group.title, self._refresh_number))

    def refresh_server(self, server_id: str) -> None:
        """Ask one server; its old catalog stays until it answers."""
        for group in self.groups:
            if group.server_id == server_id:
                self._tasks.start(self._fetch(server_id, group.title, self._refresh_number))

    async def read(self, server_id: str, title: str, uri: str) -> tuple[ContentPart, ...]:
        """Read a resource. Raises ToolFailed, also if it is neither text nor picture, or too long."""
        blocks = await self._engine.mcp.read_resource(server_id, self._workspace, uri)
        parts = _content_parts(blocks, title)
        if not parts:
            raise ToolFailed(Sentence("“{title}” is empty.", {"title": title}), "Choose another resource.")
        return parts

    async def prompt(self, server_id: str, name: str, values: dict[str, str]) -> tuple[str, tuple[bytes, ...]]:
        """Return the text of a filled-in prompt, and its pictures. Raises ToolFailed."""
        blocks = await self._engine.mcp.get_prompt(server_id, self._workspace, name, values)
        texts = [block.text for block in blocks if isinstance(block, Text) and block.text]
        return "\n\n".join(texts), tuple(_bytes_of(block) for block in blocks if isinstance(block, Image))

    async def complete(
        self, server_id: str, reference: str, argument: str, values: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Return the server's suggestions for an argument; empty if it has none."""
        typed = values.get(argument, "")
        with suppress(AgentError):
            return await self._engine.mcp.complete(server_id, self._workspace, reference, argument, typed, values)
        return ()

    async def _fetch(self, server_id: str, title: str, number: int) -> None:
        server = self._engine.mcp.server(server_id, self._workspace)
        if server is None:
            return
        try:
            catalog = ServerCatalog(server_id, title, await load_catalog(server))
        except AgentError as error:
            catalog = ServerCatalog(server_id, title, problem=error.sentence)
        if number == self._refresh_number:
            self._catalogs[server_id] = catalog
            self.changed.emit()


def _content_parts(blocks: tuple[Text | Image, ...], title: str) -> tuple[ContentPart, ...]:
    parts: list[ContentPart] = []
    for block in blocks:
        if isinstance(block, Image):
            parts.append(_bytes_of(block))
            continue
        # The server's non-text content was replaced by a line about it; each text has its address above.
        head, _, body = block.text.partition("\n") if block.text.startswith(_RESOURCE_HEAD) else ("", "", block.text)
        if (head and not body and head.endswith("that are no text]")) or body.startswith(_OMITTED_HEAD):
            sentence = Sentence("“{title}” is neither text nor a picture that a message can hold.", {"title": title})
            raise ToolFailed(sentence, "Ask the agent to work with it by a tool of the server.")
        if body:
            parts.append(body)
    length = sum(len(part) for part in parts if isinstance(part, str))
    if length > MAX_RESOURCE_CHARACTERS:
        values = {"title": title, "length": f"{length:,}", "most": f"{MAX_RESOURCE_CHARACTERS:,}"}
        sentence = Sentence("“{title}” has {length} characters; a message takes {most} of a resource.", values)
        raise ToolFailed(sentence, "Ask the agent to read it in parts by a tool of the server.")
    return tuple(parts)


def _bytes_of(image: Image) -> bytes:
    return base64.b64decode(image.source.data) if isinstance(image.source, Base64Source) else b""
