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
    adjustments_of,
    answer,
    body,
    call,
    foreign,
    make_body,
    make_request,
    messages,
    plain,
    result,
    results,
    thought,
)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
USER, HI = Message.user, Message.user("hi")
BOUND = "claude-fable-5-2"
SIGNED = {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def text(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part} for part in texts]


def step(raw: dict[str, Any]) -> ServerStep:
    return ServerStep(provider="anthropic", name="web_search", raw=raw)


def picture(data: str = PNG) -> Image:
    return Image(source=Base64Source(media_type="image/png", data=data), name="cat.png")


def png(width: int, height: int, size: int = 0) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return base64.b64encode(head + b"0" * max(0, size - len(head))).decode()


def roles(history: list[dict[str, Any]]) -> str:
    return " ".join(message["role"] for message in history)


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


def test_roles_are_merged() -> None:
    history = (USER("a"), USER("b"), answer("c"), USER("d"))
    assert messages(*history) == [
        {"role": "user", "content": text("a", "b")},
        {"role": "assistant", "content": text("c")},
        {"role": "user", "content": text("d")},
    ]


def test_results_come_first_in_one_message_in_call_order() -> None:
    history = (
        HI,
        answer("Look.", call("a", input={"a": 1}), call("b")),
        results(result("b", "B"), result("stray")),
        USER("and this"),
        results(result("a", "A", outcome=Outcome.FAILED), result("b", "again")),
    )
    sent_messages = messages(*history, tools=(TOOL,))
    assert sent_messages[1]["content"][1] == {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}
    assert sent_messages[2] == {
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
    history = (HI, answer(call("a"), call("b"), call("c")))
    sent_messages = messages(
        *history,
        results(
            ToolResult(tool_use_id="a", content=parts),
            ToolResult(tool_use_id="b"),
            ToolResult(tool_use_id="c", outcome=Outcome.DENIED),
        ),
    )
    first, second, third = sent_messages[-1]["content"]
    assert first["content"] == [
        *text('{"n":[1,null]}'),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    ]
    assert second == {"type": "tool_result", "tool_use_id": "b"}
    assert third["content"] == text("The call did not succeed: denied.")


def test_malformed_calls_are_valid_objects() -> None:
    sent_messages = messages(HI, answer(call(malformed='{"a": ')), results(result()))
    assert sent_messages[1]["content"][0]["input"] == {"malformed_arguments": '{"a": '}


def test_ids_that_repeat_or_do_not_fit_are_replaced_the_same_every_time() -> None:
    history = (HI, foreign(call("c 1"), call("x")), results(result("c 1"), result("x")), foreign(call("x")))
    sent_messages = messages(*history, results(result("x", "second")))
    first, second = (part["id"] for part in sent_messages[1]["content"])
    third = sent_messages[3]["content"][0]["id"]
    assert second == "x"
    assert first.startswith("toolu_")
    assert len({first, second, third}) == 3
    assert sent_messages[4]["content"][0]["tool_use_id"] == third
    assert messages(*history, results(result("x", "second"))) == sent_messages


def test_names_of_tools_that_do_not_fit() -> None:
    first, second = (type(TOOL)(name, "", {"type": "object"}) for name in ("a.b", "a:b"))
    fields = body(make_request(HI, answer(call(name="a.b")), results(result()), tools=(first, second)))
    names = [message["name"] for message in fields["tools"]]
    assert len(set(names)) == 2
    assert fields["messages"][1]["content"][0]["name"] == names[0]


def test_blank_text_is_never_sent() -> None:
    history = (USER("hi"), USER(""), answer("\n\n", thought(), "x", " "), USER(" \n"), USER("go"))
    sent_messages = messages(*history)
    assert [kinds(message) for message in sent_messages] == [["text"], ["thinking", "text"], ["text"]]
    assert messages(USER("")) == [{"role": "user", "content": text(BEGIN_PROMPT)}]


def test_a_history_that_begins_with_an_answer() -> None:
    assert messages(answer("Hello."), HI)[0] == {"role": "user", "content": text(BEGIN_PROMPT)}


def test_no_answer_is_begun_for_a_model() -> None:
    history = (HI, answer("Half an", state=MessageState.INTERRUPTED, stop_reason=StopReason.MAX_TOKENS))
    sent_messages = messages(*history)
    assert sent_messages[-1] == {"role": "user", "content": text(CONTINUE_PROMPT)}
    assert len(adjustments_of(make_request(*history))) == 1
    # The next request has it in the same place, so that the prefix stays the same.
    assert messages(*history, answer("d more"), HI)[: len(sent_messages)] == sent_messages


def test_an_answer_of_nothing_but_thinking_is_no_message() -> None:
    cut = answer(thought(), state=MessageState.INTERRUPTED, stop_reason=StopReason.MAX_TOKENS)
    assert roles(messages(HI, cut)) == "user"
    assert messages(HI, answer("x", thought()), HI)[1]["content"] == text("x")


PAUSED = answer(thought(), "Look.", step(SEARCH), stop_reason=StopReason.PAUSE_TURN)


def test_a_paused_answer_goes_back_as_it_was() -> None:
    sent_messages = messages(HI, PAUSED)
    assert roles(sent_messages) == "user assistant"
    assert sent_messages[1]["content"] == [SIGNED, *text("Look."), SEARCH]
    assert adjustments_of(make_request(HI, PAUSED)) == []
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
    sent_messages = messages(HI, pause)
    assert roles(sent_messages) == "user assistant user"
    assert SEARCH not in sent_messages[1]["content"]


def test_steps_go_back_whole_or_not_at_all() -> None:
    with_steps = answer(step(SEARCH), step(FOUND), "x")
    assert messages(HI, with_steps, HI)[1]["content"] == [SEARCH, FOUND, *text("x")]
    assert messages(HI, PAUSED, HI)[1]["content"] == [SIGNED, *text("Look.")]
    assert messages(HI, answer(step(FOUND), "x"), HI)[1]["content"] == text("x")
    elsewhere = with_steps.model_copy(update={"origin": Origin(provider="anthropic", account="another")})
    assert messages(HI, elsewhere, HI)[1]["content"] == text("x")


def test_unknown_blocks_go_back_to_their_maker_only() -> None:
    raw = {"type": "compaction", "content": "s"}
    mine, theirs, nobodys = (Unknown(raw=raw, provider=name) for name in ("anthropic", "gemini", ""))
    sent_messages = plain(make_body(make_request(HI, answer(mine, theirs, nobodys, "x"), HI)).fields["messages"])
    assert sent_messages[1]["content"] == [raw, *text("x")]


def test_a_call_that_code_made_goes_back_with_its_caller() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "code_execution", "input": {"code": "f()"}}
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_9"}
    own = call().model_copy(update={"provider": "anthropic", "metadata": {"caller": caller}})
    container = {"id": "container_1", "expires_at": "2999-01-01T00:00:00Z"}
    made_by_code = answer(step(use), own, stop_reason=StopReason.TOOL_USE, stop_details={"container": container})
    open_turn = body(make_request(HI, made_by_code, results(result()), tools=(TOOL,)))
    assert open_turn["messages"][1]["content"][1]["caller"] == caller
    assert open_turn["container"] == "container_1"
    later = body(make_request(HI, made_by_code, results(result()), answer("x"), HI, tools=(TOOL,)))
    assert "caller" not in later["messages"][1]["content"][0]
    assert "container" not in later
    expired = made_by_code.model_copy(
        update={"stop_details": {"container": {**container, "expires_at": "2020-01-01T00:00:00Z"}}}
    )
    assert "container" not in body(make_request(HI, expired, results(result()), tools=(TOOL,)))


