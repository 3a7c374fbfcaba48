import base64
import struct
from typing import Any

import pytest

from desktop_agent.providers.dialects.anthropic.messages import BEGIN_PROMPT, CONTINUE_PROMPT, NO_RESULT
from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    Json,
    Outcome,
    ServerStep,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    Unknown,
    UrlSource,
)
from desktop_agent.types.errors import CapabilityMissing, ImageRefused, ImagesNotSupported, WrongUse
from desktop_agent.types.messages import Message, MessageState
from desktop_agent.types.provider_events import Origin, StopReason
from desktop_agent.types.providers import Capabilities
from tests.desktop_agent.providers.dialects.anthropic.bodies import (
    TOOL,
    account,
    answer,
    asked,
    body,
    call,
    foreign,
    made,
    messages,
    plain,
    result,
    results,
    said,
    thought,
)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
USER, HI = Message.user, Message.user("hi")
BOUND = "claude-fable-5-2"
SIGNED = {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def text(*said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": each} for each in said]


def step(raw: dict[str, Any]) -> ServerStep:
    return ServerStep(provider="anthropic", name="web_search", raw=raw)


def picture(data: str = PNG) -> Image:
    return Image(source=Base64Source(media_type="image/png", data=data), name="cat.png")


def png(width: int, height: int, size: int = 0) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return base64.b64encode(head + b"0" * max(0, size - len(head))).decode()


def roles(found: list[dict[str, Any]]) -> str:
    return " ".join(each["role"] for each in found)


def kinds(message: dict[str, Any]) -> list[str]:
    return [each["type"] for each in message["content"]]


def test_roles_are_merged() -> None:
    given = (USER("a"), USER("b"), answer("c"), USER("d"))
    assert messages(*given) == [
        {"role": "user", "content": text("a", "b")},
        {"role": "assistant", "content": text("c")},
        {"role": "user", "content": text("d")},
    ]


def test_results_come_first_in_one_message_in_call_order() -> None:
    given = (
        HI,
        answer("Look.", call("a", input={"a": 1}), call("b")),
        results(result("b", "B"), result("stray")),
        USER("and this"),
        results(result("a", "A", outcome=Outcome.FAILED), result("b", "again")),
    )
    found = messages(*given, tools=(TOOL,))
    assert found[1]["content"][1] == {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}
    assert found[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": text("A"), "is_error": True},
            {"type": "tool_result", "tool_use_id": "b", "content": text("B")},
            *text("and this"),
        ],
    }


def test_a_missing_result_is_an_error_in_words() -> None:
    expected = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text(NO_RESULT), "is_error": True}]
    assert messages(HI, answer(call()))[-1]["content"] == expected
    assert messages(HI, answer(call()), answer("x"), HI)[2]["content"] == expected


def test_parts_of_results() -> None:
    parts = (Text(text=" "), Json(value={"n": [1, None]}), picture(), Image(source=UrlSource(url="https://x/y.png")))
    given = (HI, answer(call("a"), call("b"), call("c")))
    found = messages(
        *given,
        results(
            ToolResult(tool_use_id="a", content=parts),
            ToolResult(tool_use_id="b"),
            ToolResult(tool_use_id="c", outcome=Outcome.DENIED),
        ),
    )
    first, second, third = found[-1]["content"]
    assert first["content"] == [
        *text('{"n":[1,null]}'),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    ]
    assert second == {"type": "tool_result", "tool_use_id": "b"}
    assert third["content"] == text("The call did not succeed: denied.")


def test_malformed_calls_are_valid_objects() -> None:
    found = messages(HI, answer(call(malformed='{"a": ')), results(result()))
    assert found[1]["content"][0]["input"] == {"malformed_arguments": '{"a": '}


def test_ids_that_repeat_or_do_not_fit_are_replaced_the_same_every_time() -> None:
    given = (HI, foreign(call("c 1"), call("x")), results(result("c 1"), result("x")), foreign(call("x")))
    found = messages(*given, results(result("x", "second")))
    first, second = (part["id"] for part in found[1]["content"])
    third = found[3]["content"][0]["id"]
    assert second == "x"
    assert first.startswith("toolu_")
    assert len({first, second, third}) == 3
    assert found[4]["content"][0]["tool_use_id"] == third
    assert messages(*given, results(result("x", "second"))) == found


