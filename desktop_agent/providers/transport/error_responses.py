"""Map an error response (status, headers, body) to one of our errors.

What counts first: a specific word in the body, then the HTTP status or a numeric code, then a general word. The text of
a message never decides anything.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

from desktop_agent.data_files import load_table
from desktop_agent.providers.transport.connection_errors import PROXY_AUTH_REQUIRED, proxy_auth_error
from desktop_agent.providers.transport.json_codec import (
    array_in,
    dumps,
    is_array,
    is_object,
    loads_or_none,
    object_in,
    objects_in,
    repair_text,
    text_in,
)
from desktop_agent.providers.transport.sse import SseDecoder
from desktop_agent.types import errors
from desktop_agent.types.errors import (
    AuthenticationFailed,
    ContextLengthExceeded,
    InvalidRequest,
    KeyRequired,
    PermissionRefused,
    ProviderError,
    QuotaExhausted,
    Sentence,
    ServerFailed,
    UnreadableAnswer,
)

# Our word for Google's QuotaFailure of a quota that is counted by the day; see error_codes.toml.
DAILY_QUOTA = "quota_per_day"
MESSAGE_LIMIT = 1000
DETAIL_LIMIT = 4000
_MAX_ID_LENGTH = 200
_MAX_ERROR_LEVELS = 20

_RETRY_STATUSES = frozenset({408, 409, 429})
_MESSAGE_FIELDS = ("message", "msg", "status_msg", "errmsg", "error_msg")
# An object with one of these is an answer, or an event with a type of its own.
_RESPONSE_FIELDS = ("choices", "candidates", "type", "object", "output", "content", "delta", "usageMetadata")
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-generation-id", "x-goog-request-id", "apim-request-id")
_NOT_RETRYABLE = (QuotaExhausted, AuthenticationFailed, PermissionRefused, ContextLengthExceeded, UnreadableAnswer)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_FIELD_OF_A_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")


@cache
def _error_codes() -> dict[str, Any]:
    """Return the tables of error_codes.toml. Numbers are strings there, as TOML's keys are."""
    return load_table(__name__, "error_codes.toml")


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The content of an error body."""

    message: str = ""
    words: frozenset[str] = frozenset()
    code: int | None = None
    retry_after: float | None = None
    request_id: str | None = None


def error_from_status(status: int, headers: Mapping[str, str], body: bytes, *, has_key: bool = True) -> ProviderError:
    """Return the error for an HTTP answer of 400 or above; `headers` have lower-case names. `has_key`: one was sent."""
    if status == PROXY_AUTH_REQUIRED:
        return proxy_auth_error()
    error_body = parse_error_body(body)
    message = error_body.message or _plain_text(body) or f"HTTP {status}"
    kind = _error_class(error_body.words, status)
    if kind is AuthenticationFailed and not has_key:
        kind = KeyRequired
    return kind(
        message[:MESSAGE_LIMIT],
        status=status,
        retry_after=retry_after(headers) if error_body.retry_after is None else error_body.retry_after,
        retryable=_is_retryable(kind, status, headers.get("x-should-retry", "")),
        request_id=request_id(headers) or error_body.request_id,
        detail=f"HTTP {status}\n{repair_text(body[:DETAIL_LIMIT].decode('utf-8', 'replace'))}".strip(),
    )


def error_from_stream(data: Any, headers: Mapping[str, str]) -> ProviderError:
    """Return the error for an object in the middle of a stream of status 200."""
    error_body = parse_error(data)
    kind = _error_class(error_body.words, error_body.code)
    return kind(
        error_body.message[:MESSAGE_LIMIT] or Sentence("the stream carried an error without a message"),
        status=error_body.code,
        retry_after=error_body.retry_after,
        request_id=request_id(headers) or error_body.request_id,
        detail=dumps(data)[:DETAIL_LIMIT].decode("utf-8", "replace"),
    )


def has_error(error: Any) -> bool:
    """Whether `error` has content: gateways write one of zeros and empty strings beside text."""
    stack = [error]
    while stack:
        value = stack.pop()
        if is_object(value):
            stack.extend(value.values())
        elif is_array(value):
            stack.extend(value)
        elif value:
            return True
    return False


def is_bare_error(data: Any) -> bool:
    """Whether an object is an error in a shape of its own, without content of any dialect.

    `{"code", "message"}`, Cloudflare's `{"success": false, "errors"}` (developers.cloudflare.com/api), and MiniMax's
    `base_resp`, which also accompanies answers, with status 0 (platform.minimax.io, Error Codes).
    """
    if not is_object(data):
        return False
    for name in _RESPONSE_FIELDS:  # no generator: this runs for every piece of an answer
        if data.get(name):
            return False
    if has_error(object_in(data, "base_resp").get("status_code")) or has_error(data.get("errors")):
        return True
    return data.get("success") is False or any(data.get(n) and isinstance(data[n], str) for n in _MESSAGE_FIELDS)


def error_from_listing(body: bytes) -> ProviderError:
    """Return the error for a success status without a list of models: what it reports, or that it is unreadable."""
    data = loads_or_none(body)
    entry: Any = data[0] if is_array(data) and data else data
    if is_object(entry) and has_error(entry.get("error")):
        return error_from_stream(entry, {})
    if is_object(entry) and (
        "error" in (entry.get("object"), entry.get("type")) or entry.get("detail") or is_bare_error(entry)
    ):
        error = error_from_stream(entry, {})
        if type(error) is not ServerFailed or error.status is not None:
            return error
        # The server may have no listing.
        return UnreadableAnswer(error.cause, detail=error.detail)
    return not_a_model_server_error({}, body[:200].decode("utf-8", "replace"))


def error_words(error: ProviderError) -> frozenset[str]:
    """Return all words of the server's message, and the field that it named as `param`."""
    param = re.search(r'"param"\s*:\s*"([^"]+)"', error.detail)
    return frozenset(re.findall(r"\w+", f"{error.message} {param[1] if param else ''}"))


