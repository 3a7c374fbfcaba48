"""A worker that outlives what its jobs do."""

import pytest

from ui.transcript.workshop import Workshop


@pytest.fixture
def workshop(qapp):
    made = Workshop()
    yield made
    made.close()


def test_a_job_that_raises_ends_alone(workshop, qtbot, caplog):
    told = []

    def fail():
        raise ValueError("words of the conversation")

    workshop.do("a", fail, told.append)
    workshop.do("b", lambda: 2, told.append)
    qtbot.waitUntil(lambda: told == [2])
    assert not workshop.is_busy
    workshop.do("a", lambda: 1, told.append)
    qtbot.waitUntil(lambda: told == [2, 1])
    (record,) = caplog.records
    assert "ValueError" in record.getMessage()
    assert "test_workshop.py" in record.getMessage()
    assert "conversation" not in caplog.text
