"""The demo server, spoken to by a plain HTTP client over a real socket."""

import asyncio
import base64
import io
import json
import math
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from PIL import Image

from desktop_agent.agent.tool_calls.tool_results import with_edit_note
from desktop_agent.providers.demo import scripted_model
from desktop_agent.providers.demo.scripted_model import split_pieces
from desktop_agent.providers.demo.server import DemoServer
from desktop_agent.types.blocks import Text, ToolResult
from tests.fakes.listening import cancel_after, record_bound_sockets
from tests.fakes.recording_server import RecordingServer, RequestRecord
from tests.frame.patience import PATIENCE

Json = dict[str, Any]
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
    for name in ("read_file", "write_file", "calculate")
]


@pytest.fixture
async def server() -> AsyncIterator[RecordingServer]:
    server = RecordingServer(speed=math.inf)
    yield server
    await server.aclose()


@pytest.fixture
async def client(server: RecordingServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=await server.start(), trust_env=False, timeout=30) as client:
        yield client


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def chat_request(*messages: Json, **more: Any) -> Json:
    return {"model": "demo", "stream": True, "messages": list(messages), **more}


class Answer:
    """A stream of chunks, folded to one answer."""

    def __init__(self) -> None:
        self.chunks: list[Json] = []
        self.done = False
        self.error: Json | None = None

    def add(self, data: str) -> None:
        assert not self.done
        if data == "[DONE]":
            self.done = True
            return
        chunk = json.loads(data)
        if "error" in chunk:
            self.error = chunk["error"]
        else:
            self.chunks.append(chunk)

    @property
    def deltas(self) -> list[Json]:
        return [choice["delta"] for chunk in self.chunks for choice in chunk["choices"]]

    @property
    def text(self) -> str:
        return "".join(delta.get("content") or "" for delta in self.deltas)

    @property
    def thought(self) -> str:
        return "".join(delta.get("reasoning_content") or "" for delta in self.deltas)

    @property
    def finish(self) -> str | None:
        reasons = [
            choice["finish_reason"] for chunk in self.chunks for choice in chunk["choices"] if choice["finish_reason"]
        ]
        assert len(reasons) <= 1
        return reasons[0] if reasons else None

    @property
    def calls(self) -> list[Json]:
        calls: dict[int, Json] = {}
        for delta in self.deltas:
            for part in delta.get("tool_calls", ()):
                if "id" in part:
                    calls[part["index"]] = {"id": part["id"], "type": "function", "function": dict(part["function"])}
                else:
                    calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
        return [calls[index] for index in sorted(calls)]


async def ask(client: httpx.AsyncClient, *messages: Json, **more: Any) -> Answer:
    answer = Answer()
    async with client.stream("POST", "/chat/completions", json=chat_request(*messages, **more)) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream"
        async for line in response.aiter_lines():
            if line:
                assert line.startswith("data: ")
                answer.add(line[6:])
    return answer


