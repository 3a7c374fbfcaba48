"""The same rule decides which pages a server may open for a sign-in and for an elicitation."""

from pathlib import Path

import pytest
from mcp_types import ElicitRequestURLParams

from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.elicitation_and_sampling import ServerRequestHandler
from desktop_agent.mcp.lifecycle import ServerContext
from desktop_agent.types.mcp import (
    ElicitationAnswer,
    ElicitationRequest,
    HttpConnection,
    McpServer,
    ServerCall,
    ServerRequestHandlers,
    StdioConnection,
)


def live(connection: StdioConnection | HttpConnection, **fields: object) -> McpClient:
    async def never(*_: object) -> None:
        raise AssertionError

    return McpClient(McpServer(id="srv", title="Server", connection=connection), ServerContext(never, **fields))


@pytest.mark.parametrize(
    ("url", "public", "own", "program"),
    [
        ("https://login.example.com/a", True, True, True),
        ("http://login.example.com/a", False, False, False),
        ("http://127.0.0.1:8080/a", False, False, True),
        ("http://127.0.0.2:8080/a", False, True, True),
        ("https://10.0.0.1/a", False, False, False),
        ("https://192.168.7.7/a", False, True, False),
        ("https://ada@login.example.com/a", False, False, False),
    ],
)
async def test_a_page_of_a_question(url, public, own, program):
    allowed = lambda: frozenset({"192.168.7.7"})  # noqa: E731 - short
    clients = [
        live(HttpConnection(url="https://tools.example.com/mcp"), private_hosts=allowed),
        live(HttpConnection(url="http://127.0.0.2/mcp"), private_hosts=allowed),
        live(StdioConnection(command="x")),
    ]
    assert [client.lifecycle._may_open(url) for client in clients] == [public, own, program]
    requests: list[ElicitationRequest] = []

    async def elicit(request: ElicitationRequest) -> ElicitationAnswer:
        requests.append(request)
        return ElicitationAnswer("decline")

    answering = ServerRequestHandler(
        lambda: "Server",
        lambda: ServerRequestHandlers(elicit),
        Path("/"),
        ServerLog(),
        may_open=clients[0].lifecycle._may_open,
    )
    answering.set_active_calls([ServerCall()])
    await answering.answer_elicitation(
        None, ElicitRequestURLParams(mode="url", message="Open", url=url, elicitation_id="1")
    )
    assert [client.may_open_url for client in requests] == [public]
