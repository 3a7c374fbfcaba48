"""Tools of MCP servers as tools of a conversation, and the saved digests by which a changed tool is noticed."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from desktop_agent.mcp.catalog import (
    Redact,
    convert_call_result,
    redact_json,
    tool_digest,
    tool_name,
    visible_schema,
    visible_text,
)
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.limits import MAX_SCHEMA_CHARACTERS, SchemaBudget
from desktop_agent.processes.worker_threads import run_in_own_thread
from desktop_agent.storage.files import file_error, make_private_folder, write_atomically
from desktop_agent.tools.tool import AnyTool, RunningCall, Tool, ToolRegistry
from desktop_agent.types.blocks import JsonObject, ResultPart
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.mcp import HttpConnection, McpServer, McpToolInfo, StdioConnection
from desktop_agent.types.tool_calls import ToolClass, ToolSpec, UntrustedSource

if TYPE_CHECKING:
    from mcp_types import Tool as TheirTool

    from desktop_agent.tools.builtin_tools import ToolSelection


_TIMEOUT_SLACK = 5.0
# What a server says of a tool that nobody reads, but that counts: which questions are asked hangs on it.
_HINTS = {"read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint"}


@dataclass(frozen=True, slots=True)
class DescribedTool:
    """A tool as the server describes it, whatever the person says of it. `said` is its class by the server's word."""

    name: str
    declared_class: ToolClass | None
    tool: Tool[JsonObject]
    schema: JsonObject

    @property
    def digest(self) -> str:
        """What it is."""
        return self.tool.scope.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """What a server offers: `tools` may be called, `listed` are all.

    `digests` say of each of its tools, by our names, what it is. `omitted_parts_note` cannot be used.
    """

    described: tuple[DescribedTool, ...] = ()
    digests: tuple[tuple[str, str], ...] = ()
    unusable: tuple[Sentence, ...] = ()
    tools: tuple[Tool[JsonObject], ...] = ()
    listed: tuple[McpToolInfo, ...] = ()

    def with_settings(self, server: McpServer) -> "ToolOffer":
        """The same with what the person says now."""
        tools = {each.name: _configure(each, server) for each in self.described}
        listed = tuple(
            McpToolInfo(
                name=each.name,
                full_name=each.tool.name,
                description=each.tool.description,
                tool_class=tools[each.name].tool_class,
                declared_class=each.declared_class,
                is_enabled=each.name not in server.off_tools,
                digest=each.digest,
                has_changed=each.name in server.classes and server.tool_class_override(each.name, each.digest) is None,
                schema=each.schema,
            )
            for each in self.described
        )
        on = tuple(tools[each.name] for each in listed if each.is_enabled)
        return replace(self, tools=on, listed=listed)


async def load_tool_offer(client: McpClient) -> ToolOffer:
    """Ask a server for its tools. Raises ToolFailed."""
    listed = await client.tools()
    # In a thread of its own: one that is busy with a schema holds up nobody, not even the end of the program.
    return await run_in_own_thread(lambda sign: _build_offer(client, listed, SchemaBudget(sign)), grace=0)


def describe_changes(title: str, before: dict[str, str], offer: ToolOffer) -> tuple[tuple[Sentence, str], ...]:
    """A sentence for each tool that is another one than it was, and the digest of what it is now."""
    template = (
        "The tool “{tool}” of the server “{server}” is described otherwise than before: what was allowed for it "
        "holds no more."
    )
    believed = (
        "The tool “{tool}” of the server “{server}” is described otherwise than before. The server says that it only "
        "reads, and is believed: turn that off in its settings if this is not what you expect."
    )
    only_read = {each.name for each in offer.tools if each.tool_class is ToolClass.READ_ONLY}
    changed = ((name, digest) for name, digest in offer.digests if before.get(name, digest) != digest)
    return tuple(
        (Sentence(believed if name in only_read else template, {"tool": name, "server": title}), digest)
        for name, digest in changed
    )


