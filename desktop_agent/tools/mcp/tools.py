"""Tools of a server as tools of ours."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from desktop_agent.tools.mcp.naming import digest_of, name_of
from desktop_agent.tools.mcp.results import parts_of_result
from desktop_agent.tools.mcp.server import LiveServer
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.vocabulary.blocks import JsonObject, ResultPart
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.mcp.servers import McpServer
from desktop_agent.vocabulary.tool_calls import Outsider, ToolClass

if TYPE_CHECKING:
    from mcp_types import Tool as TheirTool

LONGEST_DESCRIPTION = 8_000
_SLACK = 5.0


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server offers: `digests` say of each of its tools, by our names, what it is. `left_out` cannot be used."""

    tools: tuple[Tool[JsonObject], ...] = ()
    digests: tuple[tuple[str, str], ...] = ()
    left_out: tuple[Sentence, ...] = ()


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
    tools: dict[str, Tool[JsonObject]] = {}
    left_out: list[Sentence] = []
    for theirs in listed:
        values = {"tool": theirs.name[:100], "server": live.server.title}
        try:
            tool = _tool(live, theirs)
        except WrongUse as error:
            template = "The tool “{tool}” of the server “{server}” cannot be used: {why}"
            left_out.append(Sentence(template, {**values, "why": error.sentence}))
            continue
        if tool.name in tools:
            left_out.append(Sentence("The server “{server}” has two tools named “{tool}”.", values))
            continue
        tools[tool.name] = tool
    digests = tuple((name, tool.scope.rpartition(":")[2]) for name, tool in tools.items())
    return Offer(tuple(tools.values()), digests, tuple(left_out))


def _tool(live: LiveServer, theirs: "TheirTool") -> Tool[JsonObject]:
    # It takes a tenth of a second, which only those pay who have servers.
    from desktop_agent.tools.schemas import JsonSchema

    server, name = live.server, theirs.name
    description, schema = theirs.description or theirs.title or name, theirs.input_schema
    source = Outsider("mcp", server.title)

    async def run(arguments: JsonObject, call: RunningCall) -> tuple[ResultPart, ...]:
        return await parts_of_result(await live.call(name, arguments, call.progress))

    return Tool(
        name=name_of(server.id, name),
        description=_shown(description),
        schema=JsonSchema(schema),
        run=run,
        tool_class=_class_of(server, theirs.annotations),
        effects=server.effects,
        brings=lambda _: source,
        timeout=server.timeout + _SLACK,
        scope=f"{server.id}:{digest_of(description, schema, server.connection.model_dump(mode='json'))}",
    )


def _class_of(server: McpServer, annotations: Any) -> ToolClass:
    only_reads = annotations is not None and annotations.read_only_hint is True
    return ToolClass.READ_ONLY if only_reads and server.trusted else ToolClass.MUTATING


def _shown(text: str) -> str:
    """Without what nobody can see: a description could tell a model what a person cannot read."""
    seen = "".join(each if each.isprintable() or each in "\n\t" else "�" for each in text[:LONGEST_DESCRIPTION])
    return seen if len(text) <= LONGEST_DESCRIPTION else f"{seen}…"
