"""Code that the strict dialects share: the history of a request, the form of errors, and events of a stream."""

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from desktop_agent.providers.demo.chat_completions import ChatWriter, TimedFrame, bad_request
from desktop_agent.providers.demo.http import RequestError
from desktop_agent.providers.demo.scripted_model import AnsweredCall, Json, ReceivedPicture, ReceivedRequest
from desktop_agent.types.providers import Dialect
from tests.fakes.seals import Prefix

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    500: "api_error",
}
_GEMINI_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 500: "INTERNAL"}


class DialectError(RequestError):
    """A refused request, with an error body as this dialect writes it."""

    def __init__(self, refusal: RequestError, dialect: Dialect) -> None:
        super().__init__(int(refusal.status), str(refusal), refusal.code)
        self._dialect = dialect

    def body(self) -> Json:
        message, status = str(self), int(self.status)
        match self._dialect:
            case "anthropic":
                error = {"type": _ANTHROPIC_TYPES.get(status, "invalid_request_error"), "message": message}
                return {"type": "error", "error": error, "request_id": f"req_{secrets.token_hex(12)}"}
            case "gemini":
                kind = _GEMINI_STATUSES.get(status, "INVALID_ARGUMENT")
                return {"error": {"code": status, "message": message, "status": kind}}
            case _:
                return super().body()


@contextmanager
def refusing_as(dialect: Dialect) -> Iterator[None]:
    """Turn each RequestError that is raised inside into an error of this dialect."""
    try:
        yield
    except RequestError as refusal:
        raise DialectError(refusal, dialect) from None


def error_body(refusal: RequestError, dialect: Dialect) -> Json:
    """Return the body of an error response in this dialect."""
    return DialectError(refusal, dialect).body()


def sse_event(value: Json, pause: float = 0.0, *, named: bool = False, end: str = "\n") -> TimedFrame:
    """Return an event with this data; `named`: with its type as the name of the event; `end` is the end of a line."""
    head = f"event: {value['type']}{end}" if named else ""
    return TimedFrame(
        f"{head}data: {json.dumps(value, ensure_ascii=False)}{end}{end}".encode("utf-8", "replace"), pause
    )


@dataclass(frozen=True, slots=True)
class StrictRequest(ReceivedRequest):
    """A request that may send earlier reasoning back.

    `shows_reasoning`: the model's thoughts may be shown. `replayed` counts reasoning states that came back unchanged.
    `prefix` is a digest of everything before the answer; only Anthropic's dialect needs it.
    """

    shows_reasoning: bool = True
    replayed: int = 0
    prefix: Prefix | None = None


class StrictWriter(ChatWriter):
    """Writes answers in another dialect than Chat Completions."""

    dialect: Dialect
    question: StrictRequest

    def require_unbroken(self) -> None:
        with refusing_as(self.dialect):
            super().require_unbroken()


def require_tool_names(names: list[Any]) -> list[str]:
    """Check tool names as OpenAI and Anthropic do. Raises RequestError for a bad or repeated name."""
    for name in names:
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            raise bad_request(f"A tool's name must match {_TOOL_NAME.pattern}.")
    if len(set(names)) != len(names):
        raise bad_request("Tool names must be unique.")
    return names


@dataclass(frozen=True, slots=True)
class CallInHistory:
    """A call in the history."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class ResultInHistory:
    """The result of a call in the history."""

    call_id: str
    text: str


@dataclass(slots=True)
class HistoryTurn:
    """One message of the history."""

    role: Literal["user", "assistant", "results", "system"]
    text: str = ""
    pictures: list[ReceivedPicture] = field(default_factory=list[ReceivedPicture])
    calls: list[CallInHistory] = field(default_factory=list[CallInHistory])
    results: list[ResultInHistory] = field(default_factory=list[ResultInHistory])


def build_request(turns: list[HistoryTurn], *, stream: bool, tools: list[str], more: dict[str, Any]) -> StrictRequest:
    """Build the request from its history; its text is the last prompt. `more`: fields of the dialect.

    Raises RequestError if there are no messages.
    """
    if not turns:
        raise bad_request("There are no messages.", "missing_required_parameter")
    prompts = [index for index, turn in enumerate(turns) if turn.role == "user"]
    last = prompts[-1] if prompts else 0
    length = sum(len(turn.text) + sum(len(result.text) for result in turn.results) for turn in turns)
    return StrictRequest(
        stream=stream,
        text=turns[last].text,
        prompts=len(prompts),
        pictures=tuple(turns[last].pictures),
        tools=tuple(tools) or None,
        answered=tuple(_match_results(turns[last + 1 :])),
        length=length,
        **more,
    )


def _match_results(turns: list[HistoryTurn]) -> Iterator[AnsweredCall]:
    """Match calls with their results by id, in the order of the results."""
    calls: dict[str, CallInHistory] = {}
    for turn in turns:
        calls |= {call.id: call for call in turn.calls}
        for result in turn.results:
            call = calls.get(result.call_id)
            yield AnsweredCall(call.name if call else "", call.arguments if call else {}, result.text)