def _build_offer(client: McpClient, listed: "tuple[TheirTool, ...]", budget: SchemaBudget) -> ToolOffer:
    """In a thread: checking two hundred schemas takes a while."""
    tools: dict[str, DescribedTool] = {}
    title = client.server.title
    redact = client.log.redact
    left_out = [_unusable_notice(title, redact(name), why) for name, why in client.unusable_tools]
    for at, theirs in enumerate(listed):
        if not budget.has_time():
            left_out.append(_unchecked_notice(title, len(listed) - at))
            break
        try:
            tool = _build_tool(client, theirs, budget)
            made = DescribedTool(theirs.name, _declared_class(theirs.annotations), tool, tool.schema.json_schema)
        except WrongUse as error:
            left_out.append(_unusable_notice(title, redact(theirs.name), error.sentence))
            continue
        if made.tool.name in tools:
            values = {"tool": theirs.name[:100], "server": title}
            left_out.append(Sentence("The server “{server}” has two tools named “{tool}”.", values))
            continue
        tools[made.tool.name] = made
    digests = tuple((name, each.digest) for name, each in tools.items())
    return ToolOffer(tuple(tools.values()), digests, tuple(left_out)).with_settings(client.server)


def _unusable_notice(title: str, name: str, why: Sentence | str) -> Sentence:
    template = "The tool “{tool}” of the server “{server}” cannot be used: {why}"
    return Sentence(template, {"tool": name[:100], "server": title, "why": why})


def _unchecked_notice(title: str, count: int) -> Sentence:
    template = "The server “{server}” describes its tools at such length that {n} of them are left out."
    return Sentence(template, {"server": title, "n": str(count)})


def _build_tool(client: McpClient, theirs: "TheirTool", budget: SchemaBudget) -> Tool[JsonObject]:
    # It takes a tenth of a second, which only those pay who have servers.
    from desktop_agent.tools.json_schema import JsonSchema

    server, name = client.server, theirs.name
    description, schema = theirs.description or theirs.title or name, theirs.input_schema
    redact = client.log.redact
    if redact(name) != name:
        raise WrongUse("its name holds a secret that was given to the server.")

    async def run(arguments: JsonObject, call: RunningCall) -> tuple[ResultPart, ...]:
        call.so_far(f"The server “{server.title}” was told to end it; what it had done by then is not known.")
        return await convert_call_result(await client.call(name, arguments, call.progress, call.spent), redact)

    checked = JsonSchema(_visible_schema(schema, redact), budget.has_time)
    told = visible_text(redact(description))
    if not budget.take(len(told) + checked.size):
        raise WrongUse(f"the tools of a server may say {MAX_SCHEMA_CHARACTERS:,} characters together.")
    digest = tool_digest(description, schema, _hints(theirs), _connection_identity(server.connection))
    return Tool(
        name=tool_name(server.id, name),
        description=told,
        schema=checked,
        run=run,
        scope=f"{server.id}:{digest}",
    )


def _visible_schema(schema: JsonObject, redact: Redact) -> JsonObject:
    try:
        return redact_json(visible_schema(schema), redact)
    except RecursionError:
        raise WrongUse("its schema is nested too deep.") from None


def _hints(theirs: "TheirTool") -> JsonObject:
    said = theirs.annotations
    return said.model_dump(mode="json", exclude_none=True, include=_HINTS) if said is not None else {}


def _connection_identity(connection: StdioConnection | HttpConnection) -> JsonObject:
    # How the person proves who they are makes no other server of it.
    return connection.model_dump(mode="json", exclude={"sign_in", "client_id"})


def _configure(made: DescribedTool, server: McpServer) -> Tool[JsonObject]:
    source = UntrustedSource("mcp", server.title, server.id)

    def brings(_: JsonObject) -> UntrustedSource:
        return source

    return replace(
        made.tool,
        tool_class=_class_of(made, server),
        effects=server.effects,
        brings=brings,
        timeout=server.timeout + _TIMEOUT_SLACK,
    )


