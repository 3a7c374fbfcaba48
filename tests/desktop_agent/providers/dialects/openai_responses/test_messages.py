"""The encoded history: which parts are sent to which server, and where."""

import base64
from typing import Any

import pytest

from desktop_agent.providers.dialects.openai_responses.messages import (
    EncodedHistory,
    Recipient,
    encode_input,
    instructions_for,
)
from desktop_agent.providers.dialects.request_building import PrefixDigest
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    ImageDetail,
    Json,
    Outcome,
    ServerStep,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.errors import ImageRefused, ImagesNotSupported, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import Origin
from desktop_agent.types.providers import ModelRequest, ProviderConfig

PROVIDER = "openai-responses"
ACCOUNT = "acc"
HEADER = ["be brief", None, "low", None]
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
GIF = base64.b64encode(b"GIF89a" + b"0" * 40).decode()
RS = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "blob"}


def encode(
    *messages: Message,
    family: str = "openai",
    binds: bool = True,
    header: list[Any] = HEADER,
    unreadable: frozenset[str] = frozenset(),
) -> EncodedHistory:
    recipient = Recipient(FAMILIES[family], ACCOUNT, binds=binds, unreadable=unreadable)
    return encode_input(ModelRequest("m", messages), recipient, header)


def answer(*blocks: Any, prefix: str = "", account: str = ACCOUNT, **more: Any) -> Message:
    origin = Origin(provider=PROVIDER, account=account, prefix=prefix)
    return Message(role=Role.ASSISTANT, blocks=blocks, **{"origin": origin, "model": "m", **more})


def thinking(item: dict[str, Any] = RS) -> Thinking:
    return Thinking(text="", provider=PROVIDER, metadata={"item": item})


def model_text(text: str = "Hi", item_id: str = "msg_1", **state: Any) -> Text:
    return Text(text=text, provider=PROVIDER, metadata={"id": item_id, "status": "completed", **state})


def call(call_id: str = "call_1", **more: Any) -> ToolUse:
    item = {"type": "function_call", "id": f"fc_{call_id}", "status": "completed"}
    return ToolUse(id=call_id, name="f", input={"a": 1}, provider=PROVIDER, metadata={"item": item, **more})


def types(encoded: EncodedHistory) -> list[str]:
    return [item["type"] for item in encoded.items]


ASKED = Message.user("Why?")


def test_what_a_person_says() -> None:
    image = Image(source=UrlSource(url="https://a.example/b.png"), detail=ImageDetail.LOW)
    own = Image(source=Base64Source(media_type="image/png", data=PNG))
    encoded = encode(Message.user_with_blocks([Text(text="Look"), image, own, Text(text="")]), Message.user(""))
    assert encoded.items == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_image", "image_url": "https://a.example/b.png", "detail": "low"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("family", "source", "error_type"),
    [
        ("ollama", UrlSource(url="https://a.example/b.png"), ImagesNotSupported),
        ("ollama", Base64Source(media_type="image/gif", data=GIF), ImageRefused),
        (
            "openai",
            StoredSource(digest="0" * 64, media_type="image/png", size=1, width=1, height=1),
            WrongUse,
        ),
    ],
)
def test_pictures_that_cannot_be_sent(family: str, source: Any, error_type: type[Exception]) -> None:
    with pytest.raises(error_type):
        encode(Message.user_with_blocks([Image(source=source)]), family=family)


@pytest.mark.parametrize(("family", "role"), [("openai", "developer"), ("azure", "developer"), ("xai", "system")])
def test_instructions_stand_where_they_were_given(family: str, role: str) -> None:
    request = ModelRequest(
        "m", (ASKED, Message.system("Be brief."), Message.user("?")), config=ProviderConfig(system_prompt="Be kind.")
    )
    recipient = Recipient(FAMILIES[family], ACCOUNT)
    assert instructions_for(request, recipient) == "Be kind."
    assert [item["role"] for item in encode_input(request, recipient, []).items] == ["user", role, "user"]


