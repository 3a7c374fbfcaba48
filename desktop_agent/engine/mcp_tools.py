"""Tools of MCP servers as tools of a conversation, and the saved digests by which a changed tool is noticed."""

import asyncio
import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from desktop_agent.mcp.catalog import (
    convert_call_result,
    redact_json,
    tool_digest,
    tool_name,
    visible_schema,
    visible_text,
)
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.limits import MAX_SCHEMA_CHARACTERS, SchemaBudget
from desktop_agent.processes.worker_threads import finish, run_in_own_thread
from desktop_agent.storage.file_lock import FileLock, lock_path
from desktop_agent.storage.files import file_error, make_private_folder, write_atomically
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.types.blocks import JsonObject, ResultPart
from desktop_agent.types.errors import Sentence, StorageFailed, WrongUse
from desktop_agent.types.mcp import McpServer, McpToolInfo, ServerCall
from desktop_agent.types.tool_calls import ToolClass, UntrustedSource

if TYPE_CHECKING:
    from mcp_types import Tool as TheirTool


_TIMEOUT_SLACK = 5.0
# Annotations of a tool that are not shown, but decide which calls need approval.
_HINTS = {"read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint"}


@dataclass(frozen=True, slots=True)
class DescribedTool:
    """A tool as the server describes it, without the person's settings."""

    name: str
    declared_class: ToolClass | None
    tool: Tool[JsonObject]

    @property
    def digest(self) -> str:
        return self.tool.scope.rpartition(":")[2]

    def with_settings(self, server: McpServer) -> Tool[JsonObject]:
        """Return the tool with the person's settings.

        The person's own word counts if it was about this very tool, else the server's where it is trusted.
        """
        source = UntrustedSource("mcp", server.title, server.id)

        def brings(_: JsonObject) -> UntrustedSource:
            return source

        declared = self.declared_class if server.trusted else None
        return replace(
            self.tool,
            tool_class=server.tool_class_override(self.name, self.digest) or declared or ToolClass.MUTATING,
            effects=server.effects,
            brings=brings,
            timeout=server.timeout + _TIMEOUT_SLACK,
        )


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """What a server offers: `tools` may be called, `listed` are all, `unusable` says why others cannot be used."""

    described: tuple[DescribedTool, ...] = ()
    unusable: tuple[Sentence, ...] = ()
    tools: tuple[Tool[JsonObject], ...] = ()
    listed: tuple[McpToolInfo, ...] = ()

    @property
    def digests(self) -> tuple[tuple[str, str], ...]:
        """The full name of each tool, and its digest."""
        return tuple((described.tool.name, described.digest) for described in self.described)

    def with_settings(self, server: McpServer) -> "ToolOffer":
        """Return the offer with the person's current settings."""
        tools = [described.with_settings(server) for described in self.described]
        listed = tuple(
            McpToolInfo(
                name=described.name,
                full_name=tool.name,
                description=tool.description,
                tool_class=tool.tool_class,
                declared_class=described.declared_class,
                is_enabled=described.name not in server.off_tools,
                digest=described.digest,
                has_changed=described.name in server.classes
                and server.tool_class_override(described.name, described.digest) is None,
                schema=tool.schema.json_schema,
            )
            for described, tool in zip(self.described, tools, strict=True)
        )
        enabled = tuple(tool for tool, info in zip(tools, listed, strict=True) if info.is_enabled)
        return replace(self, tools=enabled, listed=listed)


async def load_tool_offer(client: McpClient) -> ToolOffer:
    """Ask a server for its tools. Raises ToolFailed."""
    listed = await client.tools()
    # In a thread of its own: one that is busy with a schema holds up nobody, not even the end of the program.
    return await run_in_own_thread(lambda sign: _build_offer(client, listed, SchemaBudget(sign)), grace=0)


def describe_changes(title: str, before: dict[str, str], offer: ToolOffer) -> tuple[tuple[Sentence, str], ...]:
    """Return a sentence and the new digest for each tool whose description changed."""
    template = (
        "The tool “{tool}” of the server “{server}” has a new description: rules that allowed the tool no longer apply."
    )
    trusted_template = (
        "The tool “{tool}” of the server “{server}” has a new description. The server says that the tool only reads, "
        "and you trust the server: turn that off in its settings if you do not expect this."
    )
    read_only = {tool.name for tool in offer.tools if tool.tool_class is ToolClass.READ_ONLY}
    changed = ((name, digest) for name, digest in offer.digests if before.get(name, digest) != digest)
    return tuple(
        (Sentence(trusted_template if name in read_only else template, {"tool": name, "server": title}), digest)
        for name, digest in changed
    )


def _build_offer(client: McpClient, listed: "tuple[TheirTool, ...]", budget: SchemaBudget) -> ToolOffer:
    tools: dict[str, DescribedTool] = {}
    server, redact = client.lifecycle.server, client.log.redact
    unusable = [_unusable_notice(server, redact(name), reason) for name, reason in client.unusable_tools]
    for position, listed_tool in enumerate(listed):
        if not budget.has_time():
            template = "The server “{server}” describes its tools at such length that {n} of them are left out."
            unusable.append(Sentence(template, {"server": server.title, "n": str(len(listed) - position)}))
            break
        try:
            described = _describe_tool(client, listed_tool, budget)
        except WrongUse as error:
            unusable.append(_unusable_notice(server, redact(listed_tool.name), error.sentence))
            continue
        if described.tool.name in tools:
            values = {"tool": listed_tool.name[:100], "server": server.title}
            unusable.append(Sentence("The server “{server}” has two tools named “{tool}”.", values))
            continue
        tools[described.tool.name] = described
    return ToolOffer(tuple(tools.values()), tuple(unusable)).with_settings(server)


