"""What foreign code is shown of a history, and what is taken of the messages that it makes."""

import copy
import gc
import json
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.processes import foreign_code
from desktop_agent.processes.foreign_code import HistoryCopy, validate_message
from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    Json,
    Outcome,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def answer(number: int) -> Message:
    return Message(role=Role.ASSISTANT, blocks=(ToolUse(id=str(number), name="look", input={"n": [number]}),))


async def test_each_message_is_copied_once_however_often_the_history_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    copy_all = foreign_code.read_only_copy

    def counted(messages: list[Message]) -> list[Message]:
        counts.append(len(messages))
        return copy_all(messages)

    monkeypatch.setattr(foreign_code, "read_only_copy", counted)
    history = tuple(answer(number) for number in range(1_000))
    for _ in range(100):
        shown = await HistoryCopy(history).copied()
        assert shown == history
        assert shown[-1] is not history[-1]
        history = (*history, answer(0))
    assert counts == [1_000, *([1] * 99)]


async def test_nobody_can_change_what_others_are_shown() -> None:
    history = tuple(answer(number) for number in range(3))
    before = [message.model_dump_json() for message in history]
    for message in await HistoryCopy(history).copied():
        arguments = message.tool_uses[0].input
        for change in (
            lambda given=arguments: given["n"].append("vandal"),
            lambda given=arguments: given.update(n=0),
            lambda given=arguments: given.__setitem__("n", 0),
            lambda given=arguments: operator.ior(given, {"n": 0}),
            lambda given=arguments: operator.iadd(given["n"], [0]),
            lambda given=message: given.tool_uses[0].metadata.setdefault("more", 1),
        ):
            with pytest.raises(TypeError, match="only be read"):
                change()
    assert [message.model_dump_json() for message in await HistoryCopy(history).copied()] == before
    assert [message.model_dump_json() for message in history] == before


async def test_a_copy_of_what_is_shown_can_be_changed() -> None:
    (shown,) = await HistoryCopy((answer(1),)).copied()
    for own in (copy.deepcopy(shown), foreign_code.deep_copy(shown), pickle.loads(pickle.dumps(shown))):
        own.tool_uses[0].input["n"].append(2)
        assert own.tool_uses[0].input == {"n": [1, 2]}
    own = copy.copy(shown.tool_uses[0].input)
    own["more"] = True
    assert shown == answer(1).model_copy(update={"id": shown.id, "created_at": shown.created_at})


async def test_copies_go_with_what_they_are_copies_of() -> None:
    gc.collect()
    kept = len(foreign_code._COPIES)
    history = tuple(answer(number) for number in range(5))
    await HistoryCopy(history).copied()
    assert len(foreign_code._COPIES) == kept + 5
    del history
    gc.collect()
    assert len(foreign_code._COPIES) == kept


PICTURE = Message.user_with_image("see", "https://example.org/a.png")


@pytest.mark.parametrize(
    "message",
    [
        Message.user("hello"),
        Message.user("half \ud83c"),
        PICTURE,
        answer(1),
        Message(role=Role.ASSISTANT, blocks=(Thinking(text="t", provider="p", metadata={"signature": "Zm9v=="}),)),
        Message(role=Role.ASSISTANT, blocks=(Unknown(raw={"type": "later", "n": 10**30}),)),
        Message(role=Role.ASSISTANT, blocks=(ToolUse(id="1", name="look", input=nested(150)),)),
        Message.tool_results([ToolResult(tool_use_id="1", content=(Json(value=[1, None]),), outcome=Outcome.FAILED)]),
    ],
)
def test_what_is_sound_is_taken_as_it_is_and_detached_from_who_made_it(message: Message) -> None:
    made = validate_message(message)
    assert made == message
    assert made is not message
    assert all(one is not other for one, other in zip(made.blocks, message.blocks, strict=True))
    assert validate_message(made) == made


def test_what_json_has_another_word_for_is_taken_in_that_word() -> None:
    given = Message.tool_results([ToolResult(tool_use_id="1", content=(Json(value=(1, {2: "b"})),))])
    assert validate_message(given).blocks[0].content == (Json(value=[1, {"2": "b"}]),)  # type: ignore[union-attr]


class Loud:
    def __repr__(self) -> str:
        raise SystemExit


def use(given: Any) -> Message:
    return Message(role=Role.ASSISTANT, blocks=(ToolUse.model_construct(id="1", name="look", input=given),))


@pytest.mark.parametrize(
    "make",
    [
        lambda: "words",
        lambda: None,
        lambda: {"role": "user", "blocks": ()},
        lambda: use(nested(5_000)),
        lambda: use(nested(300)),
        lambda: use({"a": float("nan")}),
        lambda: use({"a": Loud()}),
        lambda: use(5),
        lambda: Message(role=Role.ASSISTANT, blocks=(Unknown(raw=nested(5_000)),)),
        lambda: Message.tool_results([ToolResult(tool_use_id="1", content=(Json(value=nested(5_000)),))]),
        lambda: Message.tool_results([ToolResult(tool_use_id="1", content=(Json(value=float("inf")),))]),
        lambda: Message.model_construct(role="nobody", blocks=()),
        lambda: Message.model_construct(role=Role.USER, blocks=(5,)),
        lambda: Message.model_construct(role=Role.USER, blocks=(Text.model_construct(text=5),)),
        lambda: Message.model_construct(role=Role.USER, blocks=(Image.model_construct(source=5),)),
        lambda: Message.model_construct(
            role=Role.USER,
            blocks=(Image(source=UrlSource.model_construct(url="file:///etc/passwd")),),
        ),
    ],
)
def test_what_is_not_sound_is_refused_in_a_sentence(make: Callable[[], Any]) -> None:
    with pytest.raises(WrongUse) as refused:
        validate_message(make())
    assert str(refused.value).endswith(".")
    assert str(refused.value.remedy).endswith(".")
    json.dumps(str(refused.value))


def test_a_picture_whose_bytes_are_none_is_refused() -> None:
    source = Base64Source.model_construct(media_type="image/png", data="rubbish")
    with pytest.raises(WrongUse, match="picture is damaged"):
        validate_message(Message.model_construct(role=Role.USER, blocks=(Image.model_construct(source=source),)))