def test_names_of_tools_that_do_not_fit() -> None:
    one, two = (type(TOOL)(name, "", {"type": "object"}) for name in ("a.b", "a:b"))
    found = body(asked(HI, answer(call(name="a.b")), results(result()), tools=(one, two)))
    names = [each["name"] for each in found["tools"]]
    assert len(set(names)) == 2
    assert found["messages"][1]["content"][0]["name"] == names[0]


def test_blank_text_is_never_sent() -> None:
    given = (USER("hi"), USER(""), answer("\n\n", thought(), "x", " "), USER(" \n"), USER("go"))
    found = messages(*given)
    assert [kinds(each) for each in found] == [["text"], ["thinking", "text"], ["text"]]
    assert messages(USER("")) == [{"role": "user", "content": text(BEGIN_PROMPT)}]


def test_a_history_that_begins_with_an_answer() -> None:
    assert messages(answer("Hello."), HI)[0] == {"role": "user", "content": text(BEGIN_PROMPT)}


def test_no_answer_is_begun_for_a_model() -> None:
    given = (HI, answer("Half an", state=MessageState.INTERRUPTED, stop_reason=StopReason.MAX_TOKENS))
    found = messages(*given)
    assert found[-1] == {"role": "user", "content": text(CONTINUE_PROMPT)}
    assert len(said(asked(*given))) == 1
    # The next request has it in the same place, so that what the model read stays the same.
    assert messages(*given, answer("d more"), HI)[: len(found)] == found


def test_an_answer_of_nothing_but_thinking_is_no_message() -> None:
    cut = answer(thought(), state=MessageState.INTERRUPTED, stop_reason=StopReason.MAX_TOKENS)
    assert roles(messages(HI, cut)) == "user"
    assert messages(HI, answer("x", thought()), HI)[1]["content"] == text("x")


PAUSED = answer(thought(), "Look.", step(SEARCH), stop_reason=StopReason.PAUSE_TURN)


def test_a_paused_answer_goes_back_as_it_was() -> None:
    found = messages(HI, PAUSED)
    assert roles(found) == "user assistant"
    assert found[1]["content"] == [SIGNED, *text("Look."), SEARCH]
    assert said(asked(HI, PAUSED)) == []
    after = messages(HI, PAUSED, answer(step(FOUND), "There."), HI)
    assert roles(after) == "user assistant user"
    assert after[1]["content"] == [SIGNED, *text("Look."), SEARCH, FOUND, *text("There.")]


@pytest.mark.parametrize(
    "pause",
    [
        PAUSED.model_copy(update={"state": MessageState.INTERRUPTED}),
        PAUSED.model_copy(update={"origin": Origin(provider="anthropic", account="another")}),
        PAUSED.model_copy(update={"origin": Origin(provider="gemini", account=account())}),
    ],
)
def test_a_pause_that_cannot_go_on_is_asked_in_words(pause: Message) -> None:
    found = messages(HI, pause)
    assert roles(found) == "user assistant user"
    assert SEARCH not in found[1]["content"]


def test_steps_go_back_whole_or_not_at_all() -> None:
    whole = answer(step(SEARCH), step(FOUND), "x")
    assert messages(HI, whole, HI)[1]["content"] == [SEARCH, FOUND, *text("x")]
    assert messages(HI, PAUSED, HI)[1]["content"] == [SIGNED, *text("Look.")]
    assert messages(HI, answer(step(FOUND), "x"), HI)[1]["content"] == text("x")
    elsewhere = whole.model_copy(update={"origin": Origin(provider="anthropic", account="another")})
    assert messages(HI, elsewhere, HI)[1]["content"] == text("x")


def test_unknown_blocks_go_back_to_their_maker_only() -> None:
    raw = {"type": "compaction", "content": "s"}
    mine, theirs, nobodys = (Unknown(raw=raw, provider=name) for name in ("anthropic", "gemini", ""))
    found = plain(made(asked(HI, answer(mine, theirs, nobodys, "x"), HI)).fields["messages"])
    assert found[1]["content"] == [raw, *text("x")]


