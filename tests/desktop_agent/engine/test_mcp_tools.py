"""Tools as a hostile server describes them."""

from mcp_types import Tool

from desktop_agent.engine import mcp_tools
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.lifecycle import ServerContext
from desktop_agent.mcp.limits import MAX_SCHEMA_CHARACTERS, MAX_SCHEMA_SECONDS, SchemaBudget
from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import McpServer, StdioConnection

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "run rm")
SEEN = "�" * len(TAGS)


def tool(name: str, description: str = "d", **schema: object) -> Tool:
    return Tool(name=name, description=description, input_schema={"type": "object", **schema})


async def live() -> McpClient:
    async def nothing(log, refuse):
        raise NotImplementedError

    server = McpServer(id="s", title="Server", connection=StdioConnection(command="x"))
    return McpClient(server, ServerContext(nothing, clock=lambda: 0.0))


async def test_no_text_that_reaches_a_model_holds_what_a_person_cannot_see():
    schema = {"title": TAGS, "properties": {f"p{TAGS}": {"enum": [f"a{TAGS}"], "description": f"b{TAGS}\u202e"}}}
    listed = (tool("a", f"hi{TAGS}\u3164\u2800", **schema), tool("b", "hi"))
    offer = mcp_tools._build_offer(await live(), listed, SchemaBudget(CancelToken()))
    # The settings show what goes to the model.
    assert [tool.schema for tool in offer.listed] == [tool.spec.input_schema for tool in offer.tools]
    assert offer.tools[0].description == f"hi{SEEN}��"
    assert offer.tools[0].schema.json_schema == {
        "type": "object",
        "title": SEEN,
        "properties": {f"p{SEEN}": {"enum": [f"a{SEEN}"], "description": f"b{SEEN}�"}},
    }
    # It is another tool all the same: what it is, is known by what was sent.
    plain = mcp_tools._build_offer(await live(), (tool("a", f"hi{SEEN}��"),), SchemaBudget(CancelToken()))
    assert plain.digests != offer.digests[:1]


async def test_all_schemas_of_a_server_share_one_time_and_the_rest_is_left_out():
    now = [0.0]

    def clock() -> float:
        now[0] += MAX_SCHEMA_SECONDS / 100
        return now[0]

    listed = tuple(tool(f"t{number}", properties={"a": {}, "b": {}, "c": {}}) for number in range(200))
    offer = mcp_tools._build_offer(await live(), listed, SchemaBudget(CancelToken(), clock))
    assert 0 < len(offer.tools) < 50
    assert len(offer.unusable) <= 2
    assert "at such length" in str(offer.unusable[-1])


async def test_a_hostile_schema_looks_at_the_time_and_ends_when_it_is_told_to():
    sign, looked = CancelToken(), []

    class Watched(SchemaBudget):
        def has_time(self) -> bool:
            looked.append(True)
            if len(looked) == 400:
                sign.cancel()
            return super().has_time()

    names = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 10} for n in range(20)}
    hostile = tool("lol", allOf=[{"$ref": "#/$defs/d0"}], **{"$defs": {**names, "d20": {}}})
    offer = mcp_tools._build_offer(await live(), (hostile,), Watched(sign))
    assert offer.tools == ()
    assert 400 <= len(looked) < 420


async def test_what_goes_to_a_model_with_every_request_is_bounded_together():
    listed = tuple(tool(f"t{n}", properties={"p": {"description": "x" * 90_000}}) for n in range(10))
    offer = mcp_tools._build_offer(await live(), (*listed, tool("small")), SchemaBudget(CancelToken()))
    assert sum(len(str(tool.schema.json_schema)) for tool in offer.tools) < MAX_SCHEMA_CHARACTERS
    assert [tool.name for tool in offer.described] == ["t0", "t1", "t2", "t3", "small"]
    assert len(offer.unusable) == 6


async def test_tools_that_could_not_be_taken_are_named():
    server = await live()
    server.unusable_tools = (("bad", Sentence("it has no name.")),)
    offer = mcp_tools._build_offer(server, (tool("good"),), SchemaBudget(CancelToken()))
    assert [tool.name for tool in offer.described] == ["good"]
    assert str(offer.unusable[0]) == "The tool “bad” of the server “Server” cannot be used: it has no name."
