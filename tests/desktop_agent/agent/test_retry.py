"""What is asked again, after how long, and what is not."""

import math

import pytest

from desktop_agent.agent.retry import MAX_RETRY_AFTER, RetryPolicy, long_retry_remedy
from desktop_agent.providers.transport.error_responses import error_from_status
from desktop_agent.types import errors
from desktop_agent.types.engine_events import ErrorOccurred, RetryScheduled, RunEnd
from desktop_agent.types.errors import (
    AgentError,
    CapabilityMissing,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Truncated,
)
from desktop_agent.types.messages import MessageState
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Origin,
    ProviderEvent,
    ThinkingDelta,
    ToolArgsDelta,
)
from tests.fakes.agent_run import Desk, call
from tests.fakes.scripted_provider import Turn

ASKED_AGAIN = {
    errors.ConnectionFailed,
    errors.Truncated,
    errors.TimedOut,
    errors.RateLimited,
    errors.Overloaded,
    errors.ServerFailed,
    errors.Conflict,
}
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AgentError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_of_error_is_retried_or_not(kind: type[AgentError]) -> None:
    if not issubclass(kind, ProviderError):
        assert RetryPolicy().delay(AgentError("x"), 1) is None
        return
    assert (RetryPolicy().delay(kind("x"), 1) is not None) is (kind in ASKED_AGAIN)


@pytest.mark.parametrize(
    ("status", "body", "retried"),
    [
        (408, "", True),
        (409, "", True),
        (429, "", True),
        (500, "", True),
        (503, "", True),
        (529, '{"error":{"type":"overloaded_error"}}', True),
        (400, "", False),
        (401, "", False),
        (404, "", False),
        (422, "", False),
        (429, '{"error":{"type":"insufficient_quota"}}', False),
        (402, "", False),
        (413, "", False),
    ],
)
def test_each_http_status_is_retried_or_not(status: int, body: str, retried: bool) -> None:
    error = error_from_status(status, {}, body.encode())
    assert (RetryPolicy().delay(error, 1) is not None) is retried


def test_nobody_waits_for_an_empty_account() -> None:
    assert RetryPolicy().delay(QuotaExhausted("no credit", retryable=True, retry_after=1), 1) is None
    assert long_retry_remedy(QuotaExhausted("no credit", retryable=True, retry_after=1000)) is None


def test_waits_grow_are_spread_and_end() -> None:
    policy = RetryPolicy(attempts=9)
    for attempt, ceiling in [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (5, 8.0), (6, 8.0)]:
        waits = [policy.delay(Overloaded("busy"), attempt) for _ in range(50)]
        assert all(wait is not None and ceiling * 0.75 <= wait <= ceiling for wait in waits)
        assert len(set(waits)) > 10
    assert policy.delay(Overloaded("busy"), 9) is None


@pytest.mark.parametrize(
    ("hint", "wait"), [(0.2, 0.2), (7, 7), (MAX_RETRY_AFTER, MAX_RETRY_AFTER), (MAX_RETRY_AFTER + 1, None)]
)
def test_a_servers_hint_goes_first(hint: float, wait: float | None) -> None:
    assert RetryPolicy().delay(RateLimited("slow", retry_after=hint), 1) == wait


def test_a_hint_of_nothing_is_no_hint() -> None:
    wait = RetryPolicy().delay(RateLimited("slow", retry_after=0), 1)
    assert wait is not None
    assert wait > 0.3


@pytest.mark.parametrize(
    ("hint", "words"),
    [(300, "wait 5 minutes"), (6 * 3600, "wait 6 hours"), (1e9, "more than a week"), (math.inf, "more than a week")],
)
async def test_a_wait_that_is_left_to_the_person_is_said(hint: float, words: str) -> None:
    desk = Desk(Turn(RateLimited("later", retry_after=hint)))
    assert await desk.execute() is RunEnd.FAILED
    (error,) = desk.memory.of(ErrorOccurred)
    assert words in str(error.remedy)
    assert not desk.memory.of(RetryScheduled)
    # Callers of the library get the error itself.
    assert desk.run.error is not None
    assert desk.run.error.remedy == error.remedy


@pytest.mark.parametrize(
    "error", [RateLimited("slow", retry_after=2), CapabilityMissing("no"), QuotaExhausted("no", retry_after=900)]
)
def test_where_no_wait_is_asked_for_none_is_said(error: AgentError) -> None:
    assert long_retry_remedy(error) is None


START = AnswerStarted(Origin(provider="p"))


@pytest.mark.parametrize(
    ("events", "retried"),
    [
        ((START,), True),
        ((START, AnswerNamed("r")), True),
        ((START, ToolArgsDelta("1", "f", "{")), True),
        ((START, ContentDelta("H")), False),
        ((START, ThinkingDelta("H")), False),
        ((START, call("1", "f")), False),
    ],
    ids=["started", "named", "half a call", "text", "thinking", "call"],
)
async def test_only_before_the_first_content(events: tuple[ProviderEvent, ...], retried: bool) -> None:
    desk = Desk(Turn(*events, Truncated("cut")), *([Turn(ContentDelta("Hi"))] if retried else []))
    assert await desk.execute() is (RunEnd.COMPLETED if retried else RunEnd.FAILED)
    assert bool(desk.memory.of(RetryScheduled)) is retried
    desk.provider.assert_finished()
    if not retried:
        assert any(message.state is MessageState.INTERRUPTED for message in desk.memory.messages)