def test_a_call_that_code_made_goes_back_with_its_caller() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "code_execution", "input": {"code": "f()"}}
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_9"}
    own = call().model_copy(update={"provider": "anthropic", "metadata": {"caller": caller}})
    container = {"id": "container_1", "expires_at": "2999-01-01T00:00:00Z"}
    made_by_code = answer(step(use), own, stop_reason=StopReason.TOOL_USE, stop_details={"container": container})
    open_turn = body(asked(HI, made_by_code, results(result()), tools=(TOOL,)))
    assert open_turn["messages"][1]["content"][1]["caller"] == caller
    assert open_turn["container"] == "container_1"
    later = body(asked(HI, made_by_code, results(result()), answer("x"), HI, tools=(TOOL,)))
    assert "caller" not in later["messages"][1]["content"][0]
    assert "container" not in later
    gone = made_by_code.model_copy(
        update={"stop_details": {"container": {**container, "expires_at": "2020-01-01T00:00:00Z"}}}
    )
    assert "container" not in body(asked(HI, gone, results(result()), tools=(TOOL,)))


def test_citations_go_back_with_their_text() -> None:
    place = {
        "type": "web_search_result_location",
        "cited_text": "q",
        "encrypted_index": "Eo8B",
        "title": None,
        "url": "https://x",
    }
    cited = Text(text="So.", provider="anthropic", metadata={"wire_citations": [place]})
    assert messages(HI, answer(cited), HI)[1]["content"] == [{"type": "text", "text": "So.", "citations": [place]}]
    assert messages(HI, foreign(cited), HI)[1]["content"] == text("So.")
    assert messages(Message.user_with_blocks([cited]))[0]["content"] == text("So.")


def test_refused_turns_are_left_out() -> None:
    refused = answer("Sure, the", stop_reason=StopReason.REFUSAL)
    given = (USER("a"), answer("b"), Message.system("s"), USER("bad"), USER("worse"), refused)
    assert "bad" not in str(messages(*given, USER("c")))
    assert "worse" not in str(messages(*given, USER("c")))
    assert "Sure" not in str(messages(*given, USER("c")))
    assert roles(messages(*given, USER("c"))) == "user assistant user system"
    assert len(said(asked(*given, USER("c")))) == 1
    # Asked once more: only the answer goes.
    assert [each["text"] for each in messages(*given)[-2]["content"]] == ["bad", "worse"]
    # It was, and got another answer.
    assert [part["text"] for part in messages(*given, answer("well"), USER("c"))[2]["content"]] == ["bad", "worse"]
    elsewhere = refused.model_copy(update={"origin": Origin(provider="gemini")})
    assert "Sure" in str(messages(USER("a"), elsewhere, USER("c")))


def test_a_refusal_in_a_loop_takes_the_whole_turn_along() -> None:
    loop = (USER("bad"), answer(call()), results(result()), USER("steered"))
    refused = answer("No", stop_reason=StopReason.REFUSAL)
    found = messages(USER("a"), answer("b"), *loop, refused, USER("c"), tools=(TOOL,))
    assert [part["text"] for each in found for part in each["content"]] == ["a", "b", "c"]


def test_late_instructions() -> None:
    given = (Message.system("S"), USER("a"), Message.system("L"), answer("b"), Message.system("M"), USER("c"))
    found = body(asked(*given, system_prompt="P"))
    assert found["system"][0]["text"] == "P\n\nS"
    assert roles(found["messages"]) == "user system assistant user system"
    assert plain(found["messages"][-1]["content"]) == text("M")
    found = body(asked(*given, system_prompt="P", model="claude-sonnet-5"))
    assert found["system"][0]["text"] == "P\n\nS\n\nL\n\nM"
    assert roles(found["messages"]) == "user assistant user"
    assert roles(messages(HI, answer("b"), Message.system("M"))) == "user assistant user system"
    assert roles(messages(HI, answer("b"), Message.system("M"), answer("c"), HI)).count("system") == 1
    assert roles(messages(HI, Message.system("M"), answer(thought()), HI)) == "user system"
    # An answer of which nothing can go back is none: instructions cannot stand between two prompts.
    assert roles(messages(HI, Message.system("M"), answer(step(SEARCH)), HI)) == "user system"


def test_thinking_goes_back_in_place_byte_for_byte() -> None:
    redacted = Thinking(text="", provider="anthropic", metadata={"type": "redacted_thinking", "data": "EmwK"})
    silent = thought("", "b3RoZXI=")
    found = messages(HI, answer(thought(), redacted, "x", call("a"), silent, call("b")), results())
    assert found[1]["content"][:2] == [SIGNED, {"type": "redacted_thinking", "data": "EmwK"}]
    assert found[1]["content"][4] == {"type": "thinking", "thinking": "", "signature": "b3RoZXI="}
    assert kinds(found[1]) == ["thinking", "redacted_thinking", "text", "tool_use", "thinking", "tool_use"]


