"""Tools of a server as tools of ours."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from desktop_agent.tools.in_thread import in_own_thread
from desktop_agent.tools.mcp.offering.allowance import MOST_CHARACTERS, Allowance
from desktop_agent.tools.mcp.offering.naming import digest_of, name_of, shown, shown_schema
from desktop_agent.tools.mcp.offering.results import Hidden, hidden_in, parts_of_result
from desktop_agent.tools.mcp.server import LiveServer
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.vocabulary.blocks import JsonObject, ResultPart
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.mcp.servers import HttpConnection, McpServer, StdioConnection
from desktop_agent.vocabulary.mcp.states import OfferedTool
from desktop_agent.vocabulary.tool_calls import ToolClass, UntrustedSource

if TYPE_CHECKING:
    from mcp_types import Tool as TheirTool

_SLACK = 5.0
# What a server says of a tool that nobody reads, but that counts: which questions are asked hangs on it.
_HINTS = {"read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint"}


@dataclass(frozen=True, slots=True)
class Made:
    """A tool as the server describes it, whatever the person says of it. `said` is its class by the server's word."""

    name: str
    said: ToolClass | None
    tool: Tool[JsonObject]
    schema: JsonObject

    @property
    def digest(self) -> str:
        """What it is."""
        return self.tool.scope.rpartition(":")[2]


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
                digest=each.digest,
                is_other=each.name in server.classes and server.word_about(each.name, each.digest) is None,
                schema=each.schema,
            )
            for each in self.made
        )
        on = tuple(tools[each.name] for each in listed if each.on)
        return replace(self, tools=on, listed=listed)


async def offer_of(live: LiveServer) -> Offer:
    """Ask a server for its tools. Raises ToolFailed."""
    listed = await live.tools()
    # In a thread of its own: one that is busy with a schema holds up nobody, not even the end of the program.
    return await in_own_thread(lambda sign: _made(live, listed, Allowance(sign)), grace=0)


def changed_tools(title: str, before: dict[str, str], offer: Offer) -> tuple[tuple[Sentence, str], ...]:
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


def _made(live: LiveServer, listed: "tuple[TheirTool, ...]", allowance: Allowance) -> Offer:
    """In a thread: checking two hundred schemas takes a while."""
    tools: dict[str, Made] = {}
    title = live.server.title
    hidden = live.log.hidden
    left_out = [_unusable(title, hidden(name), why) for name, why in live.left_out]
    for at, theirs in enumerate(listed):
        if not allowance.lasts():
            left_out.append(_unchecked(title, len(listed) - at))
            break
        try:
            tool = _tool(live, theirs, allowance)
            made = Made(theirs.name, _said(theirs.annotations), tool, tool.schema.json_schema)
        except WrongUse as error:
            left_out.append(_unusable(title, hidden(theirs.name), error.sentence))
            continue
        if made.tool.name in tools:
            values = {"tool": theirs.name[:100], "server": title}
            left_out.append(Sentence("The server “{server}” has two tools named “{tool}”.", values))
            continue
        tools[made.tool.name] = made
    digests = tuple((name, each.digest) for name, each in tools.items())
    return Offer(tuple(tools.values()), digests, tuple(left_out)).under(live.server)


def _unusable(title: str, name: str, why: Sentence | str) -> Sentence:
    template = "The tool “{tool}” of the server “{server}” cannot be used: {why}"
    return Sentence(template, {"tool": name[:100], "server": title, "why": why})


def _unchecked(title: str, count: int) -> Sentence:
    template = "The server “{server}” describes its tools at such length that {n} of them are left out."
    return Sentence(template, {"server": title, "n": str(count)})


def _tool(live: LiveServer, theirs: "TheirTool", allowance: Allowance) -> Tool[JsonObject]:
    # It takes a tenth of a second, which only those pay who have servers.
    from desktop_agent.tools.schemas import JsonSchema

    server, name = live.server, theirs.name
    description, schema = theirs.description or theirs.title or name, theirs.input_schema
    hidden = live.log.hidden
    if hidden(name) != name:
        raise WrongUse("its name holds a secret that was given to the server.")

    async def run(arguments: JsonObject, call: RunningCall) -> tuple[ResultPart, ...]:
        call.so_far(f"The server “{server.title}” was told to end it; what it had done by then is not known.")
        return await parts_of_result(await live.call(name, arguments, call.progress, call.spent), hidden)

    checked = JsonSchema(_visible(schema, hidden), allowance.lasts)
    told = shown(hidden(description))
    if not allowance.takes(len(told) + checked.size):
        raise WrongUse(f"the tools of a server may say {MOST_CHARACTERS:,} characters together.")
    return Tool(
        name=name_of(server.id, name),
        description=told,
        schema=checked,
        run=run,
        scope=f"{server.id}:{digest_of(description, schema, _hints(theirs), _identity(server.connection))}",
    )


def _visible(schema: JsonObject, hidden: Hidden) -> JsonObject:
    try:
        return hidden_in(shown_schema(schema), hidden)
    except RecursionError:
        raise WrongUse("its schema is nested too deep.") from None


def _hints(theirs: "TheirTool") -> JsonObject:
    said = theirs.annotations
    return said.model_dump(mode="json", exclude_none=True, include=_HINTS) if said is not None else {}


def _identity(connection: StdioConnection | HttpConnection) -> JsonObject:
    # How the person proves who they are makes no other server of it.
    return connection.model_dump(mode="json", exclude={"sign_in", "client_id"})


def _set_up(made: Made, server: McpServer) -> Tool[JsonObject]:
    source = UntrustedSource("mcp", server.title, server.id)

    def brings(_: JsonObject) -> UntrustedSource:
        return source

    return replace(
        made.tool,
        tool_class=_class_of(made, server),
        effects=server.effects,
        brings=brings,
        timeout=server.timeout + _SLACK,
    )


def _class_of(made: Made, server: McpServer) -> ToolClass:
    """The person's own word wins, if it was about this very tool; the server's is believed where it is trusted."""
    believed = made.said if server.trusted else None
    return server.word_about(made.name, made.digest) or believed or ToolClass.MUTATING


def _said(annotations: Any) -> ToolClass | None:
    only_reads: bool | None = getattr(annotations, "read_only_hint", None)
    if only_reads is None:
        return None
    return ToolClass.READ_ONLY if only_reads else ToolClass.MUTATING
