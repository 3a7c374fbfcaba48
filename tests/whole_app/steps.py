"""What a person does again and again, by keys alone or by the accessible tree alone."""

import pytest

from tests.fakes.window_process import Screen, wait_until


def step_to(screen: Screen, key: str, beginning: str) -> None:
    """Press a key until the keyboard is at what has a name with this beginning."""
    for _ in range(30):
        before = screen.focused()
        if any(name.startswith(beginning) for name in before):
            return
        screen.keys(key)
        wait_until(f"{key} leads on", lambda before=before: screen.focused() != before)
    pytest.fail(f"{key} does not lead to {beginning!r}, but to {screen.focused()}")


def go_to_row(screen: Screen, title: str) -> None:
    screen.keys("ctrl+shift+f")
    screen.wait_focus("Search conversations")
    screen.keys("Down")
    screen.wait_focus("Conversations")
    screen.keys("Home")
    step_to(screen, "Down", f"{title}, ")


def choose_by_keys(screen: Screen, action: str, menu: str = "Menu: Conversation") -> None:
    """In the menu of what has the keyboard."""
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
    """Open it, and choose in its menu by the tree alone."""
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