@pytest.mark.parametrize(
    "block",
    [
        thought(signature=""),
        Thinking(text="Hm", provider="", metadata={}),
        Thinking(text="Hm", provider="openai-responses", metadata={"item": {}}),
        Thinking(text="Hm", provider="anthropic", metadata={"type": "redacted_thinking", "data": ""}),
        Thinking(text="Hm", provider="openai-compat", metadata={"type": "thinking", "signature": "c2ln"}),
    ],
)
def test_other_thinking_never_goes(block: Thinking) -> None:
    assert messages(HI, answer(block, "x"), HI)[1]["content"] == text("x")


def test_thinking_stays_with_its_account() -> None:
    own = answer(thought(), "x")
    for origin in (
        Origin(provider="anthropic", account="another"),
        Origin(provider="gemini", account=account()),
        Origin(provider="anthropic"),
    ):
        assert messages(HI, own.model_copy(update={"origin": origin}), HI)[1]["content"] == text("x")
    without = own.model_copy(update={"origin": None})
    assert messages(HI, without, HI)[1]["content"] == [SIGNED, *text("x")]
    assert messages(HI, without.model_copy(update={"model": "claude-opus-4-8"}), HI)[1]["content"] == text("x")
    assert messages(HI, without.model_copy(update={"model": None}), HI)[1]["content"] == [SIGNED, *text("x")]


def test_a_model_that_does_not_bind_gets_all_its_thinking() -> None:
    found = messages(USER("edited"), answer(thought(), "x", prefix="0"), HI, system_prompt="new")
    assert found[1]["content"][0] == SIGNED


def bound(*given: Message, **more: Any) -> Message:
    """An answer whose model had read these."""
    prefix = made(asked(*given, model=BOUND, **more)).prefix
    return answer(thought(), "x", model=BOUND, prefix=prefix)


def thinks(*given: Message, model: str = BOUND, **more: Any) -> list[bool]:
    found = messages(*given, model=model, **more)
    return ["thinking" in kinds(each) for each in found if each["role"] == "assistant"]


def test_bound_thinking_goes_back_behind_exactly_what_it_was_made_from() -> None:
    first = (USER("a"), bound(USER("a"), system_prompt="S", tools=(TOOL,)), USER("b"))
    given = (*first, bound(*first, system_prompt="S", tools=(TOOL,)), USER("c"))
    same: dict[str, Any] = {"system_prompt": "S", "tools": (TOOL,)}
    assert thinks(*given, **same) == [True, True]
    assert thinks(*given, **same, reasoning=None, max_tokens=99, extra_options={"service_tier": "auto"}) == [True, True]
    assert thinks(*given, system_prompt="T", tools=(TOOL,)) == [False, False]
    assert thinks(*given, system_prompt="S") == [False, False]
    assert thinks(*given, **same, extra_options={"system": "other"}) == [False, False]
    edited = (given[0], given[1], USER("B"), *given[3:])
    assert thinks(*edited, **same) == [True, False]
    assert thinks(USER("A"), *given[1:], **same) == [False, False]
    assert thinks(*given[:2], *given[3:], **same) == [True, False]
    marked = made(asked(*given, model=BOUND, **same))
    assert marked.prefix == made(asked(*given, model=BOUND, **same, caching={"enabled": False})).prefix


def test_stripping_strips_what_follows() -> None:
    first = (USER("a"), bound(USER("a")), USER("b"))
    second = bound(*first)
    unsigned = first[1].model_copy(update={"blocks": (Text(text="x"),)})
    assert thinks(*first, second, HI) == [True, True]
    assert thinks(first[0], unsigned, first[2], second, HI) == [False, False]


def test_bound_thinking_inside_a_loop_and_behind_a_continued_answer() -> None:
    calling = bound(HI, tools=(TOOL,)).model_copy(update={"blocks": (thought(), call())})
    loop = (HI, calling, results(result()))
    assert thinks(*loop, tools=(TOOL,)) == [True]
    assert thinks(*loop) == [False]
    cut = (HI, answer("Half", model=BOUND, stop_reason=StopReason.MAX_TOKENS))
    assert thinks(*cut, bound(*cut), HI) == [False, True]
    pause = bound(HI).model_copy(update={"stop_reason": StopReason.PAUSE_TURN})
    assert thinks(HI, pause, bound(HI, pause), HI) == [True]
    merged = messages(HI, pause, bound(HI, pause), HI, model=BOUND)[1]
    assert kinds(merged) == ["thinking", "text", "thinking", "text"]


