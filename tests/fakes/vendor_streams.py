"""One long answer in each dialect, with the fields and the framing of the vendor's servers."""

import json
from collections.abc import Callable
from typing import Any

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
ROOTS = {"openai-chat": "v1", "openai-responses": "v1", "anthropic": "v1", "gemini": "v1beta"}
"""The path of the base URL."""
PATHS = {
    "openai-chat": "/chat/completions",
    "openai-responses": "/responses",
    "anthropic": "/messages",
    "gemini": ":streamGenerateContent",
}
"""The ending of the path of a request to the model."""
_OBFUSCATION = "aB3xK9mQ2w"


def dialect_of(path: str) -> str:
    """The dialect of a request to this path."""
    return next(dialect for dialect, ending in PATHS.items() if path.partition("?")[0].endswith(ending))


def events(dialect: str, count: int) -> list[bytes]:
    """The events of one answer with `count` pieces of text; a server writes one event at a time."""
    return said(dialect, [f"tok{number % 97} " for number in range(count)])


def said(dialect: str, pieces: list[str]) -> list[bytes]:
    """The events of one answer with these pieces of text."""
    return _MAKERS[dialect](pieces)


def _openai_chat(pieces: list[str]) -> list[bytes]:
    head = {"id": "chatcmpl-CaVZ1a2b3c4d5e6f", "object": "chat.completion.chunk", "created": 1794960000}
    more = {"model": "gpt-6-sol", "service_tier": "default", "system_fingerprint": "fp_44709d6fcb"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _data({**head, **more, "choices": [choice], "usage": None, "obfuscation": _OBFUSCATION})

    opening = chunk({"role": "assistant", "content": "", "refusal": None})
    return [opening, *(chunk({"content": piece}) for piece in pieces), chunk({}, "stop"), b"data: [DONE]\n\n"]


def _openai_responses(pieces: list[str]) -> list[bytes]:
    base: dict[str, Any] = {
        "id": "resp_0a1b2c3d4e5f",
        "object": "response",
        "created_at": 1794960000,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": "gpt-6-sol",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    place = {"item_id": "msg_01", "output_index": 0, "content_index": 0}
    text = "".join(pieces)
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    item = {"id": "msg_01", "type": "message", "status": "completed", "content": [part], "role": "assistant"}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": len(pieces),
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10 + len(pieces),
    }
    opened = {**item, "status": "in_progress", "content": []}
    values: list[dict[str, Any]] = [
        {"type": "response.created", "response": base},
        {"type": "response.in_progress", "response": base},
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
    ]
    more = {**place, "logprobs": [], "obfuscation": _OBFUSCATION}
    values += [{"type": "response.output_text.delta", **more, "delta": piece} for piece in pieces]
    values += [
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**base, "status": "completed", "output": [item], "usage": usage},
        },
    ]
    return [_named({**event, "sequence_number": number}) for number, event in enumerate(values)]


def _anthropic(pieces: list[str]) -> list[bytes]:
    usage = {"input_tokens": 25, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "msg_01A1b2C3d4E5f6G7h8J9k0L1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    values: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
    ]
    values += [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in pieces
    ]
    values += [
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {**usage, "output_tokens": len(pieces)},
        },
        {"type": "message_stop"},
    ]
    return [_named(event) for event in values]


def _gemini(pieces: list[str]) -> list[bytes]:
    chunks: list[bytes] = []
    for number, piece in enumerate([*pieces, ""], 1):
        candidate: dict[str, Any] = {"content": {"parts": [{"text": piece}], "role": "model"}, "index": 0}
        if number > len(pieces):
            candidate["finishReason"] = "STOP"
        usage = {
            "promptTokenCount": 4105,
            "candidatesTokenCount": number,
            "totalTokenCount": 4105 + number,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 4105}],
        }
        more = {"modelVersion": "gemini-3.8-flash", "responseId": "a1b2c3d4e5f6g7h8"}
        chunks.append(_data({"candidates": [candidate], "usageMetadata": usage, **more}, end="\r\n\r\n"))
    return chunks


def _data(value: Any, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(value, separators=(',', ':'))}{end}".encode()


def _named(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + _data(value)


_MAKERS: dict[str, Callable[[list[str]], list[bytes]]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
