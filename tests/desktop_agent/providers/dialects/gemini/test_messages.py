"""Histories as they are sent to the server."""

import base64
import json
from typing import Any

import pytest

from desktop_agent.providers.dialects.gemini.messages import (
    NO_SIGNATURE,
    EncodedHistory,
    Recipient,
    encode_history,
    last_question_index,
)
from desktop_agent.providers.dialects.request_building import NO_RESULT
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import (
    Base64Source,
    Block,
    Image,
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
from desktop_agent.types.errors import ImageRefused, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Origin, StopReason
from tests.desktop_agent.providers.dialects.gemini.stream import ACCOUNT, MODEL, OWN, answer, chunk, sse
from tests.fakes.recordings import RECORDINGS

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
GIF = base64.b64encode(b"GIF89a" + b"0" * 40).decode()
PICTURE = Image(source=Base64Source(media_type="image/png", data=PNG))
INLINE = {"inlineData": {"mimeType": "image/png", "data": PNG}}
STRICT = Recipient(MODEL, ACCOUNT, checks_signatures=True)
MILD = Recipient(MODEL, ACCOUNT)
ASKED = Message.user("hi")
ELSEWHERE = Origin(provider="gemini", account="other")


def write(*messages: Message, reader: Recipient = MILD) -> list[dict[str, Any]]:
    return json.loads(dumps(encode(*messages, reader=reader).items))


def encode(*messages: Message, reader: Recipient = MILD) -> EncodedHistory:
    return encode_history(messages, reader)


def answer_with(*blocks: Block, **more: Any) -> Message:
    return Message(role=Role.ASSISTANT, blocks=blocks, **{"origin": OWN, **more})


def call(call_id: str = "c1", name: str = "f", **more: Any) -> ToolUse:
    return ToolUse(id=call_id, name=name, **more)


def result(call_id: str = "c1", *content: Any, **more: Any) -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=content or (Text(text="ok"),), **more)


def results(*tool_results: ToolResult) -> Message:
    return Message.tool_results(tool_results)


def parts_of(message: Message, reader: Recipient = STRICT) -> list[dict[str, Any]]:
    """Return the parts of the answer as they are sent back."""
    contents = [content for content in write(ASKED, message, reader=reader) if content["role"] == "model"]
    return contents[0]["parts"] if contents else []


def recorded(name: str) -> Message:
    return answer((RECORDINGS / "gemini" / f"{name}.sse").read_bytes())


def test_two_roles_and_neighbours_merged() -> None:
    contents = write(
        Message.user("a"),
        Message.user("b"),
        Message.system("s"),
        answer_with(Text(text="c")),
        answer_with(Text(text="d")),
    )
    assert contents == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [{"text": "c"}, {"text": "d"}]},
    ]


def test_nothing_is_never_a_content() -> None:
    nothing = answer_with(Text(text=""), Thinking(text="t", provider="anthropic", metadata={"signature": "s"}))
    assert write(Message.user(""), nothing, Message.user("a"), nothing, Message.user("b")) == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}
    ]
    assert write() == []


def test_signed_text_goes_back_on_its_part() -> None:
    assert parts_of(recorded("thinking_text")) == [
        {"text": "It is "},
        {"text": "1161.", "thoughtSignature": "EuIFCt8FAXLI2nxfTmlnaHQ="},
    ]
    assert parts_of(recorded("text")) == [
        {"text": "Hello, wörld 🌍\u2028bye."},
        {"text": "", "thoughtSignature": "EuIFCt8FAXLI2nxfTmlnaHQ="},
    ]


def test_a_signature_in_the_middle_parts_the_text() -> None:
    message = answer(
        sse(
            chunk({"text": "A"}, {"text": "BA", "thoughtSignature": "S1"}, {"text": "", "thoughtSignature": "S2"}),
            chunk({"text": "C"}, {"text": "C", "thoughtSignature": "S3"}, {"text": "D"}, finish="STOP"),
        )
    )
    assert parts_of(message) == [
        {"text": "A"},
        {"text": "BA", "thoughtSignature": "S1"},
        {"text": "", "thoughtSignature": "S2"},
        {"text": "C"},
        {"text": "C", "thoughtSignature": "S3"},
        {"text": "D"},
    ]