def _class_of(made: DescribedTool, server: McpServer) -> ToolClass:
    """The person's own word wins, if it was about this very tool; the server's is believed where it is trusted."""
    believed = made.declared_class if server.trusted else None
    return server.tool_class_override(made.name, made.digest) or believed or ToolClass.MUTATING


def _declared_class(annotations: Any) -> ToolClass | None:
    only_reads: bool | None = getattr(annotations, "read_only_hint", None)
    if only_reads is None:
        return None
    return ToolClass.READ_ONLY if only_reads else ToolClass.MUTATING


class DynamicToolRegistry(ToolRegistry):
    """Those that stay, and those that servers offer at the moment of asking."""

    def __init__(self, fixed: ToolRegistry, offered: Callable[[], tuple[AnyTool, ...]]) -> None:
        super().__init__()
        self._fixed = fixed
        self._offered = offered
        self._cached: tuple[tuple[AnyTool, ...], ToolRegistry] = ((), fixed)

    def __len__(self) -> int:
        return len(self._current)

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return self._current.names

    def with_tools(self, *tools: AnyTool) -> ToolRegistry:
        """These and more. Two of one name are WrongUse."""
        return DynamicToolRegistry(self._fixed.with_tools(*tools), self._offered) if tools else self

    def get(self, name: str) -> AnyTool | None:
        """The tool of exactly this name, or None."""
        return self._current.get(name)

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """What the model is told: about all, or about these. Raises WrongUse for a name that is none."""
        return self._current.specs(names)

    def class_of(self, name: str) -> ToolClass:
        """A tool's class; one that is not here counts as mutating."""
        return self._current.class_of(name)

    @property
    def _current(self) -> ToolRegistry:
        offered = self._offered()
        if self._cached[0] != offered:
            fresh = (each for each in offered if self._fixed.get(each.name) is None)
            self._cached = (offered, self._fixed.with_tools(*fresh))
        return self._cached[1]


def filter_tools(which: "ToolSelection", offered: tuple[AnyTool, ...]) -> tuple[AnyTool, ...]:
    """Of these the ones that belong to a set of tools."""
    if which == "all":
        return offered
    return tuple(each for each in offered if which == "read" and each.tool_class is ToolClass.READ_ONLY)


_log = logging.getLogger(__name__)
_FILE_NAME = "mcp_tools.json"
MAX_NAMES = 1_000
"""Of each server: one could invent others without end."""


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True)

    version: Literal[2] = 2
    servers: dict[str, dict[str, str]]


class ToolDigestStore:
    """Digests by server and name."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _FILE_NAME
        self._servers: dict[str, dict[str, str]] | None = None
        self._lock = asyncio.Lock()

    async def exchange(self, server_id: str, now: dict[str, str]) -> dict[str, str]:
        """What was seen before, and remember this. Raises StorageFailed; it is remembered for this run all the same."""
        async with self._lock:
            if self._servers is None:
                self._servers = await asyncio.to_thread(self._load)
            before = self._servers.get(server_id, {})
            if before != now:
                # Tools that are gone for a while stay known: they could come back as others.
                kept = {name: digest for name, digest in before.items() if name not in now}
                # The newest stand last, and stay.
                self._servers[server_id] = dict([*kept.items(), *now.items()][-MAX_NAMES:])
                await asyncio.to_thread(self._save, self._servers)
            return before

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            return _Content.model_validate_json(self.path.read_bytes()).servers
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError, RecursionError):
            _log.info("the tools that were seen cannot be read and are left aside")
            return {}

    def _save(self, servers: dict[str, dict[str, str]]) -> None:
        try:
            make_private_folder(self.path.parent, within=self.path.parent)
            write_atomically(self.path, _Content(servers=servers).model_dump_json().encode("utf-8", "replace"))
        except OSError as error:
            raise file_error(error, self.path) from error