def not_a_model_server_error(headers: Mapping[str, str], start: str) -> UnreadableAnswer:
    """Return the error for a success status without event stream or JSON: a login page, a proxy's greeting."""
    if "html" in headers.get("content-type", "") or start.lstrip()[:1] == "<":
        return UnreadableAnswer(Sentence("it sent a web page"), detail=start[:200])
    return UnreadableAnswer(Sentence("it sent text that no model server sends"), detail=start[:200])


def redirect_error(status: int, target_host: str) -> UnreadableAnswer:
    """Return the error for a 3xx: the key is not sent to another address."""
    sentence = Sentence("it points to another address")
    if target_host:
        sentence = Sentence("it points to another address, at {host}", {"host": target_host})
    remedy = "If you trust that address, use it as this server's base URL."
    return UnreadableAnswer(sentence, status=status, retryable=False, remedy=remedy)


def starts_event_stream(body: bytes) -> bool:
    """Whether bytes begin like an event stream, whatever their declared type."""
    return _FIELD_OF_A_STREAM.match(body) is not None


def may_start_event_stream(body: bytes) -> bool:
    """Whether too little was received to decide whether an event stream begins."""
    start = body.lstrip()
    return any(mark.startswith(start.removeprefix(_BYTE_ORDER_MARK)) for mark in _FIELDS) or (
        _BYTE_ORDER_MARK.startswith(start)
    )


def parse_error_body(body: bytes) -> ErrorBody:
    """Parse an error from bytes; a body that is neither JSON nor an event stream is empty."""
    if starts_event_stream(body):
        decoder = SseDecoder()
        frames = [*decoder.feed(body), *decoder.finish()]
        return next((parse_error(data) for _, data in frames if is_object(data)), ErrorBody())
    return parse_error(loads_or_none(body))


def parse_error(data: Any, levels: int = _MAX_ERROR_LEVELS) -> ErrorBody:
    """Find message, words and code in any of the shapes that servers use, at most `levels` deep."""
    if levels == 0:
        return ErrorBody()
    if is_array(data):
        return parse_error(data[0], levels - 1) if data else ErrorBody()
    if isinstance(data, str):
        return ErrorBody(message=repair_text(data))
    if not is_object(data):
        return ErrorBody()
    # Gateways forward Anthropic's body, which names the request, but not its headers.
    request_id = data.get("request_id")
    body = _find_error(data, levels)
    return (
        replace(body, request_id=repair_text(request_id[:_MAX_ID_LENGTH]))
        if isinstance(request_id, str) and request_id
        else body
    )