def _unusable_notice(server: McpServer, name: str, reason: Sentence) -> Sentence:
    template = "The tool “{tool}” of the server “{server}” cannot be used: {why}"
    return Sentence(template, {"tool": name[:100], "server": server.title, "why": reason})


def _describe_tool(client: McpClient, listed_tool: "TheirTool", budget: SchemaBudget) -> DescribedTool:
    """Convert what the server says of a tool. Raises WrongUse for one that cannot be used."""
    # Late: importing it takes a tenth of a second, and most people have no servers.
    from desktop_agent.tools.json_schema import JsonSchema

    server, redact = client.lifecycle.server, client.log.redact
    name, schema, annotations = listed_tool.name, listed_tool.input_schema, listed_tool.annotations
    description = listed_tool.description or listed_tool.title or name
    if redact(name) != name:
        raise WrongUse("its name holds a secret that was given to the server.")

    async def run(arguments: JsonObject, call: RunningCall) -> tuple[ResultPart, ...]:
        call.report_partial_result(
            f"The server “{server.title}” was told to end it; what it had done by then is not known."
        )
        server_call = ServerCall(call.conversation_id, call.report_usage)
        return await convert_call_result(await client.call(name, arguments, call.progress, server_call), redact)

    try:
        visible: JsonObject = redact_json(visible_schema(schema), redact)
    except RecursionError:
        raise WrongUse("its schema is nested too deep.") from None
    json_schema = JsonSchema(visible, budget.has_time)
    shown = visible_text(redact(description))
    if not budget.take(len(shown) + json_schema.size):
        raise WrongUse(f"the tools of a server may say {MAX_SCHEMA_CHARACTERS:,} characters together.")
    hints = annotations.model_dump(mode="json", exclude_none=True, include=_HINTS) if annotations is not None else {}
    # Another way to sign in does not make it another server.
    connection = server.connection.model_dump(mode="json", exclude={"sign_in", "client_id"})
    scope = f"{server.id}:{tool_digest(description, schema, hints, connection)}"
    only_reads = annotations.read_only_hint if annotations is not None else None
    declared_class = {None: None, True: ToolClass.READ_ONLY, False: ToolClass.MUTATING}[only_reads]
    tool = Tool(name=tool_name(server.id, name), description=shown, schema=json_schema, run=run, scope=scope)
    return DescribedTool(name, declared_class, tool)


_log = logging.getLogger(__name__)
_FILE_NAME = "mcp_tools.json"
MAX_NAMES = 1_000
"""Of each server: one could invent new names without end."""
_LOCK_SECONDS = 2.0


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True)

    version: Literal[2] = 2
    servers: dict[str, dict[str, str]]


class ToolDigestStore:
    """The digests of the tools seen last, by server and full name, in a file that all processes share."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _FILE_NAME
        self._file_lock = FileLock(lock_path(folder, "mcp_tools"), folder)
        self._seen: dict[str, dict[str, str]] = {}
        """What this process has seen, also where the disk refused it."""
        self._lock = asyncio.Lock()

    async def exchange(self, server_id: str, digests: dict[str, str]) -> tuple[dict[str, str], StorageFailed | None]:
        """Save these digests; return the earlier ones, and the error of a disk that refused.

        The earlier ones are those that this process saw last, else those in the file. The new ones count for this run
        in any case.
        """
        async with self._lock:
            return await finish(asyncio.to_thread(self._exchange, server_id, digests))

    def _exchange(self, server_id: str, digests: dict[str, str]) -> tuple[dict[str, str], StorageFailed | None]:
        known, refusal = dict[str, str](), None
        self._lock_file()
        try:
            servers = self._load()
            known = servers.get(server_id, {})
            merged = _merge(known, digests)
            if list(merged.items()) != list(known.items()):
                self._save({**servers, server_id: merged})
        except StorageFailed as error:
            refusal = error
        finally:
            self._file_lock.release()
        before = self._seen.get(server_id, known)
        self._seen[server_id] = _merge(before, digests)
        return before, refusal

    def _lock_file(self) -> None:
        """Lock the file. Another process writes it in milliseconds: one that hangs is not waited for."""
        pause, end = threading.Event(), time.monotonic() + _LOCK_SECONDS
        # Where no lock can be made the file is read and written all the same.
        with suppress(StorageFailed):
            while not self._file_lock.acquire() and time.monotonic() < end:
                pause.wait(_LOCK_SECONDS / 100)

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            return _Content.model_validate_json(self.path.read_bytes()).servers
        except FileNotFoundError:
            return {}
        except OSError as error:
            # It must not be overwritten: its content may be readable later.
            raise file_error(error, self.path) from error
        except (ValidationError, RecursionError):
            _log.info("the saved digests of tools cannot be read and are ignored")
            return {}

    def _save(self, servers: dict[str, dict[str, str]]) -> None:
        try:
            make_private_folder(self.path.parent, within=self.path.parent)
            write_atomically(self.path, _Content(servers=servers).model_dump_json().encode("utf-8", "replace"))
        except OSError as error:
            raise file_error(error, self.path) from error


def _merge(known: dict[str, str], digests: dict[str, str]) -> dict[str, str]:
    """Return both. Tools that are gone for a while stay known: they could come back changed."""
    kept = {name: digest for name, digest in known.items() if name not in digests}
    # The newest are last, and are kept.
    return dict([*kept.items(), *digests.items()][-MAX_NAMES:])
