"""What MCP servers offer for a message, and reading it."""

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.tools.mcp.offering.contents import load_catalog
from desktop_agent.vocabulary.blocks import Image, Text
from desktop_agent.vocabulary.errors import AgentError, Sentence, ToolFailed
from desktop_agent.vocabulary.images import Base64Source
from desktop_agent.vocabulary.mcp.contents import McpServerCatalog
from ui.bridge.tasks import BackgroundTasks

MAX_RESOURCE_CHARACTERS = 200_000
"""Characters of one resource: some 50,000 tokens."""
_RESOURCE_HEAD = "[resource: "
_OMITTED_HEAD = "[left out: "


@dataclass(frozen=True, slots=True)
class ServerCatalog:
    """One server. Neither `contents` nor `problem`: it is being asked."""

    server_id: str
    title: str
    contents: McpServerCatalog | None = None
    problem: Sentence | None = None


ContentPart = str | bytes
"""A text, or a picture as it came."""


class McpCatalog(QObject):
    """Asks the servers that are on, each by itself: a slow one keeps nobody from the others."""

    changed = Signal()
    outdated = Signal(str)
    """The id of a server that says that it offers something else now: whoever shows it may ask again."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._workspace: Path | None = None
        self._found: dict[str, ServerCatalog] = {}
        self._refresh_number = 0
        engine.on_preferences(lambda _: self.changed.emit())
        engine.mcp.on_catalog_changed(self.outdated.emit)

    @property
    def has_enabled_server(self) -> bool:
        """Whether there is a server that is on."""
        return any(each.on for each in self._engine.preferences.mcp.servers)

    @property
    def groups(self) -> tuple[ServerCatalog, ...]:
        """In the person's own order."""
        on = [each for each in self._engine.preferences.mcp.servers if each.on]
        return tuple(self._found.get(each.id, ServerCatalog(each.id, each.title)) for each in on)

    def refresh(self, workspace: str | None) -> None:
        """Look what they offer for a conversation in this folder; `changed` says of each that answered."""
        folder = Path(workspace) if workspace else None
        if folder != self._workspace:
            self._found.clear()
        self._workspace = folder
        self._refresh_number += 1
        self.changed.emit()
        for each in self.groups:
            if each.problem is not None:
                self._found[each.server_id] = replace(each, problem=None)
            self._tasks.start(self._fetch(each.server_id, each.title, self._refresh_number))

    def refresh_server(self, server_id: str) -> None:
        """Of this one alone; what it said before is there until it answers."""
        for each in self.groups:
            if each.server_id == server_id:
                self._tasks.start(self._fetch(server_id, each.title, self._refresh_number))

    async def read(self, server_id: str, title: str, uri: str) -> tuple[ContentPart, ...]:
        """What lies at this address. Raises ToolFailed, also for what is neither text nor picture, or too long."""
        blocks = await self._engine.mcp.read_resource(server_id, self._workspace, uri)
        pieces = _content_parts(blocks, title)
        if not pieces:
            raise ToolFailed(Sentence("“{title}” is empty.", {"title": title}), "Choose another resource.")
        return pieces

    async def prompt(self, server_id: str, name: str, values: dict[str, str]) -> tuple[str, tuple[bytes, ...]]:
        """The text of a prompt that is filled in, and its pictures. Raises ToolFailed."""
        blocks = await self._engine.mcp.get_prompt(server_id, self._workspace, name, values)
        texts = [each.text for each in blocks if isinstance(each, Text) and each.text]
        return "\n\n".join(texts), tuple(_bytes_of(each) for each in blocks if isinstance(each, Image))

    async def complete(self, server_id: str, of: str, argument: str, values: Mapping[str, str]) -> tuple[str, ...]:
        """What an argument could be, when all this is written; nothing where the server does not say."""
        written = values.get(argument, "")
        with suppress(AgentError):
            return await self._engine.mcp.complete(server_id, self._workspace, of, argument, written, values)
        return ()

    async def _fetch(self, server_id: str, title: str, number: int) -> None:
        live = self._engine.mcp.server(server_id, self._workspace)
        if live is None:
            return
        try:
            found = ServerCatalog(server_id, title, await load_catalog(live))
        except AgentError as error:
            found = ServerCatalog(server_id, title, problem=error.sentence)
        if number == self._refresh_number:
            self._found[server_id] = found
            self.changed.emit()


def _content_parts(blocks: tuple[Text | Image, ...], title: str) -> tuple[ContentPart, ...]:
    pieces: list[ContentPart] = []
    for block in blocks:
        if isinstance(block, Image):
            pieces.append(_bytes_of(block))
            continue
        # What is no text was replaced by a line about it; the address stands over each text that is one.
        head, _, body = block.text.partition("\n") if block.text.startswith(_RESOURCE_HEAD) else ("", "", block.text)
        if (head and not body and head.endswith("that are no text]")) or body.startswith(_OMITTED_HEAD):
            what = Sentence("“{title}” is neither text nor a picture that a message can hold.", {"title": title})
            raise ToolFailed(what, "Ask the agent to work with it by a tool of the server.")
        if body:
            pieces.append(body)
    length = sum(len(each) for each in pieces if isinstance(each, str))
    if length > MAX_RESOURCE_CHARACTERS:
        values = {"title": title, "length": f"{length:,}", "most": f"{MAX_RESOURCE_CHARACTERS:,}"}
        what = Sentence("“{title}” has {length} characters; a message takes {most} of a resource.", values)
        raise ToolFailed(what, "Ask the agent to read it in parts by a tool of the server.")
    return tuple(pieces)


def _bytes_of(image: Image) -> bytes:
    return base64.b64decode(image.source.data) if isinstance(image.source, Base64Source) else b""
