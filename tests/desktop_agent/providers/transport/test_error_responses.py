import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from desktop_agent.providers.transport.error_responses import (
    error_from_status,
    error_from_stream,
    error_words,
    has_error,
    is_bare_error,
    not_a_model_server_error,
)
from desktop_agent.types.errors import InvalidRequest, TimedOut
from tests.fakes.recordings import RECORDINGS

ROWS = json.loads((RECORDINGS / "http_errors.json").read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['protocol']}-{row['name']}")
def test_recorded_errors(row: dict) -> None:
    error = error_from_status(row["status"], row["headers"], row["body"].encode())
    actual = {"kind": error.kind, "message": error.message, "retry": error.retryable}
    assert actual == row["expect"]
    assert error.status == row["status"]
    ids = [row["headers"].get(name) for name in ("x-request-id", "request-id")]
    ids += re.findall(r'"request_id":\s*"(\w+)"', row["body"])
    assert error.request_id == next(filter(None, ids), None)


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (500, b"", "server", "HTTP 500"),
        (502, b"<html><h1>Bad Gateway</h1></html>", "server", "HTTP 502"),
        (404, b"404 page not found\n", "not_found", "404 page not found"),
        (400, b'[{"error":{"code":400,"message":"arr","status":"INVALID_ARGUMENT"}}]', "invalid_request", "arr"),
        (400, b'{"code":"invalid-argument","error":"string error"}', "invalid_request", "string error"),
        (400, b"{\"error\":\"'type' must be 'json_schema'\"}", "invalid_request", "'type' must be 'json_schema'"),
        (422, b'{"detail":[{"loc":["body","top_p"],"msg":"No.","input":{}}]}', "invalid_request", "body.top_p: No."),
        (401, b'{"detail":"Not authenticated"}', "auth", "Not authenticated"),
        (400, b'{"error":{"message":"m","type":"x","code":"tool_use_failed"}}', "tool_use_failed", "m"),
        (429, b'{"error":{"message":"m","type":"insufficient_quota","code":"rate_limit_exceeded"}}', "quota", "m"),
        (
            400,
            b'{"error":{"type":"x","message":"m","details":{"error_code":"organization_on_hold"}}}',
            "permission",
            "m",
        ),
        (
            400,
            b'{"error":{"type":"x","message":"m","details":{"error_code":"tool_name_conflict"}}}',
            "invalid_request",
            "m",
        ),
        (402, b'{"error":{"message":"m","details":{"error_code":"linked_organization_suspended"}}}', "quota", "m"),
        (504, b"", "timeout", "HTTP 504"),
        (498, b'{"error":{"message":"m","type":"flex","code":"capacity_exceeded"}}', "overloaded", "m"),
        (498, b"", "overloaded", "HTTP 498"),
        (499, b"", "server", "HTTP 499"),
        (511, b"", "unreadable", "HTTP 511"),
        (520, b"", "server", "HTTP 520"),
        (521, b"error code: 521", "connection", "error code: 521"),
        (522, b"", "timeout", "HTTP 522"),
        (523, b"", "connection", "HTTP 523"),
        (524, b"", "timeout", "HTTP 524"),
        (529, b"", "overloaded", "HTTP 529"),
        (598, b"", "timeout", "HTTP 598"),
        (429, b'{"error":{"code":"1113","message":"m"}}', "quota", "m"),
        (429, b'{"error":{"code":"1302","message":"m"}}', "rate_limit", "m"),
        (400, b'{"error":{"code":"1301","message":"m"}}', "invalid_request", "m"),
        (400, b'{"error":{"code":"1261","message":"m"}}', "context_length", "m"),
        (401, b'{"error":{"code":"1113","type":"other","message":"m"}}', "auth", "m"),
        (429, b'{"object":"error","message":"m","type":"rate_limited","code":"1300"}', "rate_limit", "m"),
        (500, b'{"error":{"code":"network_error","message":"m"}}', "server", "m"),
        (500, b'{"error":{"code":"sensitive","message":"m"}}', "invalid_request", "m"),
        (400, b'{"error":{"code":"data_inspection_failed","message":"m"}}', "invalid_request", "m"),
        (400, b'{"error":{"code":"Arrearage","message":"m"}}', "quota", "m"),
        (429, b'{"error":{"type":"engine_overloaded_error","message":"m"}}', "overloaded", "m"),
        (429, b'{"error":{"type":"exceeded_current_quota_error","message":"m"}}', "quota", "m"),
        (418, b"", "invalid_request", "HTTP 418"),
        (500, b"\xff\xfe not text \x00" + b"x" * 500, "server", "HTTP 500"),
        (400, b'{"error":{"message":["a"]}}', "invalid_request", '["a"]'),
        (400, b'{"error":{"error":{"message":"deep"}}}', "invalid_request", "deep"),
        (400, b"{broken", "invalid_request", "HTTP 400"),
        (400, b'{"error":{"message":"\\ud83d!"}}', "invalid_request", "\ufffd!"),
    ],
)
def test_other_bodies(status: int, body: bytes, kind: str, message: str) -> None:
    error = error_from_status(status, {}, body)
    assert (error.kind, error.message) == (kind, message)
    str(error).encode()


