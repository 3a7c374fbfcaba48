"""Steps that many tests need, by keys alone or by the accessible tree alone."""

import pytest

from tests.fakes.window_process import Screen, wait_until


def step_to(screen: Screen, key: str, beginning: str) -> None:
    """Press a key until the focus is on a widget whose name begins so."""
    for _ in range(30):
        previous = screen.focused()
        if any(name.startswith(beginning) for name in previous):
            return
        screen.keys(key)
        wait_until(f"{key} moves the focus", lambda previous=previous: screen.focused() != previous)
    pytest.fail(f"{key} does not lead to {beginning!r}, but to {screen.focused()}")


def go_to_row(screen: Screen, title: str) -> None:
    screen.keys("ctrl+shift+f")
    screen.wait_focus("Search conversations")
    screen.keys("Down")
    screen.wait_focus("Conversations")
    screen.keys("Home")
    step_to(screen, "Down", f"{title}, ")


def choose_by_keys(screen: Screen, action: str, menu: str = "Menu: Conversation") -> None:
    """Choose an action in the context menu of the focused widget."""
    screen.keys("Menu")
    screen.wait_for(menu, "popup menu")
    step_to(screen, "Down", action)
    screen.keys("Return")


def command_by_keys(screen: Screen, command: str) -> None:
    screen.keys("ctrl+k")
    screen.wait_focus("Commands")
    screen.type(command)
    screen.wait_line(command)
    screen.keys("Return")


def choose(screen: Screen, title: str, action: str) -> None:
    """Open a conversation and choose an action in its menu, by the accessible tree alone."""
    screen.press(screen.wait_line(f"{title}, "))
    screen.wait_for(f"{title} — Desktop Agent", "frame")
    screen.focus("Conversations")
    screen.press("Menu: Conversation")
    screen.press(action)


def command(screen: Screen, name: str) -> None:
    screen.press("Commands")
    screen.wait_for("Commands", "list")
    screen.write("Commands", name)
    screen.press(screen.wait_line(name))
