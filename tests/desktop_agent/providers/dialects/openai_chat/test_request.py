import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from desktop_agent.providers.dialects.openai_chat.adapter import build_body
from desktop_agent.providers.dialects.openai_chat.messages import CONTINUE_PROMPT, Recipient
from desktop_agent.providers.dialects.request_building import NO_RESULT
from desktop_agent.providers.dialects.server_families import FAMILIES, ServerQuirks
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import (
    Base64Source,
    Block,
    Image,
    ImageDetail,
    Json,
    Outcome,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.errors import ImageRefused, ImagesNotSupported, ToolCallingNotSupported, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Origin
from desktop_agent.types.providers import Capabilities, ModelRequest, ProviderConfig, ToolChoice
from desktop_agent.types.tool_calls import ToolSpec

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
GIF = base64.b64encode(b"GIF89a" + b"0" * 40).decode()
PICTURE = Image(source=Base64Source(media_type="image/png", data=PNG), detail=ImageDetail.HIGH)
TOOL = ToolSpec("f", "Does f.", {"$schema": "x", "type": "object", "properties": {}})
STRANGER = FAMILIES["stranger"]


def request(*messages: Message, model: str = "m", **more: Any) -> ModelRequest:
    config = ProviderConfig(**{name: more.pop(name) for name in list(more) if name in ProviderConfig.model_fields})
    return ModelRequest(model, messages or (Message.user("hi"),), config=config, **more)


def body(
    question: ModelRequest,
    quirks: ServerQuirks = STRANGER,
    capabilities: Capabilities = Capabilities(),  # noqa: B008
) -> dict[str, Any]:
    return json.loads(dumps(build_body(question, Recipient(quirks), capabilities).fields))


def messages(*history: Message, quirks: ServerQuirks = STRANGER, **more: Any) -> list[dict[str, Any]]:
    return body(request(*history, **more), quirks)["messages"]


def answer(*blocks: Block, model: str | None = None) -> Message:
    return Message(role=Role.ASSISTANT, blocks=blocks, model=model)


def results(*tool_results: ToolResult) -> Message:
    return Message.tool_results(tool_results)


def call(call_id: str = "c1", name: str = "f", **more: Any) -> ToolUse:
    return ToolUse(id=call_id, name=name, **more)


def result(call_id: str = "c1", text: str = "ok", **more: Any) -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=(Text(text=text),), **more)


def test_a_stranger_gets_the_old_core() -> None:
    assert body(request(conversation_id="c")) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_sampling_only_when_set_and_extras_last() -> None:
    fields = body(
        request(
            temperature=0.0,
            top_p=0.5,
            top_k=3,
            max_tokens=9,
            stop_sequences=("x",),
            extra_options={"temperature": 1, "seed": 7},
        )
    )
    del fields["messages"], fields["model"], fields["stream"], fields["stream_options"]
    assert fields == {"temperature": 1, "top_p": 0.5, "max_tokens": 9, "stop": ["x"], "seed": 7}
    assert body(request(top_k=3), FAMILIES["vllm"])["top_k"] == 3


def test_what_the_person_wrote_is_never_dropped() -> None:
    request_body = build_body(request(temperature=0.5, extra_options={"top_p": 1}), Recipient(STRANGER), Capabilities())
    assert request_body.droppable == {"temperature", "stream_options"}


def test_instructions_stand_once_at_the_top() -> None:
    history = (Message.system("A"), Message.user("hi"), Message.system("B"))
    assert messages(*history, system_prompt="S") == [
        {"role": "system", "content": "S\n\nA\n\nB"},
        {"role": "user", "content": "hi"},
    ]