def test_citations_go_back_with_their_text() -> None:
    location = {
        "type": "web_search_result_location",
        "cited_text": "q",
        "encrypted_index": "Eo8B",
        "title": None,
        "url": "https://x",
    }
    cited = Text(text="So.", provider="anthropic", metadata={"wire_citations": [location]})
    assert messages(HI, answer(cited), HI)[1]["content"] == [{"type": "text", "text": "So.", "citations": [location]}]
    assert messages(HI, foreign(cited), HI)[1]["content"] == text("So.")
    assert messages(Message.user_with_blocks([cited]))[0]["content"] == text("So.")


def test_refused_turns_are_left_out() -> None:
    refused = answer("Sure, the", stop_reason=StopReason.REFUSAL)
    history = (USER("a"), answer("b"), Message.system("s"), USER("bad"), USER("worse"), refused)
    assert "bad" not in str(messages(*history, USER("c")))
    assert "worse" not in str(messages(*history, USER("c")))
    assert "Sure" not in str(messages(*history, USER("c")))
    assert roles(messages(*history, USER("c"))) == "user assistant user system"
    assert len(adjustments_of(make_request(*history, USER("c")))) == 1
    # A retry: only the refused answer is left out.
    assert [message["text"] for message in messages(*history)[-2]["content"]] == ["bad", "worse"]
    # The retry got another answer.
    assert [part["text"] for part in messages(*history, answer("well"), USER("c"))[2]["content"]] == ["bad", "worse"]
    elsewhere = refused.model_copy(update={"origin": Origin(provider="gemini")})
    assert "Sure" in str(messages(USER("a"), elsewhere, USER("c")))


