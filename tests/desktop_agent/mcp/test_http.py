"""A call over HTTP ends at once, is sent only once, and reports what the server answered, whatever that is."""

import asyncio
import json
from typing import Any

import pytest

from desktop_agent.engine.mcp_tools import load_tool_offer
from desktop_agent.mcp import connection
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.limits import OpenRequests
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import ToolFailed
from tests.fakes.mcp_client import address
from tests.fakes.mcp_site import Answer, Asked, Site, as_json, site

EVENTS = {"content-type": "text/event-stream"}
ENDED = "ended while it was asked"


def seen_result(call: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call, "result": {"content": [{"type": "text", "text": "seen"}]}}


def failed(call: Any, code: int, message: str = "boom") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call, "error": {"code": code, "message": message}}


async def call_only_tool(live: McpClient) -> str:
    """Call the server's only tool; return the text of its result or of its failure."""
    (tool,) = (await load_tool_offer(live)).tools
    try:
        (part,) = await tool.run(tool.checked({}), RunningCall("call", lambda _: None))
    except ToolFailed as error:
        return str(error)
    assert isinstance(part, Text)
    return part.text


async def outcome(answer: Any) -> tuple[str, int]:
    """Return the text of a call and how often it was sent; `answer` maps its id and the site to the response."""
    async with site() as server:
        usual, calls = Site("unused", tokens={"t"}), 0

        def answered(request: Asked) -> Answer:
            nonlocal calls
            if '"tools/call"' not in request.body:
                status, headers, body = usual.answer(request)
                return status, {**headers, "mcp-session-id": "s1"}, body
            calls += 1
            return answer(json.loads(request.body)["id"], server)

        server.answers["/mcp"] = answered
        async with address(server.url, {"authorization": "Bearer t"}) as live:
            return await call_only_tool(live), calls


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda call, _: (200, EVENTS, b"\xef\xbb\xbfdata: " + json.dumps(seen_result(call)).encode()), "seen"),
        (lambda call, _: as_json([seen_result(99), seen_result(call)]), "seen"),
        (lambda call, _: as_json(seen_result(99)), "it answers another question"),
        (lambda call, _: as_json(failed(None, -32700)), "refused: boom"),
        (lambda call, _: as_json(failed(call, -32000)), "refused: boom"),
        (lambda call, _: as_json(failed(call, -32098)), "refused: boom"),
        (lambda call, _: as_json(failed(call, -32000), 500), "refused: boom"),
        (lambda call, _: (500, {}, b"oops"), ENDED),
        (lambda call, _: as_json(failed("server-error", -32600), 404), ENDED),
        (lambda call, _: as_json(failed(None, -32000), 400), ENDED),
        (lambda call, _: (200, {"content-type": "application/json"}, b""), "it is empty"),
        (lambda call, server: (307, {"location": "/mcp"}, b""), "leads back to itself"),
        (lambda call, server: (308, {"location": server.url}, b""), "leads back to itself"),
        (lambda call, server: (307, {"location": server.url + "#x"}, b""), "leads back to itself"),
        (
            lambda call, _: as_json({**seen_result(call), "result": {"content": None}}),
            "protocol wants it: content: Input",
        ),
    ],
)
async def test_a_call_ends_at_once_is_sent_once_and_says_what_the_server_said(answer, expected):
    text, calls = await outcome(answer)
    assert expected in text
    assert "pydantic" not in text
    assert calls == 1


async def test_a_redirect_to_another_place_is_followed_and_so_often_only():
    async with site() as server:
        server.tokens = {"t"}
        server.answers["/old"] = lambda _: (307, {"location": "/mcp"}, b"")
        async with address(f"{server.root}/old", {"authorization": "Bearer t"}) as live:
            assert await call_only_tool(live) == "seen"
        server.answers = {
            f"/{number}": lambda _, number=number: (307, {"location": f"/{number + 1}"}, b"") for number in range(30)
        }
        server.asked.clear()
        async with address(f"{server.root}/0", {"authorization": "Bearer t"}) as live:
            with pytest.raises(ToolFailed, match="could not be reached"):
                await load_tool_offer(live)
        requests = [request for request in server.asked if request.path.strip("/").isdecimal()]
        assert max(int(request.path[1:]) for request in requests) == 5


async def test_who_asks_without_end_and_takes_no_answer_is_closed(monkeypatch):
    monkeypatch.setattr(connection, "OpenRequests", lambda: OpenRequests(30, timeout=0.3))
    async with site() as server:
        usual = Site("unused", tokens={"t"})
        pings = b"".join(
            b"data: " + json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode() + b"\n\n"
            for number in range(5_000)
        )

        def answered(request: Asked) -> Answer:
            server.held.pop("/mcp", None)
            if request.method == "POST" and '"method"' not in request.body:
                server.held["/mcp"] = asyncio.Event()
                return 202, {}, b""
            return (200, EVENTS, pings + b": more\n" * 100) if '"tools/call"' in request.body else usual.answer(request)

        server.answers["/mcp"] = answered
        before = len(asyncio.all_tasks())
        async with address(server.url, {"authorization": "Bearer t"}) as live:
            calling = asyncio.create_task(call_only_tool(live))
            most = 0
            while not calling.done():
                most = max(most, len(asyncio.all_tasks()) - before)
                await asyncio.sleep(0.01)
            assert ENDED in await calling
            assert most < 60
            assert "took no answer" in live.log.lines[-1].text


async def test_closing_does_not_wait_for_a_server_that_never_confirms_it():
    async with site(tokens={"t"}) as server:
        usual = Site("unused", tokens={"t"})

        def answered(request: Asked) -> Answer:
            if request.method == "DELETE":
                server.held["/mcp"] = asyncio.Event()
            status, headers, body = usual.answer(request)
            return status, {**headers, "mcp-session-id": "s1"}, body

        server.answers["/mcp"] = answered
        async with address(server.url, {"authorization": "Bearer t"}) as live:
            assert await call_only_tool(live) == "seen"
            async with asyncio.timeout(30):
                await live.lifecycle.close()
        assert "DELETE" in [request.method for request in server.asked]