def test_openai_gets_its_own_words() -> None:
    fields = body(
        request(model="gpt-5.6-sol", system_prompt="S", max_tokens=5, conversation_id="c"), FAMILIES["openai"]
    )
    assert fields["messages"][0] == {"role": "developer", "content": "S"}
    assert fields["max_completion_tokens"] == 5
    assert fields["prompt_cache_key"] == "c"
    assert fields["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert body(request(model="gpt-4.1", system_prompt="S"), FAMILIES["openai"])["messages"][0]["role"] == "system"


def test_pictures() -> None:
    url = Image(source=UrlSource(url="https://x/y.png"))
    assert messages(Message.user_with_blocks([Text(text="see"), PICTURE, url]))[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    ]


def test_ollama_takes_neither_addresses_nor_gif() -> None:
    ollama = FAMILIES["ollama"]
    with pytest.raises(ImagesNotSupported, match="web"):
        messages(Message.user_with_image("see", "https://x/y.png"), quirks=ollama)
    with pytest.raises(ImageRefused, match="GIF"):
        messages(Message.user_with_base64_image("see", GIF, "image/gif"), quirks=ollama)
    assert messages(Message.user_with_base64_image("see", GIF, "image/gif"))


def test_stored_pictures_are_a_mistake_of_the_caller() -> None:
    stored = StoredSource(digest="0" * 64, media_type="image/png", size=1, width=1, height=1)
    with pytest.raises(WrongUse):
        messages(Message.user_with_blocks([Image(source=stored)]))


def test_calls_and_results() -> None:
    broken = call("c2", "g", malformed='{"x":')
    sent_messages = messages(
        Message.user("go"),
        answer(Text(text="On it."), call(input={"a": "é"}), broken),
        results(
            ToolResult(tool_use_id="c2", content=(Text(text="bad"),), outcome=Outcome.FAILED),
            ToolResult(tool_use_id="c1", content=(Text(text="one"), Json(value={"n": 1}), PICTURE)),
        ),
        Message.user("and?"),
    )
    assert sent_messages[1] == {
        "role": "assistant",
        "content": "On it.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":"é"}'}},
            {
                "id": "c2",
                "type": "function",
                "function": {"name": "g", "arguments": '{"malformed_arguments":"{\\"x\\":"}'},
            },
        ],
    }
    assert sent_messages[2]["tool_call_id"] == "c1"
    assert sent_messages[2]["content"] == 'one\n{"n":1}\n(The pictures follow in the next message.)'
    assert sent_messages[3] == {"role": "tool", "tool_call_id": "c2", "content": "[failed] bad"}
    assert sent_messages[4]["role"] == "user"
    assert [part["type"] for part in sent_messages[4]["content"]] == ["text", "image_url", "text"]
    assert sent_messages[4]["content"][2] == {"type": "text", "text": "and?"}


def test_every_call_is_answered_directly_whatever_the_history_holds() -> None:
    sent_messages = messages(
        results(result("ghost")),
        answer(call("a"), call("b")),
        Message.user("steering"),
        results(result("b", "late"), result("b", "second"), result("stranger")),
        answer(Text(text="x"), call("a")),
        results(result("a", "of the second answer")),
    )
    shape = [(message["role"], message.get("tool_call_id"), message.get("content")) for message in sent_messages]
    assert shape == [
        ("assistant", None, ""),
        ("tool", "a", NO_RESULT),
        ("tool", "b", "late"),
        ("user", None, "steering"),
        ("assistant", None, "x"),
        ("tool", "a", "of the second answer"),
    ]


TWO_QUESTIONS = (Message.user("one"), Message.user("two"), Message.user_with_blocks([Text(text="three"), PICTURE]))


def test_local_templates_want_question_and_answer_by_turns() -> None:
    (sent_messages,) = messages(*TWO_QUESTIONS, quirks=FAMILIES["llamacpp"])
    assert [part.get("text") for part in sent_messages["content"]] == ["one\n\ntwo", "three", None]
    assert len(messages(*TWO_QUESTIONS, quirks=FAMILIES["openai"])) == 3
    paused = (Message.user("go"), answer(Text(text="a")), answer(Text(text="b"), call()), answer(Text(text="c")))
    sent_messages = messages(*paused, Message.user("and?"), quirks=FAMILIES["ollama"])
    assert [(message["role"], message["content"]) for message in sent_messages] == [
        ("user", "go"),
        ("assistant", "ab"),
        ("tool", NO_RESULT),
        ("assistant", "c"),
        ("user", "and?"),
    ]
    assert sent_messages[1]["tool_calls"][0]["id"] == "c1"


