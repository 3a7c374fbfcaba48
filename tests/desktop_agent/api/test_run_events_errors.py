"""From an event back to the error."""

import pytest

from desktop_agent.api.run_events import error_from_event
from desktop_agent.types.engine_events import ErrorOccurred
from desktop_agent.types.errors import (
    AgentError,
    CapabilityMissing,
    ImagesNotSupported,
    ProviderError,
    RateLimited,
    WrongUse,
)


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("slow down", status=429, detail="d", remedy="Wait."),
        WrongUse("No.", "Do."),
        ProviderError("odd", detail="d"),
        AgentError("Something."),
    ],
)
def test_an_error_of_the_same_kind_says_the_same(error: AgentError) -> None:
    restored = error_from_event(ErrorOccurred.of(error))
    assert type(restored) is type(error)
    assert (str(restored), restored.sentence, restored.remedy, restored.detail) == (
        str(error),
        error.sentence,
        error.remedy,
        error.detail,
    )


def test_the_remembered_error_is_taken_where_it_is_that_one() -> None:
    failure = ImagesNotSupported("No pictures.")
    assert error_from_event(ErrorOccurred.of(failure), failure) is failure
    other = error_from_event(ErrorOccurred.of(ImagesNotSupported("Something else.")), failure)
    assert type(other) is CapabilityMissing
    assert str(other) == "Something else."