async def ask_with_results(client: httpx.AsyncClient, text: str, *results: str) -> tuple[Answer, list[Json]]:
    """Ask, answer each round of calls with the next result, and return the last answer and all calls."""
    messages = [user(text)]
    answer = await ask(client, *messages, tools=TOOLS)
    calls: list[Json] = []
    for result in results:
        assert answer.finish == "tool_calls"
        calls += answer.calls
        messages.append({"role": "assistant", "content": answer.text, "tool_calls": answer.calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": result} for call in answer.calls]
        answer = await ask(client, *messages, tools=TOOLS)
    return answer, calls


async def test_models_are_listed_with_vision_and_tools(client: httpx.AsyncClient) -> None:
    listing = (await client.get("/models")).json()
    (model,) = listing["data"]
    assert (listing["object"], model["id"], model["object"]) == ("list", "demo", "model")
    assert "image" in model["architecture"]["input_modalities"]
    assert "tools" in model["supported_parameters"]


async def test_the_greeting_thinks_first_then_shows_markdown(client: httpx.AsyncClient) -> None:
    answer = await ask(client, user("Hello!"), stream_options={"include_usage": True})
    assert answer.done
    assert answer.finish == "stop"
    assert answer.thought == scripted_model.GREETING_THOUGHT
    assert answer.text == scripted_model.GREETING
    for sign in ("\n## ", "\n- ", "| --- |", "```python", "demo"):
        assert sign in answer.text
    kinds = ["thought" if "reasoning_content" in delta else "text" for delta in answer.deltas if "role" not in delta]
    assert kinds == sorted(kinds, reverse=True)
    assert answer.chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    usage = answer.chunks[-1]["usage"]
    assert answer.chunks[-1]["choices"] == []
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert all(chunk["usage"] is None for chunk in answer.chunks[:-1])


async def test_usage_comes_only_when_asked_for_and_thought_only_when_wanted(client: httpx.AsyncClient) -> None:
    answer = await ask(client, user("Hello!"), reasoning_effort="none")
    assert all("usage" not in chunk for chunk in answer.chunks)
    assert answer.thought == ""


async def test_a_later_prompt_that_it_does_not_know_gets_the_list(client: httpx.AsyncClient) -> None:
    answer = await ask(client, user("Hello!"), {"role": "assistant", "content": "Hi"}, user("And the weather?"))
    assert answer.text == scripted_model.SHORT


async def test_without_stream_the_same_comes_in_one_piece(client: httpx.AsyncClient) -> None:
    body = (await client.post("/chat/completions", json={**chat_request(user("Hello!")), "stream": False})).json()
    (choice,) = body["choices"]
    assert choice["message"]["content"] == scripted_model.GREETING
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("format_", "size"), [("PNG", (31, 17)), ("JPEG", (320, 200)), ("WEBP", (5, 9)), ("GIF", (8, 8))]
)
async def test_a_picture_is_described_from_its_bytes(
    client: httpx.AsyncClient, format_: str, size: tuple[int, int]
) -> None:
    out = io.BytesIO()
    Image.new("RGB", size, "teal").save(out, format_)
    # The media type is wrong on purpose.
    url = "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
    parts = [{"type": "text", "text": "calculate 1 + 1"}, {"type": "image_url", "image_url": {"url": url}}]
    answer = await ask(client, user(parts), tools=TOOLS)
    assert f"**{format_}**" in answer.text
    assert f"{size[0]} x {size[1]} pixels, {len(out.getvalue()):,} bytes" in answer.text
    assert answer.finish == "stop"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org/a.png", "opens no addresses"),
        ("data:image/png;base64,@@@", "base64 text is damaged"),
        ("data:image/png;base64,aGVsbG8=", "no picture that can be read (5 bytes)"),
    ],
)
async def test_what_cannot_be_measured_is_said(client: httpx.AsyncClient, url: str, expected: str) -> None:
    answer = await ask(client, user([{"type": "image_url", "image_url": {"url": url}}]))
    assert expected in answer.text


async def test_a_mentioned_picture_that_did_not_come_is_missed(client: httpx.AsyncClient) -> None:
    assert (await ask(client, user("What is in this picture?"))).text == scripted_model.NO_PICTURE


async def test_a_call_comes_in_pieces_and_joins_to_json(client: httpx.AsyncClient) -> None:
    answer = await ask(client, user("Please write a file"), tools=TOOLS)
    (call,) = answer.calls
    assert call["function"]["name"] == "write_file"
    assert json.loads(call["function"]["arguments"]) == {
        "path": scripted_model.FILE_PATH,
        "content": scripted_model.FILE_CONTENT,
    }
    fragments = [delta for delta in answer.deltas if "tool_calls" in delta]
    assert len(fragments) > 5
    assert answer.finish == "tool_calls"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("Created notes/hello.txt (82 bytes).", "**succeeded**"),
        ("Replaced notes/hello.txt (82 bytes).", "**succeeded**"),
        ("The person denied this call.", "**denied**"),
        ("Error: The person denied this call and said: not now", "**denied**"),
        ("The call was cancelled before it was finished.", "**cancelled**"),
        ("“notes/hello.txt” is write-protected. Look at the call's arguments.", "**failed**"),
        ("There is no tool “write_file”.", "**failed**"),
        ("fine", "cannot tell"),
        ("The disk is full; “notes/hello.txt” was not written. The call failed.", "**failed**"),
    ],
)
async def test_it_says_truthfully_what_came_back(client: httpx.AsyncClient, result: str, expected: str) -> None:
    answer, _ = await ask_with_results(client, "write a file", result)
    assert expected in answer.text
    assert result in answer.text
    assert answer.finish == "stop"


async def test_writing_and_checking_takes_two_rounds(client: httpx.AsyncClient) -> None:
    answer, calls = await ask_with_results(
        client,
        "write a file and check it",
        "Created notes/hello.txt (82 bytes).",
        scripted_model.FILE_CONTENT + "There was no error.",
    )
    assert [call["function"]["name"] for call in calls] == ["write_file", "read_file"]
    assert answer.text.count("**succeeded**") == 2
    denied, calls = await ask_with_results(client, "write a file and check it", "The person denied this call.")
    assert len(calls) == 1
    assert "**denied**" in denied.text