@pytest.mark.parametrize("family", FAMILIES)
def test_an_answer_at_the_end_is_asked_to_go_on(family: str) -> None:
    sent_messages = messages(Message.user("go"), answer(Text(text="Half")), quirks=FAMILIES[family])
    assert sent_messages[-2:] == [
        {"role": "assistant", "content": "Half"},
        {"role": "user", "content": CONTINUE_PROMPT},
    ]
    assert messages(Message.user("go"), answer(call()), quirks=FAMILIES[family])[-1]["role"] == "tool"


def test_empty_and_unknown() -> None:
    assert messages(answer(Unknown(raw={"x": 1})), Message.user("hi")) == [{"role": "user", "content": "hi"}]
    own = Unknown(raw={"type": "reference", "reference_ids": [1]}, provider="openai-compat/mistral")
    foreign = Unknown(raw={"type": "x"}, provider="anthropic")
    sent_messages = messages(answer(Text(text="a"), own, foreign, Text(text="b")), quirks=FAMILIES["mistral"])
    assert sent_messages[0]["content"] == [{"type": "text", "text": "a"}, own.raw, {"type": "text", "text": "b"}]
    assert messages(answer(call()), quirks=FAMILIES["openai"])[0]["content"] is None
    assert messages(answer(call()), quirks=FAMILIES["ollama"])[0]["content"] == ""


@pytest.mark.parametrize("family", FAMILIES)
def test_blank_text_of_an_answer_is_not_sent(family: str) -> None:
    quirks = FAMILIES[family]
    assistant, *_ = messages(answer(Text(text="\n\n"), call()), quirks=quirks)
    assert not assistant["content"]
    assert assistant["tool_calls"]
    question = Message.user("hi")
    assert [message["role"] for message in messages(question, answer(Text(text=" ")), quirks=quirks)] == ["user"]


def test_ids_in_the_shape_a_server_takes() -> None:
    history = (answer(call("toolu_01ABC"), call("abcDEF123")), results(result("toolu_01ABC"), result("abcDEF123")))
    sent_messages = messages(*history, quirks=FAMILIES["mistral"])
    ids = [item["id"] for item in sent_messages[0]["tool_calls"]]
    assert ids == [item["tool_call_id"] for item in sent_messages[1:]]
    assert len(ids[0]) == 9
    assert ids[0].isalnum()
    assert ids[1] == "abcDEF123"
    assert messages(*history, quirks=FAMILIES["mistral"]) == sent_messages
    long = messages(answer(call("x" * 60)), quirks=FAMILIES["openai"])
    assert long[0]["tool_calls"][0]["id"] == long[1]["tool_call_id"]
    assert len(long[1]["tool_call_id"]) <= 40


@pytest.mark.parametrize(
    ("family", "choice", "expected"),
    [
        ("stranger", ToolChoice(), None),
        ("stranger", ToolChoice("none"), "none"),
        ("stranger", ToolChoice("required"), "required"),
        ("stranger", ToolChoice("named", "f"), {"type": "function", "function": {"name": "f"}}),
        ("mistral", ToolChoice("required"), "any"),
        ("ollama", ToolChoice("required"), None),
    ],
)
def test_tools(family: str, choice: ToolChoice, expected: Any) -> None:
    fields = body(request(tools=(TOOL,), tool_choice=choice), FAMILIES[family])
    parameters = {"type": "object", "properties": {}}
    assert fields["tools"] == [
        {"type": "function", "function": {"name": "f", "parameters": parameters, "description": "Does f."}}
    ]
    assert fields.get("tool_choice") == expected


def test_no_tools_no_choice_and_ollama_without_tools_for_none() -> None:
    assert "tool_choice" not in body(request(tool_choice=ToolChoice("required")))
    assert "tools" not in body(request(tools=(TOOL,), tool_choice=ToolChoice("none")), FAMILIES["ollama"])


