"""The SDK checks find each kind of mistake in each dialect, at any depth, and every allowed deviation is needed."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.desktop_agent.providers.deviations import ALLOWED, PAGE, Allowance, page
from tests.desktop_agent.providers.sdk_types import findings, judge, judge_bytes
from tests.desktop_agent.providers.wire_shapes import misfits
from tests.fakes.http_server import Loopback, Reply

Json = dict[str, Any]
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
GEMINI = "/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse"
USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
THOUGHT = {"type": "thinking", "thinking": "", "signature": "c2ln"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat(*messages: Json, **more: Any) -> Json:
    return {"model": "m", "messages": list(messages) or [USER], "stream": True, **more}


def responses(*items: Json, **more: Any) -> Json:
    return {"model": "m", "input": list(items) or "hi", "stream": True, "store": False, **more}


def messages(*history: Json, **more: Any) -> Json:
    return {"model": "m", "max_tokens": 9, "messages": list(history) or [USER], "stream": True, **more}


def gemini(*parts: Json, **more: Any) -> Json:
    return {"contents": [{"role": "user", "parts": list(parts) or [{"text": "hi"}]}], **more}


GOOD = [
    (CHAT, chat()),
    (
        CHAT,
        chat(
            USER,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ),
    ),
    (
        CHAT,
        chat(
            tools=[{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
            tool_choice="auto",
            temperature=1,
        ),
    ),
    (RESPONSES, responses()),
    (
        RESPONSES,
        responses(
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
        ),
    ),
    (RESPONSES + "/input_tokens", {"model": "m", "input": [USER]}),
    (MESSAGES, messages(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}])),
    (
        MESSAGES,
        messages(
            USER,
            {"role": "assistant", "content": [THOUGHT, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            thinking={"type": "adaptive", "display": "summarized"},
            tools=[{"name": "f", "input_schema": SCHEMA}],
        ),
    ),
    (MESSAGES + "/count_tokens", {"model": "m", "messages": [USER]}),
    (
        GEMINI,
        gemini(
            {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
            generationConfig={"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True}},
        ),
    ),
    (GEMINI, gemini(tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}])),
    ("/v1beta/models/m:countTokens", {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}),
    ("/v1beta/cachedContents", {"model": "models/m", "ttl": "300s", "contents": [{"role": "user", "parts": []}]}),
]

BAD = [
    (CHAT, chat({"role": "usr", "content": "hi"}), "messages[0].role"),
    (
        CHAT,
        chat({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x", "detial": "low"}}]}),
        "messages[0].content[0].image_url.detial",
    ),
    (CHAT, chat({"role": "tool", "content": "x"}), "messages[0].tool_call_id"),
    (
        CHAT,
        chat(USER, {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}),
        "messages[1].tool_calls[0].function.arguments",
    ),
    (CHAT, chat(temperature="hot"), "temperature"),
    (CHAT, chat(max_tokens=True), "max_tokens"),
    (CHAT, chat(tool_choice="any one"), "tool_choice"),
    (CHAT, {"messages": [USER]}, "model"),
    (CHAT, chat(USER, 3), "messages[1]"),
    (CHAT, [], ""),
    (RESPONSES, responses({"role": "usr", "content": "hi"}), "input[0].role"),
    (
        RESPONSES,
        responses({"role": "user", "content": [{"type": "input_image", "detail": "auto", "image_url": {"url": "x"}}]}),
        "input[0].content[0].image_url",
    ),
    (
        RESPONSES,
        responses({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "txt": "x"}]}),
        "input[0].summary[0].text",
    ),
    (
        RESPONSES,
        responses({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "phase": "x"}),
        "input[0].phase",
    ),
    (RESPONSES, responses(reasoning={"effort": "very"}), "reasoning.effort"),
    (RESPONSES, responses(tools=[{"type": "function", "name": "f"}]), "tools[0].parameters"),
    (RESPONSES + "/input_tokens", {"model": "m", "input": "x", "stream": True}, "stream"),
    (MESSAGES, messages({"role": "tool", "content": "hi"}), "messages[0].role"),
    (
        MESSAGES,
        messages({"role": "assistant", "content": [{**THOUGHT, "signatur": "x"}]}),
        "messages[0].content[0].signatur",
    ),
    (
        MESSAGES,
        messages({"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}),
        "messages[0].content[0].signature",
    ),
    (
        MESSAGES,
        messages(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": 3}]}],
            }
        ),
        "messages[0].content[0].content[0].text",
    ),
    (
        MESSAGES,
        messages(
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "x"}}],
            }
        ),
        "messages[0].content[0].source.media_type",
    ),
    (MESSAGES, messages(temperature=1.0), "temperature"),
    (MESSAGES, messages(thinking={"type": "adaptive", "block_binding": {}}), "thinking.block_binding"),
    (MESSAGES, messages(betas=["x"]), "betas"),
    (MESSAGES, {"model": "m", "messages": [USER]}, "max_tokens"),
    (MESSAGES + "/count_tokens", messages(), "max_tokens"),
    (GEMINI, gemini({"inline_data": {}}), "contents[0].parts[0].inline_data"),
    (GEMINI, gemini({"inlineData": {"mimeType": "image/png", "data": "@@"}}), "contents[0].parts[0].inlineData.data"),
    (
        GEMINI,
        gemini({"functionResponse": {"name": "f", "response": "text"}}),
        "contents[0].parts[0].functionResponse.response",
    ),
    (GEMINI, gemini({"functionCall": {"name": "f", "willContinue": True}}), "contents[0]"),
    (
        GEMINI,
        gemini(generationConfig={"thinkingConfig": {"thinkingLevel": "HUGE"}}),
        "generationConfig.thinkingConfig.thinkingLevel",
    ),
    (GEMINI, gemini(generationConfig={"temperature": "x"}), "generationConfig.temperature"),
    (GEMINI, gemini(system_instruction={}), "system_instruction"),
    (GEMINI, gemini(tools=[{"enterpriseWebSearch": {}}]), "tools[0]"),
    (GEMINI, {}, "contents"),
    ("/v1beta/models/m:countTokens", {"generateContentRequest": {"contents": []}}, "generateContentRequest.model"),
    ("/v1beta/models/m:countTokens", {"systemInstruction": {}}, "systemInstruction"),
    ("/v1beta/cachedContents", {"ttl": "300s"}, "model"),
]


@pytest.mark.parametrize(("path", "body"), GOOD)
def test_what_is_right_passes(path: str, body: Json) -> None:
    assert judge(path, body) == []


@pytest.mark.parametrize(("path", "body", "expected_path"), BAD)
def test_what_is_wrong_is_found_where_it_is(path: str, body: Any, expected_path: str) -> None:
    assert expected_path in [line.partition(":")[0] for line in judge(path, body)]


def test_a_beta_header_brings_the_beta_types() -> None:
    body = messages(thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})
    assert judge(MESSAGES, body) != []
    assert judge(MESSAGES, body, {"anthropic-beta": "thinking-binding-controls-2026-08-01"}) == []


def test_other_paths_and_broken_json() -> None:
    assert judge("/api/show", {"anything": 1}) == []
    assert judge_bytes("/api/show", b"{") == []
    assert judge_bytes(CHAT, b"{") != []


def test_a_type_that_nobody_can_judge_is_said_aloud() -> None:
    with pytest.raises(TypeError, match="complex"):
        misfits(1, complex)


def _assistant(**more: Any) -> Json:
    return chat(USER, {"role": "assistant", "content": "x", "tool_calls": [CALL], **more})


NEEDED: dict[tuple[str, str], tuple[str, Json]] = {
    ("openai-chat", "messages[].reasoning_content"): (CHAT, _assistant(reasoning_content="")),
    ("openai-chat", "messages[].reasoning"): (CHAT, _assistant(reasoning="x")),
    ("openai-chat", "messages[].reasoning_details"): (CHAT, _assistant(reasoning_details=[])),
    ("openai-chat", "messages[].thinking_blocks"): (CHAT, _assistant(thinking_blocks=[])),
    ("openai-chat", "messages[].tool_calls[].extra_content"): (
        CHAT,
        _assistant(tool_calls=[{**CALL, "extra_content": {}}]),
    ),
    ("openai-chat", "messages[].content[].type"): (CHAT, _assistant(content=[{"type": "thinking", "thinking": []}])),
    ("openai-chat", "tool_choice"): (CHAT, chat(tool_choice="any")),
    ("openai-chat", "thinking"): (CHAT, chat(thinking={"type": "disabled"})),
    ("openai-chat", "reasoning"): (CHAT, chat(reasoning={"enabled": False})),
    ("openai-chat", "cache_control"): (CHAT, chat(cache_control={"type": "ephemeral"})),
    ("openai-chat", "chat_template_kwargs"): (CHAT, chat(chat_template_kwargs={"enable_thinking": False})),
    ("openai-chat", "top_k"): (CHAT, chat(top_k=3)),
    ("openai-responses", "input[].content[].type"): (
        RESPONSES,
        responses({"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]}),
    ),
    ("gemini", "generateContentRequest"): (
        "/v1beta/models/m:countTokens",
        {"generateContentRequest": {"model": "models/m", "contents": [], "systemInstruction": {"parts": []}}},
    ),
}


@pytest.mark.parametrize("allowance", ALLOWED, ids=lambda each: f"{each.dialect} {each.path}")
def test_what_is_allowed_would_be_refused(allowance: Allowance) -> None:
    path, body = NEEDED[allowance.dialect, allowance.path]
    assert len(findings(path, body)) == 1
    assert judge(path, body) == []


def test_every_allowance_has_a_body_that_needs_it_and_a_line_on_the_page() -> None:
    assert {(allowance.dialect, allowance.path) for allowance in ALLOWED} == set(NEEDED)
    assert PAGE.read_text(encoding="utf-8") == page()


def test_only_the_named_value_is_allowed_and_only_beside_what_is_named() -> None:
    assert judge(RESPONSES, responses({"role": "user", "content": [{"type": "output_text", "text": "x"}]})) != []
    assert judge(CHAT, chat(tool_choice="some")) != []
    assert judge(CHAT, _assistant(content=[{"type": "thought"}])) != []


async def test_the_loopback_server_fails_what_the_judge_refuses() -> None:
    async def post(server: Loopback, body: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with Loopback(Reply()) as server:
        await post(server, json.dumps(chat()).encode())
    with pytest.raises(AssertionError, match=r"/v1/chat/completions foo: not a field here"):
        async with Loopback(Reply()) as server:
            await post(server, json.dumps(chat(foo=1)).encode())
    async with Loopback(Reply(), judged=False) as server:
        await post(server, b"rubbish")


def test_the_sdks_are_loaded_only_when_somebody_is_judged() -> None:
    code = (
        "import sys, tests.fakes.http_server, tests.fakes.threaded_model_server,"
        " tests.desktop_agent.providers.sdk_types as judge;"
        "loaded = {'openai', 'anthropic', 'google.genai'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PAGE.parents[1])