async def test_of_edited_arguments_it_says_whose_they_were(client: httpx.AsyncClient) -> None:
    edited = {"path": "notes/other.txt", "content": "Größe\nand more\n"}
    ran = with_edit_note(
        ToolResult(tool_use_id="1", content=(Text(text="Created notes/other.txt (15 bytes)."),)),
        {"path": scripted_model.FILE_PATH, "content": scripted_model.FILE_CONTENT},
        edited,
    )
    (text,) = ran.content
    assert isinstance(text, Text)
    answer, calls = await ask_with_results(client, "write a file and check it", text.text, edited["content"])
    assert json.loads(calls[1]["function"]["arguments"]) == {"path": "notes/other.txt"}
    assert answer.text.count("**succeeded**") == 2
    assert "you changed what I had asked for, and it ran with `notes/other.txt` with 15 characters" in answer.text
    assert "beginning “Größe”" in answer.text
    assert "The person changed" not in answer.text, "that is for models to read"


async def test_two_calls_in_one_turn(client: httpx.AsyncClient) -> None:
    answer = await ask(client, user("use both tools"), tools=TOOLS)
    assert [call["function"]["name"] for call in answer.calls] == ["write_file", "calculate"]
    assert len({call["id"] for call in answer.calls}) == 2


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("calculate sqrt(2) * 3", "sqrt(2) * 3"),
        ("Can you calculate (3 + 4) * 12?", "(3 + 4) * 12"),
        ("What is 12*12 please", "12*12"),
        ("what is 2**10?", "2**10"),
        ("calculate something", "6 * 7"),
    ],
)
async def test_arithmetic_is_handed_to_the_calculator(client: httpx.AsyncClient, text: str, expression: str) -> None:
    answer = await ask(client, user(text), tools=TOOLS)
    (call,) = answer.calls
    assert json.loads(call["function"]["arguments"]) == {"expression": expression}


async def test_without_tools_it_says_so(client: httpx.AsyncClient) -> None:
    for more in ({}, {"tools": []}):
        answer = await ask(client, user("write a file"), **more)
        assert "no tools were offered" in answer.text
        assert answer.finish == "stop"
    with_one_tool = await ask(client, user("write a file"), tools=TOOLS[:1])
    assert "only these tools were offered: `read_file`" in with_one_tool.text


async def test_a_long_answer_is_long(client: httpx.AsyncClient) -> None:
    answer = await ask(client, user("Tell me a long story"))
    assert len(answer.text.split()) > 3000
    assert answer.text == scripted_model.long_story()


async def test_an_error_comes_in_the_middle_and_nothing_after_it(client: httpx.AsyncClient) -> None:
    answer = await ask(client, user("error please"))
    assert answer.text == scripted_model.BEFORE_BREAK
    assert answer.error is not None
    assert answer.error["message"] == scripted_model.BREAK_MESSAGE
    assert (answer.done, answer.finish) == (False, None)
    response = await client.post("/chat/completions", json={**chat_request(user("error")), "stream": False})
    assert response.status_code == 500


async def test_one_connection_serves_one_request_after_another(
    server: RecordingServer, client: httpx.AsyncClient
) -> None:
    for _ in range(3):
        await ask(client, user("Hello!"))
    await client.get("/models")
    assert [record.state for record in server.connections] == ["finished"] * 4


async def test_parallel_connections_do_not_mix(client: httpx.AsyncClient) -> None:
    first, second, third = await asyncio.gather(
        ask(client, user("Hello!")), ask(client, user("tell a story")), ask(client, user("What is in the picture?"))
    )
    assert (first.text, second.text, third.text) == (
        scripted_model.GREETING,
        scripted_model.long_story(),
        scripted_model.NO_PICTURE,
    )


async def test_a_client_that_goes_is_noticed_and_nothing_more_is_produced() -> None:
    disconnected: asyncio.Future[RequestRecord] = asyncio.get_running_loop().create_future()
    # So slow that the next piece would come long after the test: only the disconnect itself can be noticed.
    server = RecordingServer(speed=0.0001, on_disconnect=disconnected.set_result)
    async with httpx.AsyncClient(base_url=await server.start(), trust_env=False) as client:
        async with client.stream("POST", "/chat/completions", json=chat_request(user("long"))) as response:
            await anext(response.aiter_bytes())
        record = await asyncio.wait_for(disconnected, PATIENCE)
        assert (record.state, record.frames_sent) == ("disconnected", 1)
        assert server.last_disconnect_at == record.ended_at
        assert server.connections == (record,)
    await server.aclose()
    assert record.frames_sent == 1