def test_local_models_get_all_instructions_at_the_top() -> None:
    request = ModelRequest("m", (ASKED, Message.system("Be brief.")), config=ProviderConfig(system_prompt="Be kind."))
    recipient = Recipient(FAMILIES["llamacpp"], ACCOUNT)
    assert instructions_for(request, recipient) == "Be kind.\n\nBe brief."
    assert [item["role"] for item in encode_input(request, recipient, []).items] == ["user"]
    assert instructions_for(ModelRequest("m", (ASKED,)), recipient) is None


def test_reasoning_goes_back_before_what_followed_it() -> None:
    encoded = encode(
        ASKED,
        answer(thinking(), model_text("A", phase="commentary"), model_text("B", annotations=[{"x": 1}]), call()),
    )
    assert encoded.items[1:] == [
        RS,
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "phase": "commentary",
            "content": [
                {"type": "output_text", "text": "A", "annotations": []},
                {"type": "output_text", "text": "B", "annotations": [{"x": 1}]},
            ],
        },
        {
            "type": "function_call",
            "id": "fc_call_1",
            "status": "completed",
            "call_id": "call_1",
            "name": "f",
            "arguments": '{"a":1}',
        },
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": "No result: the call was interrupted before it ended.",
        },
    ]


def test_a_refusal_goes_back_as_one() -> None:
    (_, item) = encode(ASKED, answer(model_text("No.", refusal=True))).items
    assert item["content"] == [{"type": "refusal", "refusal": "No."}]


def test_reasoning_never_goes_to_another_account_model_or_provider() -> None:
    for message in (
        answer(thinking(), model_text(), account="another"),
        answer(thinking(), model_text(), origin=None, model="another"),
        answer(thinking(), model_text(), origin=Origin(provider="gemini", account=ACCOUNT)),
        answer(Thinking(text="", provider="anthropic", metadata={"item": RS}), model_text(), account="another"),
    ):
        assert encode(ASKED, message).items[1:] == [{"type": "message", "role": "assistant", "content": "Hi"}]


@pytest.mark.parametrize("model", [None, "m"])
def test_an_answer_of_unknown_origin_counts_as_the_models_own(model: str | None) -> None:
    assert types(encode(ASKED, answer(thinking(), model_text(), origin=None, model=model))) == [
        "message",
        "reasoning",
        "message",
    ]


def test_reasoning_is_kept_only_behind_what_it_was_made_from() -> None:
    prefix = encode(ASKED).prefix
    mine = answer(thinking(), model_text(), prefix=prefix)
    unchanged = encode(ASKED, mine, Message.user("And?"))
    assert types(unchanged) == ["message", "reasoning", "message", "message"]
    edited = encode(Message.user("Why not?"), mine)
    assert edited.items[1:] == [{"type": "message", "role": "assistant", "content": "Hi"}]
    assert types(encode(ASKED, mine, header=["be long", None, "low", None])) == ["message", "message"]
    assert types(encode(ASKED, mine, header=["be long", None, "low", None], binds=False))[1] == "reasoning"


def test_the_prefix_goes_on_over_turns_also_where_reasoning_was_taken_out() -> None:
    first = answer(thinking(), model_text(), prefix="made elsewhere")
    asked_again = Message.user("And?")
    second = answer(
        thinking({**RS, "id": "rs_2"}), model_text("B", "msg_2"), prefix=encode(ASKED, first, asked_again).prefix
    )
    encoded = encode(ASKED, first, asked_again, second, Message.user("So?"))
    assert [item.get("id") for item in encoded.items] == [None, None, None, "rs_2", "msg_2", None]


def test_the_prefix_is_that_of_everything_that_is_sent() -> None:
    encoded = encode(ASKED)
    digest = PrefixDigest(ACCOUNT)
    digest.add(HEADER)
    digest.add(encoded.items[0])
    assert encoded.prefix == digest.value
    assert encoded.prefix != encode(ASKED, header=["other"]).prefix


