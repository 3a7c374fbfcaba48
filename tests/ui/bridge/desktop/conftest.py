import os
import sys

import pytest

from tests.fakes.qt_loop import in_loop
from tests.frame import displays

__all__ = ["in_loop"]


@pytest.fixture
def bus(monkeypatch):
    """Return an environment with a bus of its own, and let this process use it too."""
    if sys.platform != "linux":
        pytest.skip("D-Bus is on Linux")
    with displays.session_bus(os.environ) as environment:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", environment["DBUS_SESSION_BUS_ADDRESS"])
        # Where there is a logind, it must not be asked.
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", environment["DBUS_SESSION_BUS_ADDRESS"])
        yield environment
