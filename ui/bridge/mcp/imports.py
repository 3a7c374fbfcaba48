"""Import of MCP servers from the configuration files of other programs: first a preview, then the import."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr
from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.mcp.config_import import MAX_SERVERS, ImportedServers, import_servers
from desktop_agent.types.errors import AgentError, Sentence, WrongUse
from desktop_agent.types.mcp import McpServer, StdioConnection
from ui.bridge.event_loop import BackgroundTasks, in_background

MAX_CONFIG_BYTES = 200_000

_TEXT_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TEXT_OR_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file. `program` is the name of the program that it belongs to."""

    program: str
    path: Path


def find_config_files() -> tuple[ConfigFile, ...]:
    """Return the files that exist here. Reads the disk: call it in a thread."""
    home, settings = Path.home(), _settings_folder()
    files = (
        ConfigFile("Claude Desktop", settings / "Claude" / "claude_desktop_config.json"),
        ConfigFile("Visual Studio Code", settings / "Code" / "User" / "mcp.json"),
        ConfigFile("Cursor", home / ".cursor" / "mcp.json"),
    )
    return tuple(file for file in files if _is_file(file.path))


def read_config_file(path: Path) -> str:
    """Return the text of a file, cut after MAX_CONFIG_BYTES. Reads the disk: call it in a thread. Raises OSError."""
    if not path.is_file():
        # A pipe or device may never end.
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return file.read(MAX_CONFIG_BYTES + 1).decode("utf-8-sig", "replace")


def strip_comments(text: str) -> str:
    """Remove comments, and commas before a closing bracket, from JSON as editors write it."""
    plain = _TEXT_OR_COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)
    return _TEXT_OR_COMMA.sub(lambda match: match[1] or "", plain)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _settings_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


# Other programs ask for these or look them up before they start a server: “${input:token}”, “${env:HOME}”.
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class ImportCandidate:
    """One server that can be imported.

    `placeholders` are the names of secrets whose values the other program fills in; `unresolved` are texts with such a
    placeholder that stay as they are.
    """

    server: McpServer
    placeholders: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """The servers that can be imported, and why the others cannot."""

    found: tuple[ImportCandidate, ...]
    refused: tuple[Sentence, ...]
    imported: ImportedServers

    def only(self, ids: Collection[str]) -> ImportedServers:
        """Return these servers alone, with their secrets."""
        servers = tuple(candidate.server for candidate in self.found if candidate.server.id in ids)
        names = {server.secret_name(name) for server in servers for name in server.secret_names}
        secrets = {name: value for name, value in self.imported.secrets.items() if name in names}
        return ImportedServers(servers, secrets)


def preview_of(text: str, used_ids: Collection[str]) -> ImportPreview:
    """Parse a configuration text. A server that cannot be imported does not exclude the others. Raises WrongUse."""
    plain = strip_comments(text)
    try:
        whole = import_servers(plain, used_ids)
    except WrongUse:
        entries = _entries(plain)
        if entries is None or len(entries) > MAX_SERVERS:
            raise
        return _one_by_one(entries, used_ids)
    return _preview(whole, ())


class McpImports(QObject):
    """Answers with signals; nothing is saved before `import_servers`."""

    files_found = Signal(object)
    """The ConfigFiles that exist on this machine."""
    file_read = Signal(str)
    """The text of a file."""
    previewed = Signal(object)
    """An ImportPreview."""
    refused = Signal(object)
    """A Sentence: why nothing can be imported."""
    imported = Signal()
    """The servers are saved."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks

    @in_background
    async def find_files(self) -> None:
        """Find the configuration files of other programs."""
        self.files_found.emit(await asyncio.to_thread(find_config_files))

    @in_background
    async def read(self, path: Path) -> None:
        """Read and parse a file."""
        try:
            text = await asyncio.to_thread(read_config_file, path)
        except OSError as error:
            values: dict[str, str | Sentence] = {"name": path.name, "why": error.strerror or type(error).__name__}
            self.refused.emit(Sentence("“{name}” cannot be read: {why}. Choose another file.", values))
            return
        self.file_read.emit(text)

    def preview(self, text: str) -> None:
        """Parse a text; `previewed` answers."""
        try:
            preview = preview_of(text, self._ids)
        except WrongUse as error:
            self.refused.emit(error.whole)
        else:
            self.previewed.emit(preview)

    def import_servers(self, preview: ImportPreview, ids: Collection[str]) -> None:
        """Import these servers; their secrets go to the keyring first."""
        self._tasks.start(self._import_servers(preview.only(ids)))

    async def save(self, servers: tuple[McpServer, ...]) -> None:
        """Save and use these servers. Raises StorageFailed."""
        await self._engine.change_preferences(self._engine.preferences.with_changes("mcp", servers=servers))

    @property
    def _ids(self) -> frozenset[str]:
        return frozenset(server.id for server in self._engine.preferences.mcp.servers)

    async def _import_servers(self, imported: ImportedServers) -> None:
        ids = tuple(server.id for server in imported.servers)
        if self._ids & set(ids):
            self.refused.emit(Sentence("The servers were changed meanwhile. Look at the text again."))
            return
        try:
            await self._engine.mcp.add_imported(imported, self.save)
        except AgentError as error:
            self.refused.emit(error.whole)
        else:
            self.imported.emit()


def _entries(plain: str) -> dict[str, object] | None:
    """Return the servers in a text of JSON; None if there are none."""
    try:
        document: Any = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    fields = cast("dict[str, Any]", document)
    servers: Any = fields.get("mcpServers", fields.get("servers"))
    return cast("dict[str, object]", servers) if isinstance(servers, dict) and servers else None


def _one_by_one(entries: dict[str, object], used_ids: Collection[str]) -> ImportPreview:
    servers: list[McpServer] = []
    secrets: dict[str, SecretStr] = {}
    refused: list[Sentence] = []
    ids = set(used_ids)
    for name, entry in entries.items():
        try:
            imported = import_servers(json.dumps({"mcpServers": {name: entry}}), ids)
        except WrongUse as error:
            refused.append(error.whole)
            continue
        servers += imported.servers
        secrets |= imported.secrets
        ids |= {server.id for server in imported.servers}
    return _preview(ImportedServers(tuple(servers), secrets), tuple(refused))


def _strings(server: McpServer) -> tuple[str, ...]:
    connection = server.connection
    if isinstance(connection, StdioConnection):
        return (connection.command, *connection.args, *connection.env.values())
    return (connection.url,)


def _preview(whole: ImportedServers, refused: tuple[Sentence, ...]) -> ImportPreview:
    """Leave out values that the other program would fill in: the person has to enter them."""
    secrets = dict(whole.secrets)
    candidates: list[ImportCandidate] = []
    for server in whole.servers:
        placeholders: list[str] = []
        for name in server.secret_names:
            if _PLACEHOLDER.search(secrets[server.secret_name(name)].get_secret_value()):
                placeholders.append(name)
                del secrets[server.secret_name(name)]
        candidates.append(
            ImportCandidate(
                server, tuple(placeholders), tuple(text for text in _strings(server) if _PLACEHOLDER.search(text))
            )
        )
    return ImportPreview(tuple(candidates), refused, replace(whole, secrets=secrets))
