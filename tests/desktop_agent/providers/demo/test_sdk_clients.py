"""The vendors' own clients parse the demo server's script unchanged, in all four dialects."""

import base64
import io
import math
from collections.abc import AsyncIterator

import pytest
from PIL import Image

from desktop_agent.providers.demo import scripted_model
from tests.desktop_agent.providers.demo.sdk_clients import CLIENTS, Client
from tests.fakes.recording_server import RecordingServer
from tests.fakes.strict_server import strict_server

BOTH = ("Created notes/hello.txt (82 bytes).", "6 * 7 = 42")

pytestmark = pytest.mark.parametrize("sdk", CLIENTS, ids=lambda each: each.name)


@pytest.fixture
async def server() -> AsyncIterator[RecordingServer]:
    server = strict_server(speed=math.inf)
    yield server
    await server.aclose()


async def url_of(server: RecordingServer) -> str:
    return (await server.start()).removesuffix("/v1")


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
async def test_text_and_thought(server: RecordingServer, sdk: Client, streams: bool) -> None:
    async with sdk.client(await url_of(server)) as client:
        answer = await sdk.ask(client, sdk.has_begun("Hello!"), streams=streams)
    assert (answer.text, answer.thought) == (scripted_model.GREETING, scripted_model.GREETING_THOUGHT)
    assert (answer.calls, answer.input_tokens) == ([], len("Hello!") // 4 + 1)
    assert answer.output_tokens is not None
    assert answer.output_tokens > 100


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
async def test_parallel_calls_and_their_results(server: RecordingServer, sdk: Client, streams: bool) -> None:
    async with sdk.client(await url_of(server)) as client:
        history = sdk.has_begun("use both tools")
        answer = await sdk.ask(client, history, tools=True, streams=streams)
        assert answer.wanted == [
            ("write_file", {"path": scripted_model.FILE_PATH, "content": scripted_model.FILE_CONTENT}),
            ("calculate", {"expression": "6 * 7"}),
        ]
        assert answer.finish == sdk.finish_with_calls
        history += [*answer.turn, *sdk.returned(answer, list(BOTH))]
        last = await sdk.ask(client, history, tools=True, streams=streams)
    assert last.text.count("**succeeded**") == 2
    assert all(result in last.text for result in BOTH)
    assert last.calls == []


async def test_a_second_round_of_calls_brings_both_thoughts_back(server: RecordingServer, sdk: Client) -> None:
    async with sdk.client(await url_of(server)) as client:
        history = sdk.has_begun("write a file and check it")
        for result in ("Created notes/hello.txt (82 bytes).", scripted_model.FILE_CONTENT):
            answer = await sdk.ask(client, history, tools=True)
            assert answer.thought
            history += [*answer.turn, *sdk.returned(answer, [result])]
        last = await sdk.ask(client, history, tools=True)
        history += [*last.turn, *sdk.has_begun("And the weather?")]
        assert (await sdk.ask(client, history, tools=True)).text == scripted_model.SHORT
    assert last.text.count("**succeeded**") == 2
    question = server.connections[-2].question
    assert question is not None
    assert question.replayed == (0 if sdk.name == "openai-chat" else 2)


async def test_a_picture(server: RecordingServer, sdk: Client) -> None:
    out = io.BytesIO()
    Image.new("RGB", (31, 17), "teal").save(out, "PNG")
    async with sdk.client(await url_of(server)) as client:
        answer = await sdk.ask(client, sdk.has_begun("look", base64.b64encode(out.getvalue()).decode()))
    assert f"31 x 17 pixels, {len(out.getvalue()):,} bytes" in answer.text


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
async def test_an_error_in_the_middle_is_raised(server: RecordingServer, sdk: Client, streams: bool) -> None:
    async with sdk.client(await url_of(server)) as client:
        with pytest.raises(sdk.failure(), match="The demo was asked for an error"):
            await sdk.ask(client, sdk.has_begun("error please"), streams=streams)


async def test_models_and_token_counts(server: RecordingServer, sdk: Client) -> None:
    async with sdk.client(await url_of(server)) as client:
        assert await sdk.models(client) == ["demo"]
        assert await sdk.count(client, sdk.has_begun("Hello, how are you?")) in (None, 5)