def test_what_the_listing_rules_out() -> None:
    with pytest.raises(ToolCallingNotSupported):
        body(request(tools=(TOOL,)), capabilities=Capabilities(tools=False))
    with pytest.raises(ImagesNotSupported):
        body(request(Message.user_with_blocks([PICTURE])), capabilities=Capabilities(images=False))
    with pytest.raises(ImagesNotSupported):
        body(
            request(answer(call()), results(ToolResult(tool_use_id="c1", content=(PICTURE,)))),
            capabilities=Capabilities(images=False),
        )
    assert body(request(), capabilities=Capabilities(tools=False, images=False))


def test_a_model_that_makes_images_is_asked_for_what_it_makes() -> None:
    assert body(request(), capabilities=Capabilities(outputs=("image", "text")))["modalities"] == ["image", "text"]
    assert body(request(), capabilities=Capabilities(outputs=("image",)))["modalities"] == ["image"]
    for plain in (Capabilities(outputs=("text",)), Capabilities()):
        assert "modalities" not in body(request(), capabilities=plain)
    assert "modalities" not in body(request(text_only=True), capabilities=Capabilities(outputs=("image", "text")))
    painter = Capabilities(outputs=("image",))
    refused = build_body(request(), Recipient(STRANGER), painter, frozenset({"modalities"}))
    assert ("modalities" in refused.fields, refused.adjustments) == (False, ())


# --- reasoning that is sent back


def replayed(family: str, *blocks: Block, model: str | None = None) -> dict[str, Any]:
    (message, *_) = messages(answer(*blocks, model=model), quirks=FAMILIES[family])
    return {name: value for name, value in message.items() if name not in ("role", "content", "tool_calls")}


def own(family: str, text: str = "Hm", **metadata: Any) -> Thinking:
    return Thinking(text=text, provider=FAMILIES[family].thinking_provider, metadata=metadata)


def test_reasoning_fields() -> None:
    for family in ("ollama", "vllm"):
        assert replayed(family, own(family, field="reasoning"), Text(text="x")) == {"reasoning": "Hm"}
    assert replayed("llamacpp", own("llamacpp", field="reasoning_content"), Text(text="x")) == {
        "reasoning_content": "Hm"
    }
    assert replayed("stranger", own("stranger", field="reasoning"), Text(text="x")) == {}
    assert replayed("groq", own("groq", field="reasoning"), Text(text="x")) == {}
    assert replayed("ollama", own("ollama", field="content.think"), Text(text="x")) == {}


def test_deepseek_wants_it_on_every_turn_with_calls_also_when_empty() -> None:
    assert replayed("deepseek", own("deepseek", field="reasoning_content"), call()) == {"reasoning_content": "Hm"}
    assert replayed("deepseek", call()) == {"reasoning_content": ""}
    assert replayed("deepseek", own("deepseek", field="reasoning_content"), Text(text="x")) == {}


def test_foreign_thinking_is_never_sent() -> None:
    for family in FAMILIES:
        for maker in ("deepseek", "openrouter", "litellm", "mistral"):
            if maker != family:
                details = {"reasoning_details": [{"type": "reasoning.text", "text": "Hm"}], "thinking_blocks": [{}]}
                thinking = own(maker, text="SECRET", field="reasoning_content", **details)
                assert "SECRET" not in str(messages(answer(thinking, Text(text="x")), quirks=FAMILIES[family]))
                assert "reasoning_details" not in replayed(family, thinking, call())


def test_openrouter_details_are_merged_over_blocks_and_unchanged() -> None:
    first = own(
        "openrouter", field="reasoning", reasoning_details=[{"type": "reasoning.text", "text": "A", "index": 0}]
    )
    late = [
        {"type": "reasoning.text", "text": "", "signature": "S", "index": 0},
        {"type": "x", "data": "E", "index": 1},
    ]
    second = own("openrouter", text="", field="reasoning_details", reasoning_details=late)
    assert replayed("openrouter", first, Text(text="x"), second) == {
        "reasoning_details": [{"type": "reasoning.text", "text": "A", "signature": "S", "index": 0}, late[1]]
    }
    assert first.metadata["reasoning_details"] == [{"type": "reasoning.text", "text": "A", "index": 0}]