def test_a_refusal_in_a_loop_takes_the_whole_turn_along() -> None:
    loop = (USER("bad"), answer(call()), results(result()), USER("steered"))
    refused = answer("No", stop_reason=StopReason.REFUSAL)
    sent_messages = messages(USER("a"), answer("b"), *loop, refused, USER("c"), tools=(TOOL,))
    assert [block["text"] for message in sent_messages for block in message["content"]] == ["a", "b", "c"]


def test_late_instructions() -> None:
    history = (Message.system("S"), USER("a"), Message.system("L"), answer("b"), Message.system("M"), USER("c"))
    fields = body(make_request(*history, system_prompt="P"))
    assert fields["system"][0]["text"] == "P\n\nS"
    assert roles(fields["messages"]) == "user system assistant user system"
    assert plain(fields["messages"][-1]["content"]) == text("M")
    fields = body(make_request(*history, system_prompt="P", model="claude-sonnet-5"))
    assert fields["system"][0]["text"] == "P\n\nS\n\nL\n\nM"
    assert roles(fields["messages"]) == "user assistant user"
    assert roles(messages(HI, answer("b"), Message.system("M"))) == "user assistant user system"
    assert roles(messages(HI, answer("b"), Message.system("M"), answer("c"), HI)).count("system") == 1
    assert roles(messages(HI, Message.system("M"), answer(thought()), HI)) == "user system"
    # An answer without anything to send is left out: instructions cannot stand between two prompts.
    assert roles(messages(HI, Message.system("M"), answer(step(SEARCH)), HI)) == "user system"


def test_thinking_goes_back_in_place_byte_for_byte() -> None:
    redacted = Thinking(text="", provider="anthropic", metadata={"type": "redacted_thinking", "data": "EmwK"})
    silent = thought("", "b3RoZXI=")
    sent_messages = messages(HI, answer(thought(), redacted, "x", call("a"), silent, call("b")), results())
    assert sent_messages[1]["content"][:2] == [SIGNED, {"type": "redacted_thinking", "data": "EmwK"}]
    assert sent_messages[1]["content"][4] == {"type": "thinking", "thinking": "", "signature": "b3RoZXI="}
    assert kinds(sent_messages[1]) == ["thinking", "redacted_thinking", "text", "tool_use", "thinking", "tool_use"]


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
    sent_messages = messages(USER("edited"), answer(thought(), "x", prefix="0"), HI, system_prompt="new")
    assert sent_messages[1]["content"][0] == SIGNED


def bound(*history: Message, **more: Any) -> Message:
    """Return an answer that is bound to these messages."""
    prefix = make_body(make_request(*history, model=BOUND, **more)).prefix
    return answer(thought(), "x", model=BOUND, prefix=prefix)


def thinks(*history: Message, model: str = BOUND, **more: Any) -> list[bool]:
    sent_messages = messages(*history, model=model, **more)
    return ["thinking" in kinds(message) for message in sent_messages if message["role"] == "assistant"]


def test_bound_thinking_goes_back_behind_exactly_what_it_was_made_from() -> None:
    first = (USER("a"), bound(USER("a"), system_prompt="S", tools=(TOOL,)), USER("b"))
    history = (*first, bound(*first, system_prompt="S", tools=(TOOL,)), USER("c"))
    unchanged: dict[str, Any] = {"system_prompt": "S", "tools": (TOOL,)}
    assert thinks(*history, **unchanged) == [True, True]
    assert thinks(*history, **unchanged, reasoning=None, max_tokens=99, extra_options={"service_tier": "auto"}) == [
        True,
        True,
    ]
    assert thinks(*history, system_prompt="T", tools=(TOOL,)) == [False, False]
    assert thinks(*history, system_prompt="S") == [False, False]
    assert thinks(*history, **unchanged, extra_options={"system": "other"}) == [False, False]
    edited = (history[0], history[1], USER("B"), *history[3:])
    assert thinks(*edited, **unchanged) == [True, False]
    assert thinks(USER("A"), *history[1:], **unchanged) == [False, False]
    assert thinks(*history[:2], *history[3:], **unchanged) == [True, False]
    marked = make_body(make_request(*history, model=BOUND, **unchanged))
    assert (
        marked.prefix == make_body(make_request(*history, model=BOUND, **unchanged, caching={"enabled": False})).prefix
    )


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
    prefix = make_body(make_request(HI, model=BOUND)).prefix
    lost = answer(thought(), step(SEARCH), thought(), "x", model=BOUND, prefix=prefix)
    assert kinds(messages(HI, lost, HI, model=BOUND)[1]) == ["thinking", "text"]
    mended = answer(thought(), call(malformed="{"), thought(), call("b"), model=BOUND, prefix=prefix)
    assert kinds(messages(HI, mended, model=BOUND)[1]) == ["thinking", "tool_use", "tool_use"]