def _find_error(data: dict[str, Any], levels: int) -> ErrorBody:
    error = data.get("error")
    if (is_object(error) or is_array(error)) and error:
        inner = parse_error(error, levels - 1)
        return inner if inner.message else _parse_flat(data, inner)
    if isinstance(error, str) and error:
        return _parse_flat({**data, "message": error})
    entries = objects_in(data, "errors")
    return _parse_flat(data, _parse_flat(entries[0]) if entries else _parse_minimax(object_in(data, "base_resp")))


def _parse_minimax(status: dict[str, Any]) -> ErrorBody:
    code = status.get("status_code")
    return _parse_flat({**status, "code": _error_codes()["minimax"].get(str(code)) if isinstance(code, int) else None})


def _parse_flat(data: dict[str, Any], inner: ErrorBody = ErrorBody()) -> ErrorBody:
    """Parse one level: {message, type, code, status, detail, details}."""
    reasons = objects_in(data, "details")
    # Anthropic adds a finer word to its general one.
    finer = object_in(data, "details").get("error_code")
    named = [*map(data.get, ("code", "type", "status")), *(reason.get("reason") for reason in reasons), finer]
    message = next(filter(None, map(data.get, _MESSAGE_FIELDS)), None) or _fastapi_detail(data.get("detail"))
    return ErrorBody(
        message=repair_text(message if isinstance(message, str) else dumps(message).decode())
        if message
        else inner.message,
        words=inner.words | {word.lower() for word in named if isinstance(word, str)} | _daily_quota_words(reasons),
        code=_http_status(data.get("code")) or _http_status(data.get("status")) or inner.code,
        retry_after=next(filter(None, (_duration(reason.get("retryDelay")) for reason in reasons)), inner.retry_after),
    )


def _daily_quota_words(reasons: list[dict[str, Any]]) -> set[str]:
    """Look for daily quotas: google.rpc.QuotaFailure names them like GenerateRequestsPerDayPerProjectPerModel."""
    ids = [text_in(violation, "quotaId") for reason in reasons for violation in objects_in(reason, "violations")]
    return {DAILY_QUOTA} if any("PerDay" in violation for violation in ids) else set()


def _fastapi_detail(detail: Any) -> Any:
    """Return FastAPI's detail: a sentence, or a list of {loc, msg} joined."""
    if not is_array(detail):
        return detail
    lines = [
        f"{'.'.join(map(str, array_in(entry, 'loc')))}: {entry.get('msg')}" for entry in detail if is_object(entry)
    ]
    return "; ".join(lines) or None


def _http_status(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 400 <= value <= 599 else None


def _error_class(words: frozenset[str], status: int | None) -> type[ProviderError]:
    return getattr(errors, _error_name(words, status))


def _error_name(words: frozenset[str], status: int | None) -> str:
    codes = _error_codes()
    if len(words) == 1 and (by_number := codes["zai"].get(next(iter(words)))) is not None:
        return by_number
    for row in codes["specific"]:
        if not words.isdisjoint(row["words"]):
            return row["error"]
    if status is not None:
        return codes["statuses"].get(str(status), "InvalidRequest" if status < 500 else "ServerFailed")
    return next((row["error"] for row in codes["general"] if not words.isdisjoint(row["words"])), "ServerFailed")


def _is_retryable(kind: type[ProviderError], status: int, wish: str) -> bool:
    if issubclass(kind, _NOT_RETRYABLE) or (kind is InvalidRequest and status >= 500):
        return False
    if wish.lower() in ("true", "false"):
        return wish.lower() == "true"
    return kind.retry_by_default or status in _RETRY_STATUSES or status >= 500


def _plain_text(body: bytes) -> str:
    """Return a short sentence that a server sent without JSON; web pages have nothing to show."""
    text = repair_text(body[:400].decode("utf-8", "replace")).strip()
    return "" if not text or text[0] in "<{[" or len(text) > 200 else " ".join(text.split())


def request_id(headers: Mapping[str, str]) -> str | None:
    """Return the request id that the provider's support asks for."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if name in headers), None)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds to wait: `retry-after-ms`, or `retry-after` as seconds or a date (RFC 9110, section 10.2.3)."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value) * scale
    moment = _http_date(headers.get("retry-after", ""))
    if moment is None:
        return None
    # The server's own clock counts: this machine's may be wrong.
    present = _http_date(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (moment - present).total_seconds())


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # no date, or one beyond all years
        return None


def _duration(value: Any) -> float | None:
    """Parse Google's durations, such as "12.5s"."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)s", value) if isinstance(value, str) else None
    return float(match[1]) if match else None
