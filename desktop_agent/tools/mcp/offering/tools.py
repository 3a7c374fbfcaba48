"""Tools of a server as tools of ours."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from desktop_agent.tools.mcp.offering.naming import digest_of, name_of, shown
from desktop_agent.tools.mcp.offering.results import parts_of_result
from desktop_agent.tools.mcp.server import LiveServer
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.vocabulary.blocks import JsonObject, ResultPart
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.mcp.servers import HttpConnection, McpServer, StdioConnection
from desktop_agent.vocabulary.mcp.states import OfferedTool
from desktop_agent.vocabulary.tool_calls import Outsider, ToolClass

if TYPE_CHECKING:
    from mcp_types import Tool as TheirTool

_SLACK = 5.0


@dataclass(frozen=True, slots=True)
class Made:
    """A tool as the server describes it, whatever the person says of it. `said` is its class by the server's word."""

    name: str
    said: ToolClass | None
    tool: Tool[JsonObject]


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server offers: `tools` may be called, `listed` are all.

    `digests` say of each of its tools, by our names, what it is. `left_out` cannot be used.
    """

    made: tuple[Made, ...] = ()
    digests: tuple[tuple[str, str], ...] = ()
    left_out: tuple[Sentence, ...] = ()
    tools: tuple[Tool[JsonObject], ...] = ()
    listed: tuple[OfferedTool, ...] = ()

    def under(self, server: McpServer) -> "Offer":
        """The same with what the person says now."""
        tools = {each.name: _set_up(each, server) for each in self.made}
        listed = tuple(
            OfferedTool(
                name=each.name,
                full_name=each.tool.name,
                description=each.tool.description,
                tool_class=tools[each.name].tool_class,
                said=each.said,
                on=each.name not in server.off_tools,
            )
            for each in self.made
        )
        on = tuple(tools[each.name] for each in listed if each.on)
        return replace(self, tools=on, listed=listed)


async def offer_of(live: LiveServer) -> Offer:
    """Ask a server for its tools. Raises ToolFailed."""
    listed = await live.tools()
    return await asyncio.to_thread(_made, live, listed)


def changed_tools(title: str, before: dict[str, str], now: Iterable[tuple[str, str]]) -> tuple[Sentence, ...]:
    """A sentence for each tool that is another one than it was."""
    template = (
        "The tool “{tool}” of the server “{server}” is described otherwise than before: what was allowed for it "
        "holds no more."
    )
    changed = (name for name, digest in now if before.get(name, digest) != digest)
    return tuple(Sentence(template, {"tool": name, "server": title}) for name in changed)


def _made(live: LiveServer, listed: "tuple[TheirTool, ...]") -> Offer:
    """In a thread: checking two hundred schemas takes a while."""
    tools: dict[str, Made] = {}
    left_out: list[Sentence] = []
    for theirs in listed:
        values = {"tool": theirs.name[:100], "server": live.server.title}
        try:
            made = Made(theirs.name, _said(theirs.annotations), _tool(live, theirs))
        except WrongUse as error:
            template = "The tool “{tool}” of the server “{server}” cannot be used: {why}"
            left_out.append(Sentence(template, {**values, "why": error.sentence}))
            continue
        if made.tool.name in tools:
            left_out.append(Sentence("The server “{server}” has two tools named “{tool}”.", values))
            continue
        tools[made.tool.name] = made
    digests = tuple((name, each.tool.scope.rpartition(":")[2]) for name, each in tools.items())
    return Offer(tuple(tools.values()), digests, tuple(left_out)).under(live.server)


def _tool(live: LiveServer, theirs: "TheirTool") -> Tool[JsonObject]:
    # It takes a tenth of a second, which only those pay who have servers.
    from desktop_agent.tools.schemas import JsonSchema

    server, name = live.server, theirs.name
    description, schema = theirs.description or theirs.title or name, theirs.input_schema

    async def run(arguments: JsonObject, call: RunningCall) -> tuple[ResultPart, ...]:
        call.so_far(f"The server “{server.title}” was told to end it; what it had done by then is not known.")
        return await parts_of_result(await live.call(name, arguments, call.progress))

    return Tool(
        name=name_of(server.id, name),
        description=shown(description),
        schema=JsonSchema(schema),
        run=run,
        scope=f"{server.id}:{digest_of(description, schema, _identity(server.connection))}",
    )


def _identity(connection: StdioConnection | HttpConnection) -> JsonObject:
    # How the person proves who they are makes no other server of it.
    return connection.model_dump(mode="json", exclude={"sign_in", "client_id"})


def _set_up(made: Made, server: McpServer) -> Tool[JsonObject]:
    source = Outsider("mcp", server.title)

    def brings(_: JsonObject) -> Outsider:
        return source

    return replace(
        made.tool,
        tool_class=_class_of(made, server),
        effects=server.effects,
        brings=brings,
        timeout=server.timeout + _SLACK,
    )


def _class_of(made: Made, server: McpServer) -> ToolClass:
    """The person's own word wins; the server's is believed where it is trusted."""
    believed = made.said if server.trusted else None
    return server.classes.get(made.name) or believed or ToolClass.MUTATING


def _said(annotations: Any) -> ToolClass | None:
    only_reads: bool | None = getattr(annotations, "read_only_hint", None)
    if only_reads is None:
        return None
    return ToolClass.READ_ONLY if only_reads else ToolClass.MUTATING
