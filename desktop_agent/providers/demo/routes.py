"""Find the dialect and the answer for each address of the demo's server, and list its model."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

from desktop_agent.providers.data_tables import load_table
from desktop_agent.providers.demo import scripted_model
from desktop_agent.providers.demo.chat_completions import ChatWriter, read_chat_request
from desktop_agent.providers.demo.http import AnswerWriter, Request, RequestError
from desktop_agent.providers.demo.script import MODEL, ReceivedRequest, Script
from desktop_agent.providers.demo.strict_anthropic import AnthropicWriter, read_anthropic_request
from desktop_agent.providers.demo.strict_gemini import GeminiWriter, read_gemini_count_request, read_gemini_request
from desktop_agent.providers.demo.strict_responses import ResponsesWriter, read_responses_request
from desktop_agent.types.providers import Dialect

Json = dict[str, Any]
_LISTINGS: dict[str, Json] = load_table(__name__, "listings.toml")


def openai_listing() -> Json:
    """Return the listing with the fields by which OpenRouter tells capabilities."""
    return {"object": "list", "data": [_LISTINGS["openai"]]}


def anthropic_listing() -> Json:
    """Return the only page of the listing."""
    model = {**_LISTINGS["anthropic"], "deprecated_at": None, "retires_at": None, "line": None}
    return {"data": [model], "has_more": False, "first_id": MODEL, "last_id": MODEL}


def gemini_listing() -> Json:
    """Return the only page of the listing."""
    return {"models": [_LISTINGS["gemini"]]}


Play = Callable[[ReceivedRequest], Script]
_GEMINI_PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):(\w+)")
_MODELS_PATH = re.compile(r"/v1(beta)?/models(?:/([^/:]+))?")


def dialect_of(request: Request) -> Dialect:
    """Return the dialect of a request: by its address, and if vendors share one, by its headers."""
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


async def answer_request(request: Request, play: Play | None = None) -> AnswerWriter | dict[str, Any] | list[Any]:
    """Return a writer for an answer, or ready JSON. `play` is another model than the demo's. Raises RequestError."""
    if request.method == "GET":
        return _list_models(request)
    # Large pictures take a while to decode, and the loop may be the window's.
    return await asyncio.to_thread(_answer, request, play or scripted_model.play)


def _answer(request: Request, play: Play) -> AnswerWriter | dict[str, Any] | list[Any]:
    match (request.method, request.path):
        case ("POST", "/v1/chat/completions"):
            question = read_chat_request(request.body)
            return ChatWriter(question, play(question))
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


def _answer_gemini(request: Request, model: str, verb: str, play: Play) -> AnswerWriter | dict[str, Any] | list[Any]:
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
    match dialect_of(request):
        case "anthropic":
            listing, models = anthropic_listing(), "data"
        case "gemini":
            listing, models = gemini_listing(), "models"
        case _:
            listing, models = openai_listing(), "data"
    return listing if match[2] is None else listing[models][0]


def _not_found(request: Request) -> RequestError:
    return RequestError(404, f"There is nothing at {request.method} {request.path}.")
