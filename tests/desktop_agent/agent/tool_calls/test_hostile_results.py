"""A tool gives back what it likes: what is kept of it goes to the disk and back, and to every server."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import model_validator

from desktop_agent.agent.model_request import PictureSupport, prepare_pictures
from desktop_agent.agent.tool_calls.tool_results import MAX_PICTURE_CHARACTERS, validated_content
from desktop_agent.api.responses import collect_response
from desktop_agent.conversation.picture_preparation import PictureFitter
from desktop_agent.processes.foreign_code import MAX_PARTS
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.decorator import tool as made_tool
from desktop_agent.tools.tool import ModelSchema, RunningCall
from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    ImageDetail,
    Json,
    Outcome,
    StoredSource,
    Text,
    ToolResult,
    UrlSource,
)
from desktop_agent.types.errors import ToolFailed, ToolInputInvalid
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import Dialect, ImageLimits, ModelRequest
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.recordings import recordings
from tests.fakes.tool_batch import Desk, Words, call, tool


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


ANSWERS: dict[Dialect, Path] = {
    dialect: next(path for path in recordings(dialect) if path.name == "text.sse")
    for dialect in ("openai-chat", "openai-responses", "anthropic", "gemini")
}
WEB = UrlSource(url="https://example.org/a.png")
WHOLE: dict[str, Any] = {
    "not a number": (Json(value={"a": [float("nan"), float("inf"), -float("inf")]}),),
    "half characters": (Text(text="half \ud83c"), Json(value={"half \udfff": "\ud83c"})),
    "a hundred levels": (Json(value=nested(100)),),
    "long numbers": (Json(value=[10**4_000, 10**40, 1e308, -0.0]),),
    "keys that are none": (Json(value={1: {None: {True: (1, 2)}}}),),
    "a picture": (Image(source=WEB, name="a.png"),),
    "a picture of half a name": (Image(source=WEB, detail=ImageDetail.HIGH, name="half \ud83c"),),
    "opaque state": (Text.model_construct(text="said", provider="anthropic", metadata={"a": object()}),),
    "control characters": (Text(text="\x00\x1b[31m\x7f\u2028"), Json(value={"\x00": "\x00"})),
}
BROKEN: dict[str, Any] = {
    "five thousand levels": (Json(value=nested(5_000)),),
    "three hundred levels": (Json(value=nested(300)),),
    "an object": (object(),),
    "a number without end": (Json(value=10**5_000),),
}


async def result_of(value: Any) -> tuple[ToolResult, Message, list[Outcome]]:
    """Call a tool that returns `value`, and a good one. Return the result, the answer with the calls, both outcomes."""

    async def work(_word: str, _call: RunningCall) -> Any:
        return value

    desk = Desk(call("1", "bad"), call("2", "good"), tools=[tool("bad", work, reads=True), tool("good", reads=True)])
    await desk.run()
    return desk.results[0], desk.answer, desk.outcomes


@pytest.mark.parametrize("name", [*WHOLE, *BROKEN])
async def test_what_is_kept_goes_there_and_back(tmp_path: Path, name: str) -> None:
    value = WHOLE.get(name, BROKEN.get(name))
    result, answer, outcomes = await result_of(value)
    assert outcomes == [Outcome.SUCCEEDED if name in WHOLE else Outcome.FAILED, Outcome.SUCCEEDED]
    if name in BROKEN:
        (error,) = result.content
        assert isinstance(error, Text)
        assert error.text.count(". ") <= 1
        assert error.text.startswith("The tool ")
        assert error.text.endswith(".")
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    good = ToolResult(tool_use_id="2", content=(Text(text="x"),))
    messages = (Message.user("go"), answer, Message.tool_results([result, good]))
    store = await Store.open(tmp_path)
    record = await store.create_conversation(title="t")
    await store.commit(record.id, *messages)
    assert (await store.load(record.id)).messages == messages
    await store.close()


@pytest.mark.parametrize("dialect", sorted(ANSWERS))
async def test_every_server_takes_it(dialect: Dialect) -> None:
    http = HttpClient()
    # The server of the test judges each request by the types of the vendor's own client.
    async with Loopback(Reply(ANSWERS[dialect].read_bytes())) as server:
        root = server.root if dialect in {"anthropic", "gemini"} else server.url
        provider = make_provider(dialect, root, None, http)
        for value in (*WHOLE.values(), *BROKEN.values()):
            result, answer, _ = await result_of(value)
            call_message = Message(role=Role.ASSISTANT, blocks=answer.tool_uses[:1])
            history = (Message.user("go"), call_message, Message.tool_results([result]))
            messages, _ = await prepare_pictures(
                history, PictureSupport(_nothing, PictureFitter(), ImageLimits(), True)
            )
            response = await collect_response(provider.stream(ModelRequest("m", tuple(messages))))
            assert response.error is None
            assert json.loads(server.requests[-1].body)
        assert len(server.requests) == len(WHOLE) + len(BROKEN)
    await http.aclose()


async def _nothing(_: StoredSource) -> bytes:
    raise AssertionError


@pytest.mark.parametrize("kind", [tuple, list])
async def test_of_a_million_parts_no_more_are_looked_at_than_are_kept(kind: type[Any]) -> None:
    value = kind([Text(text="x")] * (MAX_PARTS - 1) + [object()] * 1_000_000)
    parts = await validated_content(value, 400_000)
    assert parts == (*[Text(text="x")] * (MAX_PARTS - 1), Text(text="[left out: 1,000,000 more parts]"))


async def test_what_no_characters_are_left_for_is_counted_with_what_is_never_looked_at() -> None:
    parts = await validated_content([Text(text="xx"), *([object()] * 5_000)], 1)
    assert parts == (Text(text="x\n[cut: 2 characters in all]"), Text(text="[left out: 5,000 more parts]"))


async def test_a_function_that_answers_a_million_parts_is_cut_too() -> None:
    @made_tool
    def many() -> Any:
        """Many."""
        return [Text(text="first"), *(["x"] * 1_000_000)]

    parts = await many.run(many.checked({}), RunningCall("1", lambda _: None))
    assert len(parts) == MAX_PARTS
    assert await validated_content(parts, 400_000) == parts
    assert parts[-1] == Text(text="[left out: 999,002 more parts]")


async def test_a_picture_that_is_too_large_is_not_even_checked() -> None:
    data = "x" * (MAX_PICTURE_CHARACTERS + 1)
    parts = await validated_content(
        [Image.model_construct(source=Base64Source.model_construct(media_type="image/png", data=data))], 10
    )
    assert parts == (Text(text="[left out: a picture that is too large]"),)


LONG = "half \ud83c" + "x" * 1_000_000


class Talkative(Words):
    """Input that is refused at length."""

    @model_validator(mode="before")
    @classmethod
    def refuse(cls, _arguments: Any) -> Any:
        raise ToolInputInvalid(LONG)


async def fails(*_arguments: Any) -> Any:
    raise ToolFailed(LONG)


@pytest.mark.parametrize(
    "more",
    [{"run": fails}, {"schema": ModelSchema(Talkative)}, {"changes": fails}],
    ids=["failure", "arguments", "files"],
)
async def test_what_a_tool_says_of_a_failure_is_cut_like_a_result(more: dict[str, Any]) -> None:
    desk = Desk(call("1", "bad"), tools=[replace(tool("bad", reads=True), **more)])
    object.__setattr__(desk.context, "checkpointer", Checkpointer(None, None, None, "c"))  # type: ignore[arg-type]
    await desk.run()
    assert desk.outcomes == [Outcome.FAILED]
    assert 400_000 <= len(desk.words[0]) < 400_100
    assert "half ?xxx" in desk.words[0][:150]
