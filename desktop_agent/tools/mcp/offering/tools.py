"""Tools of a server as tools of ours."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from desktop_agent.tools.in_thread import run_in_own_thread
from desktop_agent.tools.mcp.offering.allowance import MAX_SCHEMA_CHARACTERS, SchemaBudget
from desktop_agent.tools.mcp.offering.naming import tool_digest, tool_name, visible_schema, visible_text
from desktop_agent.tools.mcp.offering.results import Redact, convert_call_result, redact_json
from desktop_agent.tools.mcp.server import McpClient
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.vocabulary.blocks import JsonObject, ResultPart
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.mcp.servers import HttpConnection, McpServer, StdioConnection
from desktop_agent.vocabulary.mcp.states import McpToolInfo
from desktop_agent.vocabulary.tool_calls import ToolClass, UntrustedSource

if TYPE_CHECKING:
    from mcp_types import Tool as TheirTool

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
    from desktop_agent.tools.schemas import JsonSchema

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
