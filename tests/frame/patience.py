"""How long tests wait for a fact before they give up.

It only bounds a test that hangs: on an idle machine hardly any wait takes a hundredth of it, and no test measures speed
(`make bench` does). So one generous number serves all waits.
"""

from functools import partialmethod

import pytest
from pytestqt.qtbot import QtBot

PATIENCE = 120.0
"""Seconds."""
_MILLISECONDS = int(PATIENCE * 1000)


class PatientBot(QtBot):
    """A pytest-qt bot whose waits give up after PATIENCE, as all others do."""

    waitUntil = partialmethod(QtBot.waitUntil, timeout=_MILLISECONDS)  # noqa: N815 - pytest-qt's own name
    waitSignal = partialmethod(QtBot.waitSignal, timeout=_MILLISECONDS)  # noqa: N815 - pytest-qt's own name
    waitSignals = partialmethod(QtBot.waitSignals, timeout=_MILLISECONDS)  # noqa: N815 - pytest-qt's own name
    waitExposed = partialmethod(QtBot.waitExposed, timeout=_MILLISECONDS)  # noqa: N815 - pytest-qt's own name
    waitActive = partialmethod(QtBot.waitActive, timeout=_MILLISECONDS)  # noqa: N815 - pytest-qt's own name


@pytest.fixture
def qtbot(qapp: object, request: pytest.FixtureRequest) -> QtBot:
    """Return pytest-qt's bot with our patience; `qapp` is the application that it needs."""
    return PatientBot(request)