def test_reasoning_without_a_follower_or_without_state_stays_away() -> None:
    cut = answer(thinking(), Text(text="Hal"), state=MessageState.INTERRUPTED)
    assert types(encode(ASKED, cut)) == ["message", "message"]
    assert types(encode(ASKED, answer(thinking()))) == ["message"]
    only_id = {"id": "rs_1", "type": "reasoning", "summary": []}
    assert types(encode(ASKED, answer(thinking(only_id), model_text()))) == ["message", "message"]
    raw = {**only_id, "content": [{"type": "reasoning_text", "text": "Hm."}]}
    assert types(encode(ASKED, answer(thinking(raw), model_text()))) == ["message", "reasoning", "message"]


def test_a_cut_answer_keeps_what_was_done() -> None:
    message = answer(
        thinking(), model_text(), thinking({**RS, "id": "rs_2"}), Text(text="Hal"), state=MessageState.INTERRUPTED
    )
    encoded = encode(ASKED, message)
    assert [item.get("id") for item in encoded.items] == [None, "rs_1", "msg_1", None]


def test_what_followed_reasoning_that_stays_away_has_no_id_and_steps_go_with_it() -> None:
    step = ServerStep(provider=PROVIDER, name="web_search_call", raw={"id": "ws_1", "type": "web_search_call"})
    compacted = ServerStep(provider=PROVIDER, name="compaction", raw={"id": "cmp_1", "type": "compaction"})
    odd = Unknown(raw={"id": "zz", "type": "telepathy"}, provider=PROVIDER)
    blocks = (thinking(), step, compacted, odd, model_text("A", phase="commentary"), call())
    encoded = encode(ASKED, answer(*blocks, prefix="other"))
    assert types(encoded) == ["message", "compaction", "message", "function_call", "function_call_output"]
    assert encoded.items[2] == {"type": "message", "role": "assistant", "content": "A", "phase": "commentary"}
    assert "id" not in encoded.items[3]
    assert types(encode(ASKED, answer(*blocks)))[1:5] == ["reasoning", "web_search_call", "compaction", "telepathy"]


def test_reasoning_that_was_refused_before_stays_away() -> None:
    message = answer(thinking(), model_text())
    keys = encode(ASKED, message).reasoning
    assert len(keys) == 1
    encoded = encode(ASKED, message, unreadable=keys)
    assert types(encoded) == ["message", "message"]
    assert encoded.reasoning == frozenset()


def test_steps_of_other_servers_never_go_back() -> None:
    step = ServerStep(provider=PROVIDER, name="web_search_call", raw={"id": "ws_1", "type": "web_search_call"})
    assert types(encode(ASKED, answer(step, model_text(), account="another"))) == ["message", "message"]
    foreign = ServerStep(provider="anthropic", name="x", raw={"type": "x"})
    assert types(encode(ASKED, answer(foreign, model_text()))) == ["message", "message"]
    assert types(encode(ASKED, answer(Unknown(raw=["?"], provider=PROVIDER), model_text()))) == [
        "message",
        "message",
    ]


IG = {"id": "ig_1", "type": "image_generation_call", "status": "completed"}
PICTURE = Image(source=Base64Source(media_type="image/png", data=PNG), provider=PROVIDER, metadata={"item": IG})


def test_a_picture_goes_back_as_its_item_with_the_reasoning_before_it() -> None:
    encoded = encode(ASKED, answer(thinking(), PICTURE))
    assert encoded.items[1:] == [RS, {**IG, "result": PNG}]


@pytest.mark.parametrize(
    "given", [answer(PICTURE, account="other"), answer(thinking({**RS, "encrypted_content": ""}), PICTURE)]
)
def test_a_picture_that_cannot_go_back_in_its_place_goes_with_the_next_prompt(given: Message) -> None:
    encoded = encode(ASKED, given, Message.user("Red."), Message.user("Now?"))
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
    note, red, now = ({"type": "input_text", "text": text} for text in ("[From your answer above:]", "Red.", "Now?"))
    assert [item["content"] for item in encoded.items[1:]] == [[note, picture, red], [now]]


