"""The demo server refuses what vendors refuse, in their formats, and sends only what their SDKs have types for."""

import copy
import json
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from tests.desktop_agent.providers.sdk_types import judge, response_shape
from tests.desktop_agent.providers.wire_shapes import misfits
from tests.fakes.strict_server import strict_server

Json = dict[str, Any]
SCHEMA: Json = {"type": "object"}
VERSION = {"anthropic-version": "2026-10-21"}
GEMINI = "/v1beta/models/demo:streamGenerateContent?alt=sse"
# Fields that compatible servers send and OpenAI's Chat Completions does not have.
EXTRA = {"choices[0].delta.reasoning_content", "choices[0].message.reasoning_content"}
PING = '{"type": "ping"}'  # may come anywhere; Anthropic's SDK skips it without a type


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    server = strict_server(speed=math.inf)
    url = (await server.start()).removesuffix("/v1")
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
        yield client
    await server.aclose()


async def post(http: httpx.AsyncClient, path: str, body: Json, **headers: str) -> httpx.Response:
    all_headers = {
        **(VERSION if "/messages" in path else {}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return await http.post(path, json=body, headers=all_headers)


def messages(*messages_given: Json, **more: Any) -> Json:
    tools = [{"name": name, "input_schema": SCHEMA} for name in ("write_file", "calculate")]
    thinking = {"type": "adaptive", "display": "summarized"}
    return {
        "model": "demo",
        "max_tokens": 9,
        "messages": list(messages_given),
        "tools": tools,
        "thinking": thinking,
        **more,
    }


def responses(*items: Json, **more: Any) -> Json:
    tools = [
        {"type": "function", "name": name, "parameters": SCHEMA, "strict": False}
        for name in ("write_file", "calculate")
    ]
    body = {"model": "demo", "input": list(items), "tools": tools, "store": False, "reasoning": {"summary": "auto"}}
    return {**body, **more}


def contents(*messages_given: Json, **more: Any) -> Json:
    declared = [{"name": name, "parametersJsonSchema": SCHEMA} for name in ("write_file", "calculate")]
    return {"contents": list(messages_given), "tools": [{"functionDeclarations": declared}], **more}


def user(content: Any = "use both tools") -> Json:
    return {"role": "user", "content": content}


def user_content(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts) or [{"text": "use both tools"}]}


async def anthropic_round(http: httpx.AsyncClient) -> Json:
    """Return a valid request with the results of two calls."""
    answer = (await post(http, "/v1/messages", messages(user()))).json()
    calls = [block for block in answer["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "ok"} for call in calls]
    return messages(user(), {"role": "assistant", "content": answer["content"]}, user(results))


async def responses_round(http: httpx.AsyncClient) -> Json:
    answer = (await post(http, "/v1/responses", responses(user()))).json()
    calls = [item for item in answer["output"] if item["type"] == "function_call"]
    results = [{"type": "function_call_output", "call_id": call["call_id"], "output": "ok"} for call in calls]
    return responses(user(), *answer["output"], *results)


async def gemini_round(http: httpx.AsyncClient) -> Json:
    answer = (await post(http, "/v1beta/models/demo:generateContent", contents(user_content()))).json()
    content = answer["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    results = [
        {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "ok"}}} for call in calls
    ]
    return contents(user_content(), content, user_content(*results))


ROUNDS = {"/v1/messages": anthropic_round, "/v1/responses": responses_round, GEMINI: gemini_round}


def changed(path: str, change: Callable[[Any], Any]) -> Callable[[Json], None]:
    """Change the value at a path like messages.1.content.0; Ellipsis as the new value removes it."""

    def apply(body: Json) -> None:
        *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        parent: Any = body
        for step in parents:
            parent = parent[step]
        new = change(parent.get(last) if isinstance(parent, dict) else parent[last])
        if new is ...:
            del parent[last]
        else:
            parent[last] = new

    return apply


def removed(_: Any) -> Any:
    return ...


def to(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def changed_text(text: str) -> str:
    return ("A" if text[0] != "A" else "B") + text[1:]


MARK = {"type": "ephemeral"}
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="},
}
SPOILED: list[tuple[str, str, Callable[[Json], None]]] = [
    ("/v1/messages", "a changed thought", changed("messages.1.content.0.thinking", changed_text)),
    ("/v1/messages", "a changed signature", changed("messages.1.content.0.signature", changed_text)),
    ("/v1/messages", "no signature", changed("messages.1.content.0.signature", removed)),
    ("/v1/messages", "another prompt before the thought", changed("messages.0.content", to("use both tools now"))),
    ("/v1/messages", "other instructions before the thought", changed("system", to("Be kind."))),
    ("/v1/messages", "other tools before the thought", changed("tools.1.name", to("calc"))),
    ("/v1/messages", "a missing result", changed("messages.2.content.1", removed)),
    ("/v1/messages", "a result for nobody", changed("messages.2.content.1.tool_use_id", to("toolu_x"))),
    (
        "/v1/messages",
        "text before results",
        changed("messages.2.content", lambda old: [{"type": "text", "text": "x"}, *old]),
    ),
    ("/v1/messages", "prefill", changed("messages", lambda old: [*old, {"role": "assistant", "content": "I"}])),
    ("/v1/messages", "a tool message", changed("messages", lambda old: [*old, {"role": "tool", "content": "x"}])),
    ("/v1/messages", "empty text", changed("messages.2.content", lambda old: [*old, {"type": "text", "text": ""}])),
    ("/v1/messages", "a wrong label", changed("messages.2.content", lambda old: [*old, IMAGE])),
    ("/v1/messages", "arguments as text", changed("messages.1.content.2.input", to("{}"))),
    ("/v1/messages", "sampling", changed("temperature", to(1.0))),
    ("/v1/messages", "a budget", changed("thinking", to({"type": "enabled", "budget_tokens": 2000}))),
    ("/v1/messages", "display without thinking", changed("thinking", to({"type": "disabled", "display": "omitted"}))),
    ("/v1/messages", "binding without its header", changed("thinking", to({"type": "adaptive", "block_binding": {}}))),
    ("/v1/messages", "no max_tokens", changed("max_tokens", removed)),
    ("/v1/messages", "an unknown field", changed("stop", to([]))),
    ("/v1/messages", "a tool's bad name", changed("tools.0.name", to("write file"))),
    ("/v1/messages", "two tools of one name", changed("tools.0.name", to("calculate"))),
    ("/v1/messages", "a marked thought", changed("messages.1.content.0.cache_control", to(MARK))),
    (
        "/v1/messages",
        "five marks",
        changed("messages", lambda old: [user([{"type": "text", "text": "x", "cache_control": MARK}] * 5)]),
    ),
    (
        "/v1/messages",
        "a long mark behind a short one",
        changed(
            "messages",
            lambda old: [
                user(
                    [
                        {"type": "text", "text": "x", "cache_control": MARK},
                        {"type": "text", "text": "x", "cache_control": {**MARK, "ttl": "1h"}},
                    ]
                )
            ],
        ),
    ),
    ("/v1/messages", "no message", changed("messages", to([]))),
    ("/v1/responses", "a changed summary", changed("input.1.summary.0.text", changed_text)),
    ("/v1/responses", "a changed state", changed("input.1.encrypted_content", changed_text)),
    ("/v1/responses", "a missing output", changed("input.6", removed)),
    ("/v1/responses", "an output for nobody", changed("input.6.call_id", to("call_x"))),
    ("/v1/responses", "calls without their reasoning", changed("input.1", removed)),
    ("/v1/responses", "reasoning without what followed", changed("input", lambda old: old[:2])),
    ("/v1/responses", "sampling while reasoning", changed("temperature", to(1))),
    (
        "/v1/responses",
        "tools as in Chat Completions",
        changed("tools.0", to({"type": "function", "function": {"name": "f"}})),
    ),
    ("/v1/responses", "a field of Chat Completions", changed("max_tokens", to(9))),
    ("/v1/responses", "a state of the server", changed("previous_response_id", to("resp_1"))),
    ("/v1/responses", "an unknown effort", changed("reasoning.effort", to("very"))),
    ("/v1/responses", "an unknown role", changed("input.0.role", to("tool"))),
    ("/v1/responses", "input in an answer", changed("input.2.content.0.type", to("input_text"))),
    (
        "/v1/responses",
        "a nested picture",
        changed("input.0.content", to([{"type": "input_image", "image_url": {"url": "x"}}])),
    ),
    ("/v1/responses", "an unknown item", changed("input.0", to({"type": "tool_use"}))),
    (GEMINI, "a call without its signature", changed("contents.1.parts.1.thoughtSignature", removed)),
    (GEMINI, "a changed signature", changed("contents.1.parts.1.thoughtSignature", changed_text)),
    (GEMINI, "a changed call", changed("contents.1.parts.1.functionCall.args.path", to("x"))),
    (GEMINI, "a missing response", changed("contents.2.parts.1", removed)),
    (GEMINI, "responses in another order", changed("contents.2.parts", lambda old: old[::-1])),
    (GEMINI, "no response", changed("contents.2", removed)),
    (GEMINI, "a response that is no object", changed("contents.2.parts.0.functionResponse.response", to("ok"))),
    (GEMINI, "a role of others", changed("contents.1.role", to("assistant"))),
    (GEMINI, "an unknown field", changed("messages", to([]))),
    (GEMINI, "no parts", changed("contents.0.parts", to([]))),
    (GEMINI, "no contents", changed("contents", to([]))),
    (
        GEMINI,
        "level and budget",
        changed("generationConfig", to({"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 1}})),
    ),
    (GEMINI, "two schemas", changed("generationConfig", to({"responseSchema": {}, "responseJsonSchema": {}}))),
    (GEMINI, "two kinds of parameters", changed("tools.0.functionDeclarations.0.parameters", to({}))),
    (GEMINI, "a bad name", changed("tools.0.functionDeclarations.0.name", to("1 x"))),
    (
        GEMINI,
        "a moving picture",
        changed("contents.0.parts", to([{"inlineData": {"mimeType": "image/gif", "data": ""}}])),
    ),
    (GEMINI, "a cache that is not there", changed("cachedContent", to("cachedContents/x"))),
]


def is_shaped(path: str, body: Json) -> bool:
    if path == "/v1/messages":
        return body["type"] == "error" and bool(body["error"]["message"]) and body["error"]["type"].endswith("_error")
    if path == "/v1/responses":
        return set(body["error"]) == {"message", "type", "param", "code"}
    return set(body["error"]) == {"code", "message", "status"}


@pytest.mark.parametrize("path", ROUNDS)
async def test_a_right_round_is_taken(http: httpx.AsyncClient, path: str) -> None:
    body = await ROUNDS[path](http)
    assert judge(path, body) == []
    assert (await post(http, path, body)).status_code == 200


@pytest.mark.parametrize(("path", "description", "spoil"), SPOILED, ids=[case[1] for case in SPOILED])
async def test_a_wrong_request_is_refused(
    http: httpx.AsyncClient, path: str, description: str, spoil: Callable[[Json], None]
) -> None:
    body = copy.deepcopy(await ROUNDS[path](http))
    spoil(body)
    answer = await post(http, path, body)
    assert answer.status_code == 400, description
    assert is_shaped(path, answer.json())


async def test_what_is_kept_by_id_is_not_there(http: httpx.AsyncClient) -> None:
    body = await responses_round(http)
    for item in ({"type": "item_reference", "id": "msg_1"}, {"type": "reasoning", "id": "rs_1", "summary": []}):
        answer = await post(http, "/v1/responses", {**body, "input": [item, *body["input"]]})
        assert answer.status_code == 404


async def test_versions_of_anthropic(http: httpx.AsyncClient) -> None:
    body = messages(user())
    assert (await http.post("/v1/messages", json=body)).status_code == 400
    assert (await post(http, "/v1/messages", body, anthropic_version="2020-01-01")).status_code == 400
    sampled = {**body, "temperature": 0.5}
    assert (await post(http, "/v1/messages", sampled, anthropic_version="2023-06-01")).status_code == 200


async def test_a_thought_behind_another_prefix_can_be_dropped(http: httpx.AsyncClient) -> None:
    body = await anthropic_round(http)
    body |= {
        "system": "Be kind.",
        "thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
    }
    beta = "other-1, thinking-binding-controls-2026-08-01"
    assert (await post(http, "/v1/messages", body, anthropic_beta=beta)).status_code == 200


async def test_writing_the_same_in_other_words_changes_no_prefix(http: httpx.AsyncClient) -> None:
    body = await anthropic_round(http)
    body["messages"][0] = user([{"type": "text", "text": "use both tools", "cache_control": {"type": "ephemeral"}}])
    body["tools"][1]["cache_control"] = {"type": "ephemeral"}
    assert (await post(http, "/v1/messages", body)).status_code == 200


async def test_a_thought_that_is_not_shown_comes_back_empty(http: httpx.AsyncClient) -> None:
    answer = (await post(http, "/v1/messages", messages(user(), thinking={"type": "adaptive"}))).json()
    assert answer["content"][0]["thinking"] == ""
    body = messages(user(), {"role": "assistant", "content": answer["content"][:1]}, user("Go on."))
    assert (await post(http, "/v1/messages", {**body, "thinking": {"type": "adaptive"}})).status_code == 200
    without = (await post(http, "/v1/messages", messages(user(), thinking={"type": "disabled"}))).json()
    assert [block["type"] for block in without["content"]] == ["text", "tool_use", "tool_use"]


async def test_signatures_of_earlier_turns_may_be_lost(http: httpx.AsyncClient) -> None:
    body = await gemini_round(http)
    del body["contents"][1]["parts"][1]["thoughtSignature"]
    body["contents"] += [{"role": "model", "parts": [{"text": "Done."}]}, user_content({"text": "Thanks!"})]
    assert (await post(http, GEMINI, body)).status_code == 200


async def test_a_call_of_another_model_says_so(http: httpx.AsyncClient) -> None:
    body = await gemini_round(http)
    body["contents"][1]["parts"][1]["thoughtSignature"] = "skip_thought_signature_validator"
    assert (await post(http, GEMINI, body)).status_code == 200


STREAMS = [
    (
        "openai-chat",
        "/v1/chat/completions",
        {
            "model": "demo",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [user()],
            "tools": [{"type": "function", "function": {"name": "calculate"}}],
        },
    ),
    ("openai-responses", "/v1/responses", responses(user(), stream=True)),
    ("anthropic", "/v1/messages", messages(user(), stream=True)),
    ("gemini", GEMINI, contents(user_content(), generationConfig={"thinkingConfig": {"includeThoughts": True}})),
]


@pytest.mark.parametrize(("dialect", "path", "body"), STREAMS, ids=[item[0] for item in STREAMS])
async def test_every_event_and_answer_fits_the_sdks_types(
    http: httpx.AsyncClient, dialect: str, path: str, body: Json
) -> None:
    assert judge(path, body) == []
    answer = await post(http, path, body)
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {") and line[6:] != PING]
    assert len(lines) > 20
    misfits_found = {
        str(item)
        for line in lines
        for item in misfits(json.loads(line), response_shape(f"{dialect} stream"))
        if item.path not in EXTRA
    }
    assert misfits_found == set()
    path_at_once = path.replace("streamGenerateContent?alt=sse", "generateContent")
    answer_at_once = (
        await post(http, path_at_once, {name: item for name, item in body.items() if not name.startswith("stream")})
    ).json()
    assert [item for item in misfits(answer_at_once, response_shape(dialect)) if item.path not in EXTRA] == []


async def test_gemini_ends_lines_with_two_marks_and_without_sse_gives_one_array(http: httpx.AsyncClient) -> None:
    body = contents(user_content({"text": "Hello!"}))
    streamed = await post(http, GEMINI, body)
    assert streamed.content.count(b"\r\n\r\n") == streamed.content.count(b"data: ") > 20
    array = (await post(http, GEMINI.partition("?")[0], body)).json()
    assert len(array) == streamed.content.count(b"data: ")


@pytest.mark.parametrize(
    ("headers", "key", "name"),
    [({}, "data", "demo"), (VERSION, "data", "demo"), ({"x-goog-api-key": "k"}, "models", "models/demo")],
)
async def test_the_listing_speaks_the_dialect_of_its_headers(
    http: httpx.AsyncClient, headers: dict[str, str], key: str, name: str
) -> None:
    listing = (await http.get("/v1/models", headers=headers)).json()
    (model,) = listing[key]
    assert name in (model.get("id"), model.get("name"))
    assert (await http.get("/v1/models/demo", headers=headers)).json() == model
    assert (await http.get("/v1/models/other", headers=headers)).status_code == 404


async def test_counting(http: httpx.AsyncClient) -> None:
    body_to_count = messages(user("four" * 4))
    del body_to_count["max_tokens"]
    assert (await post(http, "/v1/messages/count_tokens", body_to_count)).json() == {"input_tokens": 5}
    assert (await post(http, "/v1/messages/count_tokens", messages(user()))).status_code == 400
    counted = (await post(http, "/v1/responses/input_tokens", {"model": "demo", "input": "four" * 4})).json()
    assert counted == {"object": "response.input_tokens", "input_tokens": 5}
    path = "/v1beta/models/demo:countTokens"
    inner = {"model": "models/demo", **contents(user_content({"text": "four" * 4}))}
    for body in ({"contents": inner["contents"]}, {"generateContentRequest": inner}):
        assert (await post(http, path, body)).json() == {"totalTokens": 5}
    assert (await post(http, path, {"systemInstruction": {}})).status_code == 400


@pytest.mark.parametrize(
    "path", ["/v1/files", "/v1beta/models/demo:embedContent", "/v1beta/models/other:generateContent"]
)
async def test_nothing_else_is_there(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.post(path, json={})).status_code == 404