async def test_the_server_stops_for_a_client_that_goes() -> None:
    server = DemoServer()
    async with httpx.AsyncClient(base_url=await server.start(), trust_env=False) as client:
        async with client.stream("POST", "/chat/completions", json=chat_request(user("long"))) as response:
            await anext(response.aiter_bytes())
        async with asyncio.timeout(PATIENCE):
            while server._tasks:
                await asyncio.sleep(0.01)
    await server.aclose()


async def test_closing_ends_open_streams_and_can_be_repeated() -> None:
    server = DemoServer(speed=0.0001)
    base_url = await server.start()
    assert await server.start() == base_url
    async with httpx.AsyncClient(base_url=base_url, trust_env=False) as client:
        async with client.stream("POST", "/chat/completions", json=chat_request(user("long"))) as response:
            parts = response.aiter_bytes()
            await anext(parts)
            await server.aclose()
            with pytest.raises(httpx.RemoteProtocolError):
                await anext(parts)
        await server.aclose()
        with pytest.raises(httpx.ConnectError):
            await client.get("/models")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not json", 400),
        (b"[]", 404),
        (b'{"model": "gpt-5", "messages": []}', 404),
        (b'{"model": "demo"}', 400),
        (b'{"model": "demo", "messages": "x"}', 400),
        (b'{"model": "demo", "messages": []}', 400),
        (b"[" * 100_000, 400),
    ],
)
async def test_a_bad_request_gets_a_status_and_a_sentence(client: httpx.AsyncClient, body: bytes, status: int) -> None:
    response = await client.post("/chat/completions", content=body)
    assert response.status_code == status
    assert response.json()["error"]["message"].endswith(".")
    assert (await client.get("/models")).status_code == 200


async def test_strange_messages_are_survived(client: httpx.AsyncClient) -> None:
    messages: list[Any] = [
        {"role": "system", "content": None},
        "text",
        {"role": "assistant", "tool_calls": [{"id": 1, "function": {"name": 2, "arguments": "{"}}]},
        {"role": "tool", "tool_call_id": 1, "content": [{"type": "text", "text": "half \ud83d"}]},
    ]
    # The standard library writes a lone surrogate as an escape, which is valid JSON.
    body = json.dumps({**chat_request(*messages, tools=[None, {"function": 1}]), "stream": False})
    response = await client.post("/chat/completions", content=body.encode())
    assert response.status_code == 200
    assert response.json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "tool", "tool_call_id": "c", "content": "x"}],
        [{"role": "assistant", "tool_calls": [{"id": "c"}]}, user("x")],
        [{"role": "assistant", "tool_calls": [{"id": "c"}]}],
        [{"role": "assistant", "tool_calls": [{"id": "c"}]}, {"role": "tool", "tool_call_id": "d", "content": "x"}],
    ],
)
async def test_calls_and_results_must_fit(client: httpx.AsyncClient, messages: list[Json]) -> None:
    response = await client.post("/chat/completions", json=chat_request(user("x"), *messages))
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


async def test_unknown_addresses_and_broken_requests(server: RecordingServer, client: httpx.AsyncClient) -> None:
    assert (await client.get("/nothing")).status_code == 404
    assert (await client.get("/chat/completions")).status_code == 404
    assert client.base_url.port is not None
    for data, status in (
        (b"rubbish\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, b"431"),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(data)
        answer = await reader.read(12)
        assert answer == b"HTTP/1.1 " + status
        writer.close()
        await writer.wait_closed()


async def test_a_request_sent_before_the_answer_ended_is_answered_too(client: httpx.AsyncClient) -> None:
    body = json.dumps(chat_request(user("Hello!"))).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    writer.write(request + request)
    for _ in range(2):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert b"[DONE]" in await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("turns", range(1, 9))
async def test_a_start_that_is_cancelled_at_any_moment_can_be_closed(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    bound = record_bound_sockets(monkeypatch)
    server = DemoServer()
    await cancel_after(turns, server.start())
    await server.aclose()
    assert [socket for socket in bound if socket.fileno() != -1] == []


def test_pieces_are_small_and_join_to_the_text() -> None:
    for text in (scripted_model.GREETING, scripted_model.long_story(), "  \n a  ", "", "日本語のとても長い文章です"):
        assert "".join(split_pieces(text)) == text
        assert all(len(piece.strip()) <= 7 for piece in split_pieces(text))
