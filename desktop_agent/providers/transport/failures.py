"""What a server's refusal means: status, headers and body to one error of the tree.

The order of trust: a specific word in the body (error code, type, Google's reason), then the HTTP status or a numeric
code in the body, then a general word. The text of a message never decides anything.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from desktop_agent.providers.transport.broken_lines import PROXY_AUTH_REQUIRED, proxy_auth_error
from desktop_agent.providers.transport.json_text import (
    dumps,
    is_array,
    is_object,
    loads,
    object_in,
    objects_in,
    repair_text,
)
from desktop_agent.providers.transport.sse import SseDecoder
from desktop_agent.vocabulary.errors import (
    AuthenticationFailed,
    Conflict,
    ConnectionFailed,
    ContextLengthExceeded,
    InvalidRequest,
    NotFound,
    Overloaded,
    PermissionRefused,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    TimedOut,
    TooLarge,
    ToolUseFailed,
    UnreadableAnswer,
)

MESSAGE_LIMIT = 1000
DETAIL_LIMIT = 4000
_MAX_ID_LENGTH = 200

# Our word for Google's QuotaFailure of a quota that is counted by the day: waiting a minute does not help.
_DAILY_QUOTA = "quota_per_day"

# Rows are tried in order; the first whose word stands anywhere in the body's codes, types and reasons wins.
_SPECIFIC_WORDS: tuple[tuple[type[ProviderError], frozenset[str]], ...] = (
    (ToolUseFailed, frozenset({"tool_use_failed"})),
    (
        ContextLengthExceeded,
        frozenset({"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"}),
    ),
    (
        QuotaExhausted,
        frozenset(
            {
                "insufficient_quota",
                "credit_balance_exhausted",
                "organization_spend_limit_exceeded",
                "project_spend_limit_exceeded",
                "organization_usage_limit_exceeded",
                "billing_error",
                "billing_not_active",
                "billing_hard_limit_reached",
                "enforced_spend_limit_reached",
                "contract_spend_limit_reached",
                "exceeded_current_quota_error",
                "payment_required",
                "arrearage",
                _DAILY_QUOTA,
            }
        ),
    ),
    (
        AuthenticationFailed,
        frozenset(
            {
                "invalid_api_key",
                "authentication_error",
                "unauthenticated",
                "api_key_invalid",
                "invalid_authentication_error",
                "incorrect_api_key_error",
                "invalidapikey",
            }
        ),
    ),
    (
        PermissionRefused,
        frozenset(
            {
                "permission_error",
                "permission_denied",
                "unsupported_country_region_territory",
                "request_forbidden",
                "organization_on_hold",
            }
        ),
    ),
    (TooLarge, frozenset({"request_too_large", "payload_too_large"})),
    (NotFound, frozenset({"model_not_found", "not_found_error", "not_found"})),
    (
        Overloaded,
        frozenset(
            {
                "server_is_overloaded",
                "service_unavailable_error",
                "overloaded_error",
                "unavailable_error",
                "unavailable",
                "service_unavailable",
                "engine_overloaded_error",
                "capacity_exceeded",
            }
        ),
    ),
    (
        RateLimited,
        frozenset(
            {
                "rate_limit_exceeded",
                "rate_limit_error",
                "slow_down",
                "resource_exhausted",
                "rate_limit_reached_error",
                "rate_limited",
                "too_many_requests",
                "throttling",
                "throttling.ratequota",
            }
        ),
    ),
    (TimedOut, frozenset({"timeout_error", "deadline_exceeded", "request_timeout", "vector_store_timeout"})),
    (Conflict, frozenset({"conflict_error"})),
    # What was asked, or what the model began to say, is withheld: the same again would be, too.
    (
        InvalidRequest,
        frozenset(
            {
                "sensitive",
                "content_filter",
                "content_policy_violation",
                "responsibleaipolicyviolation",
                "data_inspection_failed",
                "datainspectionfailed",
            }
        ),
    ),
    (ServerFailed, frozenset({"network_error"})),
)
# Z.AI and BigModel name their errors by a number and nothing else (docs.z.ai/api-reference/api-code). Elsewhere the
# same numbers mean other things, and stand beside a word: with Mistral 1300 is a limit of rate.
_ZAI_CODES: dict[str, type[ProviderError]] = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), AuthenticationFailed),
    **dict.fromkeys(("1113", "1304", "1308", "1309", "1310"), QuotaExhausted),
    **dict.fromkeys(("1110", "1112", "1121", "1220", "1311"), PermissionRefused),
    "1211": NotFound,
    "1234": ServerFailed,
    "1261": ContextLengthExceeded,
    "1301": InvalidRequest,
    **dict.fromkeys(("1302", "1303", "1305"), RateLimited),
    "1312": Overloaded,
}
# platform.minimax.io/docs/api-reference/errorcode, by words that others use.
_MINIMAX_CODES = {1002: "rate_limit_exceeded", 1004: "invalid_api_key", 1008: "insufficient_quota"}
# A Responses stream that failed says only this about what was sent (openai SDK, ResponseError.code).
_REFUSED_INPUT = frozenset(
    {
        "invalid_prompt",
        "data_residency_mismatch",
        "bio_policy",
        "misalignment_policy_violation",
        "invalid_encrypted_content",
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "invalid_image_url",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "image_content_policy_violation",
        "invalid_image_mode",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
        "failed_to_download_image",
        "image_file_not_found",
    }
)
_GENERAL_WORDS: tuple[tuple[type[ProviderError], frozenset[str]], ...] = (
    (
        InvalidRequest,
        frozenset({"invalid_request_error", "invalid_argument", "failed_precondition", "badrequesterror"}),
    ),
    (InvalidRequest, _REFUSED_INPUT),
    (ServerFailed, frozenset({"server_error", "api_error", "internal", "internal_server_error"})),
)
_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    402: QuotaExhausted,
    403: PermissionRefused,
    404: NotFound,
    405: NotFound,
    408: TimedOut,
    409: Conflict,
    410: NotFound,
    413: TooLarge,
    429: RateLimited,
    434: PermissionRefused,  # Z.AI: an interface that this account has no part in
    435: TooLarge,  # Z.AI: a file
    498: Overloaded,  # Groq's own: no capacity for the flex tier (console.groq.com/docs/errors)
    499: ServerFailed,  # nginx's and Google's own: whoever asked has gone, and that was a gateway before the server
    503: Overloaded,
    504: TimedOut,
    511: UnreadableAnswer,  # a network that wants a person to sign in first (RFC 6585)
    # Cloudflare's own, about the server behind it: down, slow to connect, not found, slow to answer, no TLS.
    521: ConnectionFailed,
    522: TimedOut,
    523: ConnectionFailed,
    524: TimedOut,
    525: ConnectionFailed,
    526: ConnectionFailed,
    529: Overloaded,
    # What proxies say of silence behind them.
    598: TimedOut,
    599: TimedOut,
}
_RETRY_STATUSES = frozenset({408, 409, 429})
_MESSAGE_FIELDS = ("message", "msg", "status_msg", "errmsg", "error_msg")
# Beside one of these stands an answer, or an event with a type of its own.
_RESPONSE_FIELDS = ("choices", "candidates", "type", "object", "output", "content", "delta", "usageMetadata")
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-generation-id", "x-goog-request-id", "apim-request-id")
_NOT_RETRYABLE = (QuotaExhausted, AuthenticationFailed, PermissionRefused, ContextLengthExceeded, UnreadableAnswer)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_FIELD_OF_A_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What a body says, before it becomes an error. `param` is the field that it complains about, if it says so."""

    message: str = ""
    words: frozenset[str] = frozenset()
    code: int | None = None
    param: str = ""
    retry_after: float | None = None
    request_id: str | None = None


