"""The icon in the tray of a desktop, in a separate process, and closing the window to it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.notification_server import NotificationServer, notification_server
from tests.fakes.tray_host import TrayHost, tray_host
from tests.fakes.window_process import NO_TITLES, Program, Screen, opened, wait_until
from tests.frame import displays


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A display with its own bus, so that the program cannot find another tray."""
    with displays.readable_display(tmp_path_factory.mktemp("display")) as environment:
        yield environment


@pytest.fixture
def tray(environment: dict[str, str]) -> Iterator[TrayHost]:
    with tray_host(environment) as tray:
        yield tray


@pytest.fixture
def notifications(environment: dict[str, str]) -> Iterator[NotificationServer]:
    with notification_server(environment, "actions", "body") as server:
        yield server


def data_folder(tmp_path: Path, **chat: object) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "preferences.json").write_text(json.dumps({"chat": {**NO_TITLES["chat"], **chat}}))
    return data


def leave_waiting(screen: Screen) -> None:
    screen.wait_for("Message")
    screen.send("write a file")
    screen.close_dialog("Approve tool call")


@contextmanager
def started_in_background(environment: dict[str, str], data: Path) -> Iterator[tuple[Program, Screen]]:
    program = Program(environment, data, "--demo", "--background")
    screen = Screen(environment, program.process.pid)
    try:
        yield program, screen
        assert program.wait() == 0
        assert program.unexpected == []
    finally:
        screen.close()
        if program.process.poll() is None:
            program.kill()


def test_a_start_in_the_background_waits_in_the_tray_whose_icon_says_what_waits_and_leads_to_the_window(
    environment: dict[str, str], tray: TrayHost, tmp_path: Path
) -> None:
    data = data_folder(tmp_path)
    with started_in_background(environment, data) as (_, screen):
        wait_until("there is an icon", lambda: tray.icons == 1)
        assert not screen.has_window()
        again = Program(environment, data, "--background")
        assert again.wait() == 0
        assert not screen.has_window()
        assert tray.menu == ["Show", "New conversation", "Quick question", "Waiting approvals", "Quit"]
        assert tray.tooltip == "Desktop Agent"
        tray.choose("Show")
        leave_waiting(screen)
        wait_until("it counts", lambda: tray.menu[3] == "Waiting approvals: 1")
        assert tray.tooltip.splitlines() == [
            "Desktop Agent",
            "The model is working.",
            "Calls that wait for you: 1",
        ]
        tray.choose("Waiting approvals: 1")
        screen.close_dialog("Waiting approvals")
        tray.choose("New conversation")
        screen.wait_for("New conversation — Desktop Agent", "frame")
        # A call waits in the other conversation.
        tray.choose("Quit")
        screen.press("Keep open")
        screen.wait_gone("Keep open")
        tray.choose("Quit")
        screen.press("Close")
        wait_until("the icon goes", lambda: tray.icons == 0)


def test_closing_to_the_tray_is_a_choice_that_is_explained_once(
    environment: dict[str, str], tray: TrayHost, notifications: NotificationServer, tmp_path: Path
) -> None:
    data = data_folder(tmp_path, close_to_tray=True)
    with opened(environment, data, "--demo") as (program, screen):
        wait_until("there is an icon", lambda: tray.icons == 1)
        screen.wait_for("Message")
        screen.close_by_key(lambda: not screen.has_window())
        wait_until("it is said where the window went", lambda: notifications.shown)
        assert "goes on" in notifications.shown[0][2]
        assert program.process.poll() is None
        tray.click()
        screen.wait_for("Message")
        leave_waiting(screen)
        # Nothing is asked: the work goes on.
        screen.close_by_key(lambda: not screen.has_window())
        tray.choose("Show")
        screen.wait_for("Message")
        assert sum("goes on" in text for _, _, text, _ in notifications.shown) == 1
        screen.close_by_key(lambda: not screen.has_window())
        tray.choose("Quit")
        screen.press("Close")
        assert program.wait() == 0


def test_without_a_tray_a_start_in_the_background_is_minimised_and_closing_ends_the_program(
    environment: dict[str, str], tmp_path: Path
) -> None:
    data = data_folder(tmp_path, close_to_tray=True)
    with started_in_background(environment, data) as (program, screen):
        wait_until("there is a minimised window", lambda: is_minimised(environment))
        again = Program(environment, data)
        assert again.wait() == 0
        screen.wait_for("Message")
        # A setting that cannot work is not offered.
        screen.keys("ctrl+comma")
        screen.press("Chat")
        screen.wait_for("Notifications")
        assert screen.find("Close to the tray") is None
        screen.close_dialog("Settings")
        screen.close_by_key(lambda: program.process.poll() is not None)


def is_minimised(environment: dict[str, str]) -> bool:
    result = subprocess.run(
        [displays.program("xdotool"), "search", "--name", "Desktop Agent$"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    states = [
        subprocess.run(
            [displays.program("xprop"), "-id", number, "_NET_WM_STATE"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for number in result.stdout.split()
    ]
    return any("_NET_WM_STATE_HIDDEN" in state for state in states)