def test_messages_are_bounded() -> None:
    error = error_from_status(400, {}, json.dumps({"error": {"message": "x" * 100_000}}).encode())
    assert len(error.message) == 1000
    assert len(error.detail) < 5000


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "30", "retry-after": "9"}, 0.03),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "121"}, 121.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "Wed, 21 Oct 2015 07:27:50 GMT"}, 10.0),
        ({"retry-after": "Wed, 21 Oct 2115 07:28:00 GMT", "date": "Wed, 21 Oct 2115 07:29:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "today"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert error_from_status(429, headers, b"").retry_after == seconds


def test_retry_after_as_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    seconds = error_from_status(503, {"retry-after": later}, b"").retry_after
    assert seconds is not None
    assert 3500 < seconds <= 3600
    assert error_from_status(503, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"").retry_after == 0


def test_google_says_it_in_the_body() -> None:
    body = {
        "error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m", "details": [{"retryDelay": "12.5s"}]}
    }
    assert error_from_status(429, {}, json.dumps(body).encode()).retry_after == 12.5


def test_a_delay_of_google_counts_without_a_message() -> None:
    body = {"error": {"code": 429, "details": [{"retryDelay": "7s"}]}}
    assert error_from_status(429, {}, json.dumps(body).encode()).retry_after == 7


@pytest.mark.parametrize(("header", "retry"), [("true", True), ("false", False)])
def test_the_server_may_decide_about_retries(header: str, retry: bool) -> None:
    assert error_from_status(400, {"x-should-retry": header}, b"").retryable is retry
    assert error_from_status(500, {"x-should-retry": header}, b"").retryable is retry


@pytest.mark.parametrize(
    ("code", "kind", "retry"),
    [
        ("enforced_spend_limit_reached", "quota", False),
        ("contract_spend_limit_reached", "quota", False),
        ("ramp_limit_exceeded", "rate_limit", True),
    ],
)
def test_finer_words_of_a_rate_limit(code: str, kind: str, retry: bool) -> None:
    error = {"type": "rate_limit_error", "message": "m", "details": {"error_code": code}}
    result = error_from_status(429, {"x-should-retry": "true"}, json.dumps({"type": "error", "error": error}).encode())
    assert (result.kind, result.retryable) == (kind, retry)


def test_asking_again_never_pays_a_bill() -> None:
    body = b'{"error":{"message":"m","type":"insufficient_quota"}}'
    assert not error_from_status(429, {"x-should-retry": "true"}, body).retryable


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ({"error": {"message": "Compute error."}, "message": "Compute error."}, "server", "Compute error."),
        ({"error": {"code": 502, "message": "gone"}}, "server", "gone"),
        ({"error": {"code": "429", "type": "None", "message": "slow"}}, "rate_limit", "slow"),
        ({"object": "error", "message": "flat", "type": "BadRequestError", "code": 400}, "invalid_request", "flat"),
        ({"error": "words"}, "server", "words"),
        ([{"error": {"message": "arr", "status": "UNAVAILABLE"}}], "overloaded", "arr"),
        ({"error": {}}, "server", "the stream carried an error without a message"),
    ],
)
def test_errors_in_a_stream(data: object, kind: str, message: str) -> None:
    error = error_from_stream(data, {"x-request-id": "r"})
    assert (error.kind, error.message, error.request_id) == (kind, message, "r")


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "auth", "login fail"),
        ({"choices": None, "base_resp": {"status_code": 1002, "status_msg": "slow"}}, "rate_limit", "slow"),
        ({"code": 503, "message": "busy"}, "overloaded", "busy"),
        ({"code": 1, "msg": "no such model"}, "server", "no such model"),
        ({"success": False, "errors": [{"code": 7, "message": "No route"}], "messages": []}, "server", "No route"),
    ],
)
def test_errors_of_shapes_of_their_own(data: dict, kind: str, message: str) -> None:
    assert is_bare_error(data)
    error = error_from_stream(data, {})
    assert (error.kind, error.message) == (kind, message)