@pytest.mark.parametrize(
    ("capabilities", "keeps"),
    [
        (Capabilities(), False),
        (Capabilities(reasoning_modes=frozenset({"adaptive"})), False),
        (Capabilities(reasoning_modes=frozenset({"budget"})), True),
        (Capabilities(binds_prefix=False), True),
    ],
)
def test_a_model_of_which_nobody_knows_is_taken_to_bind(capabilities: Capabilities, *, keeps: bool) -> None:
    history = (HI, answer(thought(), "x", model="m"), HI)
    assert thinks(*history, model="m", capabilities=capabilities) == [keeps]
    right = answer(thought(), "x", model="m", prefix=make_body(make_request(HI, model="m"), capabilities).prefix)
    assert thinks(HI, right, HI, model="m", capabilities=capabilities) == [True]


def test_older_thinking_can_be_left_out() -> None:
    loop = (HI, answer(thought(), "x"), HI, answer(thought(), call()), results(result()), USER("steered"))
    with_older, without_older = (make_body(make_request(*loop), older=older) for older in (True, False))
    assert (with_older.carries_older, without_older.carries_older) == (True, False)
    assert ["thinking" in kinds(message) for message in without_older.fields["messages"]] == [
        False,
        False,
        False,
        True,
        False,
    ]
    assert not make_body(make_request(*loop[2:])).carries_older


def test_without_older_thinking_what_was_bound_behind_it_goes_too() -> None:
    first = (HI, bound(HI, tools=(TOOL,)), HI)
    calling = bound(*first, tools=(TOOL,)).model_copy(update={"blocks": (thought(), call())})
    request = make_request(*first, calling, results(result()), model=BOUND, tools=(TOOL,))
    with_older, without_older = (make_body(request, older=older).fields["messages"] for older in (True, False))
    assert [sum("thinking" in kinds(message) for message in history) for history in (with_older, without_older)] == [
        2,
        0,
    ]


def test_limits_on_pictures() -> None:
    edge = 10 * 1024 * 1024
    most = png(10, 10, edge // 4 * 3)
    assert len(most) == edge
    make_body(make_request(Message.user_with_blocks([picture(most)])))
    with pytest.raises(ImageRefused, match=r"cat\.png.*7\.5 MB"):
        make_body(make_request(Message.user_with_blocks([picture(png(10, 10, edge // 4 * 3 + 1))])))
    make_body(make_request(Message.user_with_blocks([picture(png(8000, 8000))])))
    with pytest.raises(ImageRefused, match="8000"):
        make_body(make_request(Message.user_with_blocks([picture(png(10, 8001))])))
    make_body(make_request(Message.user_with_blocks([picture(png(8000, 10))] * 20)))
    make_body(make_request(Message.user_with_blocks([picture(png(2000, 2000))] * 21)))
    with pytest.raises(ImageRefused, match="2000"):
        make_body(make_request(Message.user_with_blocks([picture(png(2001, 10)), *[picture()] * 20])))


@pytest.mark.parametrize(("model", "count"), [("claude-opus-5", 600), ("claude-haiku-4-5", 100)])
def test_how_many_pictures(model: str, count: int) -> None:
    in_result = ToolResult(tool_use_id="toolu_1", content=(picture(),) * 2)
    history = (Message.user_with_blocks([picture()] * (count - 2)), answer(call(), model=model))
    make_body(make_request(*history, results(in_result), model=model))
    with pytest.raises(CapabilityMissing, match=str(count)):
        make_body(make_request(*history, results(in_result), Message.user_with_blocks([picture()]), model=model))


def test_pictures_that_cannot_be_sent() -> None:
    stored = StoredSource(digest="0" * 64, media_type="image/png", size=1, width=1, height=1)
    with pytest.raises(WrongUse):
        make_body(make_request(Message.user_with_blocks([Image(source=stored)])))
    with pytest.raises(ImagesNotSupported):
        make_body(make_request(Message.user_with_blocks([picture()])), Capabilities(images=False))