def error_from_status(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error for an HTTP answer of 400 or above; `headers` have lower-case names."""
    if status == PROXY_AUTH_REQUIRED:
        return proxy_auth_error()
    refusal = parse_error_body(body)
    message = refusal.message or _plain_text(body) or f"HTTP {status}"
    kind = _error_class(refusal.words, status)
    return kind(
        message[:MESSAGE_LIMIT],
        status=status,
        retry_after=retry_after(headers) if refusal.retry_after is None else refusal.retry_after,
        retryable=_is_retryable(kind, status, headers.get("x-should-retry", "")),
        request_id=request_id(headers) or refusal.request_id,
        detail=f"HTTP {status}\n{repair_text(body[:DETAIL_LIMIT].decode('utf-8', 'replace'))}".strip(),
    )


def error_from_stream(data: Any, headers: Mapping[str, str]) -> ProviderError:
    """The error for an object that came in the middle of a stream of status 200."""
    refusal = parse_error(data)
    kind = _error_class(refusal.words, refusal.code)
    return kind(
        (refusal.message or "the stream carried an error without a message")[:MESSAGE_LIMIT],
        status=refusal.code,
        retry_after=refusal.retry_after,
        request_id=request_id(headers) or refusal.request_id,
        detail=dumps(data)[:DETAIL_LIMIT].decode("utf-8", "replace"),
    )


def has_error(error: Any) -> bool:
    """Whether what stands under `error` says anything: gateways write one of zeros and empty words beside text."""
    if is_object(error) or is_array(error):
        return any(map(has_error, error.values() if is_object(error) else error))
    return bool(error)


def is_bare_error(data: Any) -> bool:
    """Whether an object is an error in a shape of its own, beside which no dialect says anything.

    `{"code", "message"}`, Cloudflare's `{"success": false, "errors"}` (developers.cloudflare.com/api), and MiniMax's
    `base_resp`, which stands beside answers too, with status 0 (platform.minimax.io, Error Codes).
    """
    if not is_object(data):
        return False
    for name in _RESPONSE_FIELDS:  # no generator: this is asked of every piece of an answer
        if data.get(name):
            return False
    if has_error(object_in(data, "base_resp").get("status_code")) or has_error(data.get("errors")):
        return True
    return data.get("success") is False or any(data.get(n) and isinstance(data[n], str) for n in _MESSAGE_FIELDS)


def error_from_listing(body: bytes) -> ProviderError:
    """For a success that lists no models: what it says, in whatever shape an error has, or that nobody can read it."""
    try:
        data = loads(body)
    except ValueError:
        data = None
    said: Any = data[0] if is_array(data) and data else data
    if is_object(said) and has_error(said.get("error")):
        return error_from_stream(said, {})
    if is_object(said) and (
        "error" in (said.get("object"), said.get("type")) or said.get("detail") or is_bare_error(said)
    ):
        error = error_from_stream(said, {})
        if type(error) is not ServerFailed or error.status is not None:
            return error
        # It may be how a server says that it has no listing.
        return UnreadableAnswer(error.message, detail=error.detail)
    return not_a_model_server_error({}, body[:200].decode("utf-8", "replace"))


def error_words(error: ProviderError) -> frozenset[str]:
    """Every word of the server's message, and the field that it named as `param`."""
    param = re.search(r'"param"\s*:\s*"([^"]+)"', error.detail)
    return frozenset(re.findall(r"\w+", f"{error.message} {param[1] if param else ''}"))


def not_a_model_server_error(headers: Mapping[str, str], start: str) -> UnreadableAnswer:
    """For a success that is no event stream and no JSON: a login page, a proxy's greeting."""
    if "html" in headers.get("content-type", "") or start.lstrip()[:1] == "<":
        return UnreadableAnswer("it sent a web page", detail=start[:200])
    return UnreadableAnswer("it sent text that no model server sends", detail=start[:200])


def redirect_error(status: int, target_host: str) -> UnreadableAnswer:
    """For a 3xx: the key is not carried to another address."""
    where = f"it points to another address, at {target_host}" if target_host else "it points to another address"
    remedy = "If you trust that address, use it as this server's base URL."
    return UnreadableAnswer(where, status=status, retryable=False, remedy=remedy)


def starts_event_stream(body: bytes) -> bool:
    """Whether bytes begin like an event stream, however they are labelled."""
    return _FIELD_OF_A_STREAM.match(body) is not None


def may_start_event_stream(body: bytes) -> bool:
    """Whether too little came to say whether an event stream begins."""
    start = body.lstrip()
    return any(mark.startswith(start.removeprefix(_BYTE_ORDER_MARK)) for mark in _FIELDS) or (
        _BYTE_ORDER_MARK.startswith(start)
    )


def parse_error_body(body: bytes) -> ErrorBody:
    """The same for bytes; a body that is neither JSON nor an event stream says nothing."""
    if starts_event_stream(body):
        decoder = SseDecoder()
        frames = [*decoder.feed(body), *decoder.finish()]
        return next((parse_error(data) for _, data in frames if is_object(data)), ErrorBody())
    try:
        return parse_error(loads(body)) if body.strip() else ErrorBody()
    except ValueError:
        return ErrorBody()


def parse_error(data: Any) -> ErrorBody:
    """Find message, words and code in any of the shapes that servers use."""
    if is_array(data):
        return parse_error(data[0]) if data else ErrorBody()
    if isinstance(data, str):
        return ErrorBody(message=repair_text(data))
    if not is_object(data):
        return ErrorBody()
    # Gateways forward Anthropic's body, which names the request, but not its headers.
    named = data.get("request_id")
    found = _find_error(data)
    return replace(found, request_id=repair_text(named[:_MAX_ID_LENGTH])) if isinstance(named, str) and named else found


def _find_error(data: dict[str, Any]) -> ErrorBody:
    error = data.get("error")
    if (is_object(error) or is_array(error)) and error:
        inner = parse_error(error)
        return inner if inner.message else _parse_flat(data, inner)
    if isinstance(error, str) and error:
        return _parse_flat({**data, "message": error}, ErrorBody())
    others = objects_in(data, "errors")
    return _parse_flat(
        data, _parse_flat(others[0], ErrorBody()) if others else _parse_minimax(object_in(data, "base_resp"))
    )


def _parse_minimax(status: dict[str, Any]) -> ErrorBody:
    code = status.get("status_code")
    return _parse_flat({**status, "code": _MINIMAX_CODES.get(code) if isinstance(code, int) else None}, ErrorBody())


def _parse_flat(data: dict[str, Any], inner: ErrorBody) -> ErrorBody:
    """One level: {message, type, code, status, param, detail, details}."""
    reasons = objects_in(data, "details")
    # Anthropic's finer word stands beside its general one.
    finer = object_in(data, "details").get("error_code")
    named = [
        data.get("code"),
        data.get("type"),
        data.get("status"),
        *(reason.get("reason") for reason in reasons),
        finer,
    ]
    message = next(filter(None, map(data.get, _MESSAGE_FIELDS)), None) or _fastapi_detail(data.get("detail"))
    param = data.get("param")
    return ErrorBody(
        message=repair_text(message if isinstance(message, str) else dumps(message).decode())
        if message
        else inner.message,
        words=inner.words | {word.lower() for word in named if isinstance(word, str)} | _daily_quota_words(reasons),
        code=_http_status(data.get("code")) or _http_status(data.get("status")) or inner.code,
        param=param if isinstance(param, str) else "",
        retry_after=next(filter(None, (_duration(reason.get("retryDelay")) for reason in reasons)), None),
    )


def _daily_quota_words(reasons: list[dict[str, Any]]) -> set[str]:
    """google.rpc.QuotaFailure names its quotas by id, such as GenerateRequestsPerDayPerProjectPerModel."""
    ids = [str(each.get("quotaId")) for reason in reasons for each in objects_in(reason, "violations")]
    return {_DAILY_QUOTA} if any("PerDay" in each for each in ids) else set()


def _fastapi_detail(detail: Any) -> Any:
    """FastAPI's shape: a sentence, or a list of {loc, msg}."""
    if not is_array(detail):
        return detail
    lines = [
        f"{'.'.join(str(part) for part in entry.get('loc') or ())}: {entry.get('msg')}"
        for entry in detail
        if is_object(entry)
    ]
    return "; ".join(lines) or None


def _http_status(value: Any) -> int | None:
    """An HTTP status written as a number or as digits."""
    if isinstance(value, str) and value.isdecimal() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 400 <= value <= 599 else None


def _error_class(words: Iterable[str], status: int | None) -> type[ProviderError]:
    said = frozenset(words)
    if len(said) == 1 and (numbered := _ZAI_CODES.get(next(iter(said)))) is not None:
        return numbered
    for kind, row in _SPECIFIC_WORDS:
        if said & row:
            return kind
    if status is not None:
        return _BY_STATUS.get(status, InvalidRequest if status < 500 else ServerFailed)
    for kind, row in _GENERAL_WORDS:
        if said & row:
            return kind
    return ServerFailed


def _is_retryable(kind: type[ProviderError], status: int, asked: str) -> bool:
    if issubclass(kind, _NOT_RETRYABLE) or (kind is InvalidRequest and status >= 500):
        return False
    if asked.lower() in ("true", "false"):
        return asked.lower() == "true"
    return kind.retry_by_default or status in _RETRY_STATUSES or status >= 500


def _plain_text(body: bytes) -> str:
    """A short sentence that a server sent without any JSON; web pages say nothing that a person wants to read."""
    text = repair_text(body[:400].decode("utf-8", "replace")).strip()
    return "" if not text or text[0] in "<{[" or len(text) > 200 else " ".join(text.split())


def request_id(headers: Mapping[str, str]) -> str | None:
    """What the provider's support wants to know."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if name in headers), None)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: `retry-after-ms`, else `retry-after` as seconds or an HTTP date (RFC 9110, section 10.2.3)."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value) * scale
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _duration(value: Any) -> float | None:
    """Google's "12.5s"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)s", value) if isinstance(value, str) else None
    return float(found[1]) if found else None