@pytest.mark.parametrize(
    "data",
    [
        {"choices": [{"delta": {}}], "base_resp": {"status_code": 0, "status_msg": "success"}},
        {"type": "message_start", "message": {"id": "m"}},
        {"message": {"role": "assistant", "content": "hi"}, "done": False},
        {"usageMetadata": {"promptTokenCount": 1}, "message": "x"},
        {"base_resp": {"status_code": 0, "status_msg": ""}, "id": "1"},
        [{"message": "x"}],
        {},
    ],
)
def test_what_is_part_of_an_answer_is_no_error(data: object) -> None:
    assert not is_bare_error(data)


@pytest.mark.parametrize("error", [None, "", 0, {}, [], {"code": 0, "message": ""}, {"code": None, "details": [{}]}])
def test_an_error_that_says_nothing_is_none(error: object) -> None:
    assert not has_error(error)
    assert has_error({"error": error, "code": 500})


def test_named_words_read_message_and_param() -> None:
    body = b'{"error":{"message":"Unsupported parameter.","param":"stream_options","type":"invalid_request_error"}}'
    error = error_from_status(400, {}, body)
    assert isinstance(error, InvalidRequest)
    assert "stream_options" in error_words(error)


def test_pages_are_not_models() -> None:
    assert "web page" in str(not_a_model_server_error({"content-type": "text/html"}, ""))
    assert "web page" in str(not_a_model_server_error({}, " <!doctype html>"))
    assert "base URL" in str(not_a_model_server_error({}, "OK").remedy)


def test_a_request_named_only_in_the_body_is_kept_for_support() -> None:
    body = b'{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"req_1"}'
    assert error_from_status(500, {}, body).request_id == "req_1"
    assert error_from_status(500, {"request-id": "req_2"}, body).request_id == "req_2"
    assert error_from_stream({"error": {"message": "m"}, "request_id": "req_3"}, {}).request_id == "req_3"
    assert error_from_status(500, {}, b'{"error":{"message":"m"},"request_id":7}').request_id is None


@pytest.mark.parametrize(
    ("status", "body", "again"),
    [
        *[(status, b"", True) for status in (498, 499, 520, 521, 522, 523, 524, 529, 598)],
        (511, b"", False),
        (500, b'{"error":{"code":"sensitive"}}', False),
        (400, b'{"error":{"code":"network_error"}}', True),
        (429, b'{"error":{"code":"1113"}}', False),
    ],
)
def test_what_gateways_say_is_asked_again_where_that_may_help(status: int, body: bytes, again: bool) -> None:
    error = error_from_status(status, {}, body)
    assert error.retryable is again
    # A gateway's time-out is an answer: not one of ours.
    assert not (isinstance(error, TimedOut) and error.is_after_sending)


@pytest.mark.parametrize("nested", ['{"error":' * 700 + "1" + "}" * 700, "[" * 950 + "1" + "]" * 950])
def test_an_error_that_is_nested_deeply_is_an_error_all_the_same(nested: str) -> None:
    assert error_from_status(400, {}, nested.encode()).status == 400
    assert error_from_stream(json.loads(nested[:9_000]), {}).kind == "server"
    assert has_error(json.loads(nested))


def test_what_a_server_says_wrongly_about_its_error_is_left_out() -> None:
    body = b'{"detail":[{"loc":5,"msg":"too long"}]}'
    assert error_from_status(422, {}, body).message == ": too long"
    for date in ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2020 00:00:00 +9999999999999999999999"):
        assert error_from_status(429, {"retry-after": date}, b"{}").retry_after is None