def test_a_signature_behind_cited_text() -> None:
    support = {"segment": {"endIndex": 2}, "groundingChunkIndices": [0]}
    metadata = {"groundingChunks": [{"web": {"uri": "u"}}], "groundingSupports": [support], "webSearchQueries": ["q"]}
    signed = {"text": "BC", "thoughtSignature": "S"}
    message = answer(sse(chunk({"text": "A"}, signed), chunk(finish="STOP", groundingMetadata=metadata)))
    assert parts_of(message) == [{"text": "A"}, signed]


def test_changed_text_has_no_signed_part() -> None:
    state = Thinking(text="", provider="gemini", metadata={"thoughtSignature": "S", "on": "text", "part_text": "old"})
    assert parts_of(answer_with(Text(text="new"), state)) == [{"text": "new"}]
    assert parts_of(answer_with(state)) == []


def test_signed_calls_go_back_as_they_came() -> None:
    message = recorded("tools_parallel")
    first, second, third = parts_of(message)
    assert first["thoughtSignature"] == "EuIFCt8FAXLI2nxfTmlnaHQ="
    assert [item["functionCall"].get("id") for item in (first, second, third)] == ["u7x3k2p9", "q1w2e3r4", None]
    assert "thoughtSignature" not in second
    assert third == {"functionCall": {"name": "get_time", "args": {}}}
    (responses,) = [item for item in write(ASKED, message) if "functionResponse" in item["parts"][0]]
    answers = [item["functionResponse"] for item in responses["parts"]]
    assert [item.get("id") for item in answers] == ["u7x3k2p9", "q1w2e3r4", None]
    assert [item["name"] for item in answers] == ["write_file", "get_weather", "get_time"]


def test_summaries_stay_unless_they_are_signed() -> None:
    summary = Thinking(text="Hm", provider="gemini", metadata={"thought": True})
    signed = Thinking(text="Hm", provider="gemini", metadata={"thought": True, "thoughtSignature": "S"})
    assert parts_of(answer_with(summary, Text(text="a"))) == [{"text": "a"}]
    assert parts_of(answer_with(signed)) == [{"text": "Hm", "thought": True, "thoughtSignature": "S"}]


STATE = Thinking(text="", provider="gemini", metadata={"thoughtSignature": "S", "on": "text", "part_text": ""})
STEP = ServerStep(
    provider="gemini", name="code_execution", raw={"executableCode": {"code": "1"}, "thoughtSignature": "S"}
)
STRANGE = Unknown(provider="gemini", raw={"inlineData": {"mimeType": "image/png", "data": "AAAA"}})


@pytest.mark.parametrize(
    ("more", "is_own"),
    [
        ({"origin": OWN}, True),
        ({"origin": ELSEWHERE, "model": MODEL}, False),
        ({"origin": None, "model": None}, True),
        ({"origin": None, "model": f"models/{MODEL}"}, True),
        ({"origin": None, "model": "gemini-2.5-pro"}, False),
    ],
)
def test_state_goes_only_to_the_account_that_made_it(more: dict[str, Any], is_own: bool) -> None:
    own_call = call("c1", provider="gemini", metadata={"id": "c1"})
    contents = parts_of(answer_with(Text(text="a"), STATE, STEP, STRANGE, own_call, **more), reader=MILD)
    bare_call = {"functionCall": {"name": "f", "args": {}}}
    if is_own:
        own = {"functionCall": {"id": "c1", "name": "f", "args": {}}}
        assert contents == [{"text": "a"}, {"text": "", "thoughtSignature": "S"}, STEP.raw, STRANGE.raw, own]
    else:
        assert contents == [{"text": "a"}, bare_call]


def test_a_picture_goes_back_with_its_signature_and_elsewhere_without() -> None:
    picture = PICTURE.model_copy(update={"provider": "gemini", "metadata": {"thoughtSignature": "S"}})
    assert parts_of(answer_with(picture), reader=STRICT) == [{**INLINE, "thoughtSignature": "S"}]
    unsigned = {**INLINE, "thoughtSignature": "skip_thought_signature_validator"}
    assert parts_of(answer_with(picture, origin=ELSEWHERE), reader=STRICT) == [unsigned]


