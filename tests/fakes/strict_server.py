"""The demo's server with all four dialects, each of which refuses what its vendor refuses."""

import asyncio
import re
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from desktop_agent.providers.demo import chat_completions as chat
from desktop_agent.providers.demo import scripted_model
from desktop_agent.providers.demo.http import Request, RequestError
from desktop_agent.providers.demo.scripted_model import MODEL, ReceivedRequest, Script
from desktop_agent.types.providers import Dialect, Endpoint
from tests.fakes.recording_server import RecordingServer, RequestRecord
from tests.fakes.strict_anthropic import AnthropicWriter, read_anthropic_request
from tests.fakes.strict_dialect import StrictRequest, refusing_as
from tests.fakes.strict_gemini import GeminiWriter, read_gemini_count_request, read_gemini_request
from tests.fakes.strict_responses import ResponsesWriter, read_responses_request

Json = dict[str, Any]
Play = Callable[[ReceivedRequest], Script]
_LISTINGS: dict[str, Json] = tomllib.loads(Path(__file__).with_name("listings.toml").read_text(encoding="utf-8"))


def strict_server(
    speed: float = 1.0,
    on_disconnect: Callable[[RequestRecord], None] | None = None,
    play: Play = scripted_model.play,
) -> RecordingServer:
    """Return a server. `play` is the model; it is called in a thread."""

    async def answer(request: Request) -> Any:
        return await answer_request(request, play)

    return RecordingServer(speed, on_disconnect, answer)


def demo_endpoint(base_url: str, dialect: Dialect = "openai-chat") -> Endpoint:
    """Return the demo as an ordinary endpoint; `base_url` comes from `DemoServer.start`."""
    root = base_url if dialect.startswith("openai") else base_url.removesuffix("/v1")
    return Endpoint(id="demo", title="Demo (offline)", dialect=dialect, base_url=root, kind="demo")


def anthropic_listing() -> Json:
    """Return the only page of the listing."""
    model = {**_LISTINGS["anthropic"], "deprecated_at": None, "retires_at": None, "line": None}
    return {"data": [model], "has_more": False, "first_id": MODEL, "last_id": MODEL}


def gemini_listing() -> Json:
    """Return the only page of the listing."""
    return {"models": [_LISTINGS["gemini"]]}


_GEMINI_PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):(\w+)")
_MODELS_PATH = re.compile(r"/v1(beta)?/models(?:/([^/:]+))?")


def dialect_of(request: Request) -> Dialect:
    """Return the dialect of a request: by its path, and where vendors share a path, by its headers."""
    path, headers = request.path, request.headers
    if path.startswith("/v1/messages") or "anthropic-version" in headers:
        return "anthropic"
    if path.startswith("/v1/responses"):
        return "openai-responses"
    if (
        path.startswith("/v1beta/")
        or _GEMINI_PATH.fullmatch(path)
        or any(name.startswith("x-goog-") for name in headers)
    ):
        return "gemini"
    return "openai-chat"


async def answer_request(request: Request, play: Play) -> chat.ChatWriter | Json | list[Any]:
    """Return a writer for an answer, or a JSON value. Raises RequestError with a body of the dialect."""
    dialect = dialect_of(request)
    with refusing_as(dialect):
        if request.method == "GET":
            return _list_models(request) if dialect in ("anthropic", "gemini") else await chat.answer_request(request)
        return await asyncio.to_thread(_answer, request, play)


def _answer(request: Request, play: Play) -> chat.ChatWriter | Json | list[Any]:
    match (request.method, request.path):
        case ("POST", "/v1/chat/completions"):
            read = chat.read_chat_request(request.body)
            question = StrictRequest(**{field.name: getattr(read, field.name) for field in fields(read)})
            return chat.ChatWriter(question, play(question))
        case ("POST", "/v1/responses"):
            question = read_responses_request(request.body)
            return ResponsesWriter(question, play(question))
        case ("POST", "/v1/responses/input_tokens"):
            counted = read_responses_request(request.body, counts=True)
            return {"object": "response.input_tokens", "input_tokens": counted.tokens}
        case ("POST", "/v1/messages"):
            question = read_anthropic_request(request.body, request.headers)
            return AnthropicWriter(question, play(question))
        case ("POST", "/v1/messages/count_tokens"):
            return {"input_tokens": read_anthropic_request(request.body, request.headers, counts=True).tokens}
        case ("POST", path) if match := _GEMINI_PATH.fullmatch(path):
            return _answer_gemini(request, match[1], match[2], play)
        case _:
            raise _not_found(request)


def _answer_gemini(request: Request, model: str, verb: str, play: Play) -> chat.ChatWriter | Json | list[Any]:
    if model != MODEL:
        raise RequestError(404, f"models/{model[:60]} is not found; this is “{MODEL}”.")
    match verb:
        case "generateContent" | "streamGenerateContent":
            streams = verb == "streamGenerateContent"
            question = read_gemini_request(request.body, stream=streams and "alt=sse" in request.query)
            wire = GeminiWriter(question, play(question))
            return wire.array() if streams and not question.stream else wire
        case "countTokens":
            return _count_tokens(read_gemini_count_request(request.body))
        case _:
            raise _not_found(request)


def _count_tokens(question: ReceivedRequest) -> dict[str, Any]:
    return {"totalTokens": question.tokens}


def _list_models(request: Request) -> dict[str, Any]:
    match = _MODELS_PATH.fullmatch(request.path)
    if match is None:
        raise _not_found(request)
    if match[2] not in (None, MODEL):
        raise RequestError(404, f"There is no such model; this is “{MODEL}”.", "model_not_found")
    if dialect_of(request) == "anthropic":
        listing, models = anthropic_listing(), "data"
    else:
        listing, models = gemini_listing(), "models"
    return listing if match[2] is None else listing[models][0]


def _not_found(request: Request) -> RequestError:
    return RequestError(404, f"There is nothing at {request.method} {request.path}.")
