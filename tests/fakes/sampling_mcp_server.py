"""An MCP server, built with the library of MCP, whose tool needs the answer of a model first."""

from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.resolve import Resolve, Sample
from mcp_types import CreateMessageResultWithTools, SamplingMessage, TextContent, Tool


def question() -> Sample:
    look = Tool(name="look", description="Looks.", input_schema={"type": "object", "properties": {}})
    prompt = SamplingMessage(role="user", content=TextContent(text="Name a colour."))
    return Sample([prompt], max_tokens=9, tools=[look])


async def colour(said: Annotated[CreateMessageResultWithTools, Resolve(question)]) -> str:
    """Has a model name a colour, or ask for a tool of this server."""
    return f"{said.stop_reason}: " + ", ".join(block.type for block in said.content_as_list)


def run() -> None:
    """Serve until the input ends."""
    server = MCPServer("own", version="1")
    server.add_tool(colour)
    server.run("stdio")