def test_blocks_of_others_are_not_sent() -> None:
    foreign = [
        Thinking(text="t", provider="", metadata={"thoughtSignature": "S", "on": "text", "part_text": ""}),
        ServerStep(provider="anthropic", name="web_search", raw={"executableCode": 1}),
        ServerStep(provider="gemini", name="google_search", raw={"groundingMetadata": {}}),
        Unknown(provider="gemini", raw="text"),
        Unknown(raw={"x": 1}),
    ]
    assert parts_of(answer_with(*foreign, call(provider="openai", metadata={"id": "x"})), reader=MILD) == [
        {"functionCall": {"name": "f", "args": {}}}
    ]


def test_calls_of_another_model_get_the_dummy_in_the_current_turn() -> None:
    old = answer_with(call("a"), origin=ELSEWHERE)
    history = encode(
        ASKED, old, results(result("a")), Message.user("next"),
        answer_with(call("b"), call("c"), origin=ELSEWHERE), results(result("b"), result("c")),
        answer_with(call("d"), origin=ELSEWHERE), results(result("d")),
        reader=STRICT,
    )  # fmt: skip
    assert history.unsigned
    signatures = [
        part.get("thoughtSignature") for item in history.items for part in item["parts"] if "functionCall" in part
    ]
    # "next" shares one content with the results before it, so the server may count the first step too.
    assert signatures == [NO_SIGNATURE, NO_SIGNATURE, None, NO_SIGNATURE]
    settled = encode(ASKED, old, results(result("a")), answer_with(Text(text="x")), Message.user("next"), reader=STRICT)
    assert not settled.unsigned
    assert NO_SIGNATURE not in dumps(settled.items).decode()
    assert not encode(ASKED, old, reader=MILD).unsigned


def test_signed_steps_need_no_dummy() -> None:
    assert not encode(ASKED, recorded("tools_parallel"), reader=STRICT).unsigned


def test_every_call_has_one_response_in_call_order() -> None:
    message = answer_with(Text(text="t"), call("a"), call("b", "g"), call("c"))
    contents = write(
        ASKED, message, results(result("c"), result("a"), result("a", Text(text="twice")), result("stray"))
    )
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert [part["functionResponse"] for part in contents[-1]["parts"]] == [
        {"name": "f", "response": {"output": "ok"}},
        {"name": "g", "response": {"error": NO_RESULT}},
        {"name": "f", "response": {"output": "ok"}},
    ]


def test_ids_that_repeat_pair_with_the_message_before() -> None:
    def last(text: str) -> Message:
        return results(result("c1", Text(text=text)))

    contents = write(ASKED, answer_with(call()), last("one"), answer_with(call()), last("two"), Message.user("more"))
    outputs = [
        part["functionResponse"]["response"]["output"]
        for item in contents
        for part in item["parts"]
        if "functionResponse" in part
    ]
    assert outputs == ["one", "two"]
    assert contents[-1]["parts"][-1] == {"text": "more"}


def test_a_result_belongs_to_the_answer_right_before_it() -> None:
    contents = write(ASKED, answer_with(call()), answer_with(call()), results(result("c1")))
    responses = [part["functionResponse"]["response"] for item in contents[2::2] for part in item["parts"]]
    assert responses == [{"error": NO_RESULT}, {"output": "ok"}]


@pytest.mark.parametrize(
    ("tool_result", "response"),
    [
        (result("c1", Json(value={"a": [1, None]})), {"output": {"a": [1, None]}}),
        (result("c1", Json(value=None)), {"output": None}),
        (result("c1", Text(text="a"), Json(value=1)), {"output": "a\n1"}),
        (ToolResult(tool_use_id="c1"), {"output": ""}),
        (result("c1", Text(text="bad"), outcome=Outcome.FAILED), {"error": "bad"}),
        (ToolResult(tool_use_id="c1", outcome=Outcome.FAILED), {"error": "[failed]"}),
        (result("c1", Text(text="no"), outcome=Outcome.DENIED), {"error": "[denied] no"}),
        (result("c1", Json(value={"a": 1}), outcome=Outcome.TIMED_OUT), {"error": '[timed_out] {"a":1}'}),
    ],
)
def test_results_in_words_and_values(tool_result: ToolResult, response: dict[str, Any]) -> None:
    contents = write(ASKED, answer_with(call()), results(tool_result))
    assert contents[-1]["parts"] == [{"functionResponse": {"name": "f", "response": response}}]