def test_litellm_blocks() -> None:
    blocks = [{"type": "thinking", "thinking": "A", "signature": "S"}, {"type": "redacted_thinking", "data": "R"}]
    assert replayed("litellm", own("litellm", field="reasoning_content", thinking_blocks=blocks), call()) == {
        "thinking_blocks": blocks
    }


def test_mistral_parts() -> None:
    sent_messages = messages(
        answer(own("mistral", field="content.thinking", signature="S"), Text(text="x")), quirks=FAMILIES["mistral"]
    )
    assert sent_messages[0]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}], "signature": "S"},
        {"type": "text", "text": "x"},
    ]
    assert messages(answer(Text(text="x")), quirks=FAMILIES["mistral"])[0]["content"] == "x"


@pytest.mark.parametrize("family", ["google-openai", "stranger"])
def test_google_signatures_go_back_on_their_call(family: str) -> None:
    extra = {"google": {"thought_signature": "SIG"}}
    state = own(family, text="", field="extra_content", call_id="c2", extra_content=extra)
    sent_messages = messages(answer(call("c1"), state, call("c2"), model="m"), quirks=FAMILIES[family])
    assert "extra_content" not in sent_messages[0]["tool_calls"][0]
    assert sent_messages[0]["tool_calls"][1]["extra_content"] == extra


@pytest.mark.parametrize(
    ("family", "field"),
    [
        ("openrouter", "extra_content"),
        ("litellm", "extra_content"),
        ("stranger", "extra_content"),
        ("google-openai", "extra_content"),
        ("deepseek", "reasoning_content"),
        ("vllm", "reasoning"),
        ("llamacpp", "reasoning"),
        ("ollama", "reasoning"),
        ("mistral", "content.thinking"),
    ],
)
def test_only_the_same_account_gets_its_state_back(family: str, field: str) -> None:
    quirks = FAMILIES[family]
    extra = {"reasoning_details": [{"type": "x"}], "thinking_blocks": [{"type": "thinking", "thinking": ""}]}
    state = own(family, field=field, call_id="c1", extra_content={"x": 1}, **extra)
    original = request(answer(state, call("c1"), model="m"))

    def size(account: str) -> int:
        origin = Origin(provider=quirks.thinking_provider, account="mine")
        message = original.messages[0].model_copy(update={"origin": origin})
        fields = build_body(replace(original, messages=(message,)), Recipient(quirks, account), Capabilities()).fields
        return len(json.dumps(fields))

    assert size("mine") > size("other")


def test_deepseek_sees_the_field_also_where_another_model_thought() -> None:
    sent_messages = messages(
        answer(own("deepseek", field="reasoning_content"), call(), model="x"), quirks=FAMILIES["deepseek"]
    )
    assert sent_messages[0]["reasoning_content"] == ""


@pytest.mark.parametrize(
    ("model", "is_needed"), [("models/gemini-3.1-pro-preview", True), ("gemini-2.5-flash", False), ("gemma-4", False)]
)
def test_calls_that_another_model_made_say_so_to_google(model: str, is_needed: bool) -> None:
    sent_messages = messages(answer(call("c1"), call("c2"), model="x"), quirks=FAMILIES["google-openai"], model=model)
    first, second = sent_messages[0]["tool_calls"]
    signature = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert first.get("extra_content") == (signature if is_needed else None)
    assert "extra_content" not in second


def test_a_stranger_gets_only_what_the_same_model_wrote() -> None:
    state = own("stranger", text="", field="extra_content", call_id="c1", extra_content={"x": 1})
    sent_messages = messages(answer(state, call("c1"), model="other"), quirks=STRANGER)
    assert "extra_content" not in sent_messages[0]["tool_calls"][0]
