"""Why a connection failed, in sentences that can be translated."""

import errno

from desktop_agent.api.run_events import error_from_event
from desktop_agent.providers.transport.connection_errors import error_from_connect
from desktop_agent.types.engine_events import ErrorOccurred
from desktop_agent.types.errors import ConnectionFailed, Sentence
from desktop_agent.types.providers import Timeouts


def test_the_reason_is_a_sentence_of_its_own() -> None:
    error = error_from_connect(ConnectionRefusedError(errno.ECONNREFUSED, ""), "a:1", Timeouts(), is_sent=False)
    assert isinstance(error, ConnectionFailed)
    assert error.cause == Sentence("nothing listens at {where}", {"where": "a:1"})
    assert error.message == "nothing listens at a:1"
    assert str(error.sentence) == "The model server could not be reached: nothing listens at a:1."
    assert error_from_event(ErrorOccurred.of(error)).sentence == error.sentence


def test_the_words_of_a_server_stay_as_they_are() -> None:
    assert ConnectionFailed("{busy}").cause == "{busy}"