def test_pictures_of_results() -> None:
    web = Image(source=UrlSource(url="https://x.example/a.webp?s=1"))
    with_pictures = results(result("a", Text(text="see"), PICTURE, web), result("b"))
    message = answer_with(call("a"), call("b"))
    behind = write(ASKED, message, with_pictures)[-1]["parts"]
    assert [next(iter(part)) for part in behind] == ["functionResponse"] * 2 + ["text", "inlineData", "fileData"]
    assert behind[0]["functionResponse"]["response"] == {"output": "see\n(The pictures follow.)"}
    inside = write(ASKED, message, with_pictures, reader=STRICT)[-1]["parts"]
    assert inside[0]["functionResponse"]["parts"] == [INLINE]
    assert inside[2:] == [
        {"text": "Pictures from the result of f:"},
        {"fileData": {"mimeType": "image/webp", "fileUri": "https://x.example/a.webp?s=1"}},
    ]


def test_names_that_the_api_refuses_are_rewritten_in_both_places() -> None:
    contents = write(ASKED, answer_with(call("a", "my tool/ü"), call("b", "x" * 200)), results(result("a")))
    names = [part["functionCall"]["name"] for part in contents[1]["parts"]]
    assert names == ["_my_tool___623b7517", names[1]]
    assert len(set(names)) == 2
    assert [part["functionResponse"]["name"] for part in contents[2]["parts"]] == names


def test_malformed_calls_are_shown_inside_an_object() -> None:
    assert parts_of(answer_with(call(malformed="{oops")), reader=MILD) == [
        {"functionCall": {"name": "f", "args": {"malformed_arguments": "{oops"}}}
    ]


def test_pictures_of_the_person() -> None:
    plain = Image(source=UrlSource(url="https://x.example/pic"))
    contents = write(Message.user_with_blocks((Text(text="look"), PICTURE, plain)))
    assert contents[0]["parts"] == [{"text": "look"}, INLINE, {"fileData": {"fileUri": "https://x.example/pic"}}]


@pytest.mark.parametrize(
    ("source", "error_type"),
    [
        (Base64Source(media_type="image/gif", data=GIF), ImageRefused),
        (UrlSource(url="https://x.example/a.GIF"), ImageRefused),
        (StoredSource(digest="0" * 64, media_type="image/png", size=1, width=1, height=1), WrongUse),
    ],
)
def test_pictures_that_cannot_go(source: Any, error_type: type[Exception]) -> None:
    with pytest.raises(error_type):
        encode(Message.user_with_blocks((Image(source=source),)))


def continued(text: str, token: str | None, **more: Any) -> Message:
    details = {} if token is None else {"continuation_token": token}
    return answer_with(Text(text=text), stop_reason=StopReason.CONTINUATION, stop_details=details, **more)


def test_the_rest_of_an_answer_is_asked_for_without_it() -> None:
    history = encode(ASKED, continued("1", "T1"), continued("2", "T2"), Message.system("late"))
    assert (history.items, history.continuation) == ([{"role": "user", "parts": [{"text": "hi"}]}], "T2")


def test_a_continued_answer_is_one_content() -> None:
    history = encode(ASKED, continued("1", "T1"), answer_with(Text(text="2")), Message.user("next"))
    assert history.continuation is None
    assert history.items[1] == {"role": "model", "parts": [{"text": "1"}, {"text": "2"}]}


def test_a_token_of_another_account_is_nothing() -> None:
    for message in (continued("1", "T", origin=ELSEWHERE), continued("1", None)):
        history = encode(ASKED, message)
        assert history.continuation is None
        assert history.items[-1]["role"] == "model"


def test_where_the_question_stands() -> None:
    question = {"role": "user", "parts": [{"text": "x"}]}
    model = {"role": "model", "parts": [{"text": "x"}]}
    response = {"role": "user", "parts": [{"functionResponse": {}}, {"text": "x"}]}
    assert last_question_index([question, model, question, model, response]) == 2
    assert last_question_index([model, response]) == 0
    assert last_question_index([]) == 0