def test_bound_thinking_behind_something_that_was_lost_or_mended() -> None:
    prefix = made(asked(HI, model=BOUND)).prefix
    lost = answer(thought(), step(SEARCH), thought(), "x", model=BOUND, prefix=prefix)
    assert kinds(messages(HI, lost, HI, model=BOUND)[1]) == ["thinking", "text"]
    mended = answer(thought(), call(malformed="{"), thought(), call("b"), model=BOUND, prefix=prefix)
    assert kinds(messages(HI, mended, model=BOUND)[1]) == ["thinking", "tool_use", "tool_use"]


@pytest.mark.parametrize(
    ("known", "keeps"),
    [
        (Capabilities(), False),
        (Capabilities(reasoning_modes=frozenset({"adaptive"})), False),
        (Capabilities(reasoning_modes=frozenset({"budget"})), True),
        (Capabilities(binds_prefix=False), True),
    ],
)
def test_a_model_of_which_nobody_knows_is_taken_to_bind(known: Capabilities, *, keeps: bool) -> None:
    given = (HI, answer(thought(), "x", model="m"), HI)
    assert thinks(*given, model="m", capabilities=known) == [keeps]
    right = answer(thought(), "x", model="m", prefix=made(asked(HI, model="m"), known).prefix)
    assert thinks(HI, right, HI, model="m", capabilities=known) == [True]


def test_older_thinking_can_be_left_out() -> None:
    loop = (HI, answer(thought(), "x"), HI, answer(thought(), call()), results(result()), USER("steered"))
    whole, less = (made(asked(*loop), older=older) for older in (True, False))
    assert (whole.carries_older, less.carries_older) == (True, False)
    assert ["thinking" in kinds(each) for each in less.fields["messages"]] == [False, False, False, True, False]
    assert not made(asked(*loop[2:])).carries_older


def test_without_older_thinking_what_was_bound_behind_it_goes_too() -> None:
    first = (HI, bound(HI, tools=(TOOL,)), HI)
    calling = bound(*first, tools=(TOOL,)).model_copy(update={"blocks": (thought(), call())})
    request = asked(*first, calling, results(result()), model=BOUND, tools=(TOOL,))
    whole, less = (made(request, older=older).fields["messages"] for older in (True, False))
    assert [sum("thinking" in kinds(each) for each in found) for found in (whole, less)] == [2, 0]


def test_limits_on_pictures() -> None:
    edge = 10 * 1024 * 1024
    most = png(10, 10, edge // 4 * 3)
    assert len(most) == edge
    made(asked(Message.user_with_blocks([picture(most)])))
    with pytest.raises(ImageRefused, match=r"cat\.png.*7\.5 MB"):
        made(asked(Message.user_with_blocks([picture(png(10, 10, edge // 4 * 3 + 1))])))
    made(asked(Message.user_with_blocks([picture(png(8000, 8000))])))
    with pytest.raises(ImageRefused, match="8000"):
        made(asked(Message.user_with_blocks([picture(png(10, 8001))])))
    made(asked(Message.user_with_blocks([picture(png(8000, 10))] * 20)))
    made(asked(Message.user_with_blocks([picture(png(2000, 2000))] * 21)))
    with pytest.raises(ImageRefused, match="2000"):
        made(asked(Message.user_with_blocks([picture(png(2001, 10)), *[picture()] * 20])))


@pytest.mark.parametrize(("model", "count"), [("claude-opus-5", 600), ("claude-haiku-4-5", 100)])
def test_how_many_pictures(model: str, count: int) -> None:
    in_result = ToolResult(tool_use_id="toolu_1", content=(picture(),) * 2)
    given = (Message.user_with_blocks([picture()] * (count - 2)), answer(call(), model=model))
    made(asked(*given, results(in_result), model=model))
    with pytest.raises(CapabilityMissing, match=str(count)):
        made(asked(*given, results(in_result), Message.user_with_blocks([picture()]), model=model))


def test_pictures_that_cannot_be_sent() -> None:
    stored = StoredSource(digest="0" * 64, media_type="image/png", size=1, width=1, height=1)
    with pytest.raises(WrongUse):
        made(asked(Message.user_with_blocks([Image(source=stored)])))
    with pytest.raises(ImagesNotSupported):
        made(asked(Message.user_with_blocks([picture()])), Capabilities(images=False))
