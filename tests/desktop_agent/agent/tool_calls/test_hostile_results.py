"""A tool gives back what it likes: what is kept of it goes to the disk and back, and to every server."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import model_validator

from desktop_agent.agent.model_request import PictureSupport, prepare_pictures
from desktop_agent.agent.tool_calls.tool_results import MAX_PICTURE_CHARACTERS, InvalidToolResult, validated_content
from desktop_agent.api.responses import collect_response
from desktop_agent.conversation.picture_preparation import PictureFitter
from desktop_agent.processes.foreign_code import MAX_PARTS
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.decorator import tool as made_tool
from desktop_agent.tools.tool import ModelSchema, RunningCall
from desktop_agent.types.blocks import Base64Source, Image, Json, Outcome, StoredSource, Text, ToolResult, UrlSource
from desktop_agent.types.errors import ToolFailed, ToolInputInvalid
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import Dialect, ImageLimits, ModelRequest
from tests.desktop_agent.agent.tool_calls.rounds import Desk, Words, call, tool
from tests.desktop_agent.providers.canon import recordings
from tests.desktop_agent.providers.loopback import Loopback, Reply


class Quiet(str):
    """Text that does not want to be read."""

    def refuse(self, *_: object) -> Any:
        raise SystemExit

    __len__ = __getitem__ = __iter__ = __str__ = __format__ = encode = isascii = refuse  # type: ignore[assignment]


class Parts(list[Any]):
    """A list that lies about itself."""

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        raise SystemExit

    def __getitem__(self, _: Any) -> Any:
        raise SystemExit


class Pretender:
    """Something that says it is a text."""

    __class__ = Text  # type: ignore[assignment]
    text = 5


class Raising:
    """Something that does not want to be looked at."""

    @property
    def __class__(self) -> Any:
        raise SystemExit


class Unreadable(Text):
    """A text whose words are not to be had."""

    def __getattribute__(self, name: str) -> Any:
        if name == "text":
            raise GeneratorExit
        return super().__getattribute__(name)


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def picture(**parts: Any) -> Image:
    return Image.model_construct(**parts)


ANSWERS: dict[Dialect, Path] = {
    dialect: next(path for path in recordings(dialect) if path.name == "text.sse")
    for dialect in ("openai-chat", "openai-responses", "anthropic", "gemini")
}
WEB = UrlSource(url="https://example.org/a.png")
WHOLE: dict[str, Any] = {
    "not a number": (Json(value={"a": [float("nan"), float("inf"), -float("inf")]}),),
    "half characters": (Text(text="half \ud83c"), Json(value={"half \udfff": "\ud83c"})),
    "words of a class": (Text.model_construct(text=Quiet("said")), Json(value={Quiet("a"): Quiet("b")})),
    "a list of a class": Parts([Text(text="said")]),
    "a hundred levels": (Json(value=nested(100)),),
    "long numbers": (Json(value=[10**4_000, 10**40, 1e308, -0.0]),),
    "keys that are none": (Json(value={1: {None: {True: (1, 2)}}}),),
    "a picture": (picture(source=WEB, detail="auto", name=Quiet("a.png")),),
    "a picture of half a name": (picture(source=WEB, detail="high", name="half \ud83c"),),
    "opaque state": (Text.model_construct(text="said", provider="anthropic", metadata={"a": object()}),),
    "control characters": (Text(text="\x00\x1b[31m\x7f\u2028"), Json(value={"\x00": "\x00"})),
}
BROKEN: dict[str, Any] = {
    "a text that is none": (Text.model_construct(text=5),),
    "a text without words": (Text.model_construct(),),
    "something that says it is a text": (Pretender(),),
    "something that cannot be looked at": (Raising(),),
    "a text that cannot be read": (Unreadable(text="x"),),
    "a picture without a source": (picture(),),
    "a picture of rubbish": (picture(source=5, detail=[], name={}),),
    "a picture of an object": (picture(source=object(), detail="auto", name=None),),
    "a picture from elsewhere": (picture(source=UrlSource.model_construct(url="file:///etc/passwd"), detail="auto"),),
    "a picture whose bytes are none": (
        picture(source=Base64Source.model_construct(media_type="image/png", data="rubbish"), detail="auto"),
    ),
    "a picture whose bytes are no text": (
        picture(source=Base64Source.model_construct(media_type="image/png", data=b"\x00"), detail="auto"),
    ),
    "five thousand levels": (Json(value=nested(5_000)),),
    "three hundred levels": (Json(value=nested(300)),),
    "five thousand levels of a picture": (picture(source=nested(5_000), detail="auto"),),
    "an object": (object(),),
    "a number without end": (Json(value=10**5_000),),
    "nothing of JSON": (Json.model_construct(),),
}


async def result_of(given: Any) -> tuple[ToolResult, Message, list[Outcome]]:
    """Of a tool that gives back this, beside one that does not; and the answer that called both."""

    async def work(_word: str, _call: RunningCall) -> Any:
        return given

    desk = Desk(call("1", "bad"), call("2", "good"), tools=[tool("bad", work, reads=True), tool("good", reads=True)])
    await desk.run()
    return desk.results[0], desk.answer, desk.outcomes


@pytest.mark.parametrize("name", [*WHOLE, *BROKEN])
async def test_what_is_kept_goes_there_and_back(tmp_path: Path, name: str) -> None:
    given = WHOLE.get(name, BROKEN.get(name))
    result, answer, outcomes = await result_of(given)
    assert outcomes == [Outcome.SUCCEEDED if name in WHOLE else Outcome.FAILED, Outcome.SUCCEEDED]
    if name in BROKEN:
        (said,) = result.content
        assert isinstance(said, Text)
        assert said.text.count(". ") <= 1
        assert said.text.startswith("The tool ")
        assert said.text.endswith(".")
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
        for given in (*WHOLE.values(), *BROKEN.values()):
            result, answer, _ = await result_of(given)
            asked = Message(role=Role.ASSISTANT, blocks=answer.tool_uses[:1])
            history = (Message.user("go"), asked, Message.tool_results([result]))
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


@pytest.mark.parametrize("kind", [tuple, list, Parts])
async def test_of_a_million_parts_no_more_are_looked_at_than_are_kept(kind: type[Any]) -> None:
    given = kind([Text(text="x")] * (MAX_PARTS - 1) + [Raising()] * 1_000_000)
    parts = await validated_content(given, 400_000)
    assert parts == (*[Text(text="x")] * (MAX_PARTS - 1), Text(text="[left out: 1,000,000 more parts]"))


async def test_what_no_characters_are_left_for_is_counted_with_what_is_never_looked_at() -> None:
    parts = await validated_content([Text(text="xx"), *([object()] * 5_000)], 1)
    assert parts == (Text(text="x\n[cut: 2 characters in all]"), Text(text="[left out: 5,000 more parts]"))


async def test_a_function_that_answers_a_million_parts_is_cut_too() -> None:
    @made_tool
    def many() -> Any:
        """Many."""
        return [Text(text="first"), *(["x"] * 1_000_000)]

    made = await many.run(many.checked({}), RunningCall("1", lambda _: None))
    assert len(made) == MAX_PARTS
    assert await validated_content(made, 400_000) == made
    assert made[-1] == Text(text="[left out: 999,002 more parts]")


async def test_a_picture_that_is_too_large_is_not_even_checked() -> None:
    data = "x" * (MAX_PICTURE_CHARACTERS + 1)
    parts = await validated_content(
        [picture(source=Base64Source.model_construct(media_type="image/png", data=data))], 10
    )
    assert parts == (Text(text="[left out: a picture that is too large]"),)


async def test_why_a_picture_cannot_be_used_is_said() -> None:
    source = Base64Source.model_construct(media_type="image/png", data="rubbish")
    with pytest.raises(InvalidToolResult, match="picture is damaged"):
        await validated_content([picture(source=source)], 10)


LONG = "half \ud83c" + "x" * 1_000_000


class Talkative(Words):
    """Input that is refused at length."""

    @model_validator(mode="before")
    @classmethod
    def refuse(cls, _given: Any) -> Any:
        raise ToolInputInvalid(LONG)


class Complaining(Text):
    """A text that fails at length when it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        if name == "text":
            raise ToolFailed(LONG)
        return super().__getattribute__(name)


async def fails(*_given: Any) -> Any:
    raise ToolFailed(LONG)


async def complains(*_given: Any) -> Any:
    return (Complaining(text="x"),)


@pytest.mark.parametrize(
    "more",
    [{"run": fails}, {"run": complains}, {"schema": ModelSchema(Talkative)}, {"changes": fails}],
    ids=["failure", "result", "arguments", "files"],
)
async def test_what_a_tool_says_of_a_failure_is_cut_like_a_result(more: dict[str, Any]) -> None:
    desk = Desk(call("1", "bad"), tools=[replace(tool("bad", reads=True), **more)])
    object.__setattr__(desk.context, "files", Checkpointer(None, None, None, "c"))  # type: ignore[arg-type]
    await desk.run()
    assert desk.outcomes == [Outcome.FAILED]
    assert 400_000 <= len(desk.words[0]) < 400_100
    assert "half ?xxx" in desk.words[0][:150]