def test_arguments_go_back_byte_for_byte() -> None:
    item = encode(ASKED, answer(call(arguments='{ "a" : 1.0e0 }'))).items[1]
    assert item["arguments"] == '{ "a" : 1.0e0 }'


def test_results_follow_all_calls_in_call_order() -> None:
    picture = Image(source=Base64Source(media_type="image/png", data=PNG))
    results = Message.tool_results(
        [
            ToolResult(tool_use_id="call_2", content=(Text(text="two"), picture)),
            ToolResult(tool_use_id="call_1", content=(Json(value={"n": 1}),), outcome=Outcome.DENIED),
            ToolResult(tool_use_id="call_1", content=(Text(text="again"),)),
            ToolResult(tool_use_id="stray"),
        ]
    )
    encoded = encode(ASKED, answer(call("call_1"), call("call_2")), results)
    assert types(encoded)[1:] == ["function_call"] * 2 + ["function_call_output"] * 2
    assert encoded.items[3] == {"type": "function_call_output", "call_id": "call_1", "output": '[denied] {"n":1}'}
    assert encoded.items[4]["output"] == [
        {"type": "input_text", "text": "two"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
    ]


def test_a_failed_result_with_a_picture_says_that_it_failed() -> None:
    picture = Image(source=Base64Source(media_type="image/png", data=PNG))
    result = ToolResult(tool_use_id="call_1", content=(picture,), outcome=Outcome.FAILED)
    encoded = encode(ASKED, answer(call()), Message.tool_results([result]))
    assert encoded.items[-1]["output"][0] == {"type": "input_text", "text": "[failed]"}


def test_others_get_pictures_of_results_in_a_message_behind_them() -> None:
    picture = Image(source=Base64Source(media_type="image/png", data=PNG))
    result = ToolResult(tool_use_id="call_1", content=(Text(text="see"), picture))
    encoded = encode(ASKED, answer(call("call_1"), call("call_2")), Message.tool_results([result]), family="llamacpp")
    assert types(encoded)[1:] == ["function_call"] * 2 + ["function_call_output"] * 2 + ["message"]
    assert encoded.items[3]["output"] == "see\n(The pictures follow in the next message.)"
    assert encoded.items[5]["content"][0] == {"type": "input_text", "text": "Pictures from the result of f:"}


def test_text_of_others_goes_to_local_servers_in_parts_under_an_id() -> None:
    first, second = encode(Message.assistant("Hi"), Message.assistant("Ho"), family="llamacpp").items
    assert first["content"] == [{"type": "output_text", "text": "Hi", "annotations": []}]
    assert (first["id"], second["id"], first["status"]) == ("msg_0", "msg_1", "completed")


def test_a_call_with_free_text_goes_back_as_one() -> None:
    use = ToolUse(
        id="call_1",
        name="sql",
        input={"input": "SELECT 1"},
        provider=PROVIDER,
        metadata={"item": {"type": "custom_tool_call", "id": "ct_1"}},
    )
    encoded = encode(ASKED, answer(use))
    assert encoded.items[1] == {
        "type": "custom_tool_call",
        "id": "ct_1",
        "call_id": "call_1",
        "name": "sql",
        "input": "SELECT 1",
    }
    assert encoded.items[2]["type"] == "custom_tool_call_output"
    assert types(encode(ASKED, answer(use, account="another")))[1:] == ["function_call", "function_call_output"]


def test_long_ids_of_others_become_short_ones_on_both_sides() -> None:
    use = ToolUse(id="x" * 90, name="f")
    _, sent_call, output = encode(ASKED, Message(role=Role.ASSISTANT, blocks=(use,))).items
    assert sent_call["call_id"] == output["call_id"]
    assert len(sent_call["call_id"]) <= 40
