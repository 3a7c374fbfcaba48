"""Whether the screen is locked: what is not known for sure counts as locked."""

import pytest

from tests.fakes.notification_server import notification_server
from ui.bridge.desktop.screen_lock import is_screen_unlocked


@pytest.mark.parametrize(
    ("saver", "logind", "is_unlocked"),
    [
        ("unlocked", None, True),
        (None, "unlocked", True),
        ("unlocked", "unlocked", True),
        ("locked", None, False),
        (None, "locked", False),
        ("unlocked", "locked", False),
        ("locked", "unlocked", False),
        (None, None, False),
    ],
)
def test_it_is_unlocked_only_if_somebody_says_so_and_nobody_the_contrary(in_loop, bus, saver, logind, is_unlocked):
    with notification_server(bus, lock=saver, logind=logind):
        assert in_loop(is_screen_unlocked()) is is_unlocked


def test_without_a_bus_it_counts_as_locked(in_loop, monkeypatch):
    for name in ("SESSION", "SYSTEM"):
        monkeypatch.setenv(f"DBUS_{name}_BUS_ADDRESS", "unix:path=/nowhere/at/all")
    assert in_loop(is_screen_unlocked()) is False
