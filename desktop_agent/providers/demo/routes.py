"""Which address speaks which dialect, and what stands there."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

from desktop_agent.providers.demo import actor
from desktop_agent.providers.demo.http_wire import Request
from desktop_agent.providers.demo.listing import anthropic_models, gemini_models, openai_models
from desktop_agent.providers.demo.question import MODEL, Question
from desktop_agent.providers.demo.reading.anthropic import read_messages
from desktop_agent.providers.demo.reading.gemini import read_contents, read_counted
from desktop_agent.providers.demo.reading.openai_chat import read_chat
from desktop_agent.providers.demo.reading.openai_responses import read_responses
from desktop_agent.providers.demo.refusals import Refusal
from desktop_agent.providers.demo.script import Script
from desktop_agent.providers.demo.wires.anthropic import AnthropicWire
from desktop_agent.providers.demo.wires.gemini import GeminiWire
from desktop_agent.providers.demo.wires.openai_chat import ChatWire
from desktop_agent.providers.demo.wires.openai_responses import ResponsesWire
from desktop_agent.providers.demo.wires.wire import Wire
from desktop_agent.vocabulary.endpoints import Dialect

Play = Callable[[Question], Script]
_GEMINI = re.compile(r"/v1(?:beta)?/models/([^/:]+):(\w+)")
_MODELS = re.compile(r"/v1(beta)?/models(?:/([^/:]+))?")


def dialect_of(request: Request) -> Dialect:
    """Whose language a request speaks: by its address, and where vendors share one, by its headers."""
    path, headers = request.path, request.headers
    if path.startswith("/v1/messages") or "anthropic-version" in headers:
        return "anthropic"
    if path.startswith("/v1/responses"):
        return "openai-responses"
    if path.startswith("/v1beta/") or _GEMINI.fullmatch(path) or any(name.startswith("x-goog-") for name in headers):
        return "gemini"
    return "openai-chat"


async def understood(request: Request, play: Play | None = None) -> Wire | dict[str, Any] | list[Any]:
    """An answer to be written, or a ready one; `play` says what to answer, the demo's model without. Raises Refusal."""
    if request.method == "GET":
        return _listed(request)
    # Large pictures take a while to decode, and the loop may be the window's.
    return await asyncio.to_thread(_answered, request, play or actor.play)


def _answered(request: Request, play: Play) -> Wire | dict[str, Any] | list[Any]:
    match (request.method, request.path):
        case ("POST", "/v1/chat/completions"):
            question = read_chat(request.body)
            return ChatWire(question, play(question))
        case ("POST", "/v1/responses"):
            question = read_responses(request.body)
            return ResponsesWire(question, play(question))
        case ("POST", "/v1/responses/input_tokens"):
            counted = read_responses(request.body, counts=True)
            return {"object": "response.input_tokens", "input_tokens": counted.tokens}
        case ("POST", "/v1/messages"):
            question = read_messages(request.body, request.headers)
            return AnthropicWire(question, play(question))
        case ("POST", "/v1/messages/count_tokens"):
            return {"input_tokens": read_messages(request.body, request.headers, counts=True).tokens}
        case ("POST", path) if found := _GEMINI.fullmatch(path):
            return _gemini(request, found[1], found[2], play)
        case _:
            raise _nothing(request)


def _gemini(request: Request, model: str, verb: str, play: Play) -> Wire | dict[str, Any] | list[Any]:
    if model != MODEL:
        raise Refusal(404, f"models/{model[:60]} is not found; this is “{MODEL}”.")
    match verb:
        case "generateContent" | "streamGenerateContent":
            streams = verb == "streamGenerateContent"
            question = read_contents(request.body, stream=streams and "alt=sse" in request.query)
            wire = GeminiWire(question, play(question))
            return wire.array() if streams and not question.stream else wire
        case "countTokens":
            return _counted(read_counted(request.body))
        case _:
            raise _nothing(request)


def _counted(question: Question) -> dict[str, Any]:
    return {"totalTokens": question.tokens}


def _listed(request: Request) -> dict[str, Any]:
    found = _MODELS.fullmatch(request.path)
    if found is None:
        raise _nothing(request)
    if found[2] not in (None, MODEL):
        raise Refusal(404, f"There is no such model; this is “{MODEL}”.", "model_not_found")
    match dialect_of(request):
        case "anthropic":
            listing, models = anthropic_models(), "data"
        case "gemini":
            listing, models = gemini_models(), "models"
        case _:
            listing, models = openai_models(), "data"
    return listing if found[2] is None else listing[models][0]


def _nothing(request: Request) -> Refusal:
    return Refusal(404, f"There is nothing at {request.method} {request.path}.")
