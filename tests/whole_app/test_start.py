"""Starting and ending: without a screen, twice, by closing, by a signal."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.threaded_model_server import MODEL, ModelServer, Story, numbered
from tests.fakes.window_process import Program, alive, opened, wait_until
from tests.frame.displays import program
from tests.frame.patience import PATIENCE

COMMAND = [sys.executable, "-m", "ui"]


def window_box(environment: dict[str, str], name: str) -> list[int]:
    """Return the position and size of a window on the X server."""
    result = subprocess.run(
        [program("xdotool"), "search", "--onlyvisible", "--name", name, "getwindowgeometry", "--shell"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    values = dict(line.split("=") for line in result.stdout.split())
    return [int(values[key]) for key in ("X", "Y", "WIDTH", "HEIGHT")]


def hands(environment: dict[str, str], *words: str) -> None:
    subprocess.run([program("xdotool"), *words], env=environment, check=True, timeout=PATIENCE)


def test_without_a_display_it_says_so_in_one_sentence(real_display: dict[str, str], tmp_path: Path) -> None:
    blind = {name: value for name, value in real_display.items() if name not in {"DISPLAY", "QT_QPA_PLATFORM"}}
    command = [*COMMAND, "--data-dir", str(tmp_path)]
    run = subprocess.run(command, env=blind, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("Desktop Agent needs a screen, and there is none")
    assert run.stderr.count("\n") == 1


def test_a_display_that_is_gone_is_no_crash(real_display: dict[str, str], tmp_path: Path) -> None:
    missing = {**real_display, "DISPLAY": ":4242"}
    command = [*COMMAND, "--data-dir", str(tmp_path)]
    run = subprocess.run(command, env=missing, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 2
    assert "Desktop Agent needs a screen" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_version_needs_no_display() -> None:
    run = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0
    assert run.stdout.startswith("desktop-agent 0")


@pytest.mark.exhaustive(
    "tests/ui/bridge/test_single_instance.py::test_the_second_start_raises_the_first",
    "tests/whole_app/test_links.py::test_a_link_opens_the_first_window_and_the_next_one_comes_to_it",
)
def test_a_second_start_raises_the_first(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    other = opened(real_display, tmp_path / "other", "--demo")
    with opened(real_display, data, "--demo") as (first, screen), other as (_, covering):
        wait_until("the other window is in front", lambda: is_active(covering))
        (tmp_path / "link").symlink_to(data)
        second = Program(real_display, tmp_path / "link")
        assert second.wait() == 0
        [said] = second.unexpected
        assert said.startswith(f"Desktop Agent is already open (process {first.process.pid} since 2")
        assert said.endswith("; its window comes to the front.")
        wait_until("the first window is in front", lambda: is_active(screen))
        assert not is_active(covering)


def is_active(screen) -> bool:
    return any(node["role"] == "frame" and "active" in node["states"] for node in screen.tree())


def test_closing_the_window_ends_all_and_the_next_is_where_it_was(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(real_display, data, "--demo") as (first, screen):
        screen.wait_for("Message")
        screen.write("Message", "not sent yet")
        before = window_box(real_display, "Desktop Agent")
        name = "New conversation — Desktop Agent"
        # The window is shown before its first conversation gives it a name.
        hands(
            real_display,
            "search",
            "--sync",
            "--name",
            name,
            "windowsize",
            "--sync",
            "900",
            "640",
            "windowmove",
            "77",
            "99",
        )

        def moved_to() -> list[int]:
            box = window_box(real_display, "Desktop Agent")
            return box if box[2:] == [900, 640] and box[:2] != before[:2] else []

        moved = wait_until("it moved", moved_to)
        children = first.children()
        screen.close_by_key(lambda: first.process.poll() is not None)
        assert first.wait() == 0
        assert [pid for pid in children if alive(pid)] == []
        assert not alive(first.process.pid)
    with opened(real_display, data, "--demo") as (_, screen):
        wait_until("the draft is back", lambda: screen.last("Message") == "not sent yet")
        wait_until("it is where it was", lambda: window_box(real_display, "Desktop Agent") == moved)


@pytest.mark.exhaustive(
    "tests/ui/test_start.py::test_a_signal_at_any_moment_of_the_start_ends_it_in_order",
    "tests/whole_app/test_driver.py::test_stop_keeps_what_came_and_a_restart_shows_it, and SIGTERM ends most windows",
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order_in_the_middle_of_an_answer(
    real_display: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    data = tmp_path / "data"
    with (
        ModelServer(Story(numbered(), pace=0.005)) as server,
        opened(real_display, data, "--base-url", server.url, "--model", MODEL) as (running, screen),
    ):
        screen.send("story")
        wait_until("text is shown", lambda: "w20" in screen.last("Assistant said"))
        on_screen = screen.last("Assistant said")
        children = running.children()
        os.kill(running.process.pid, number)
        assert running.wait() == 0
        assert [pid for pid in children if alive(pid)] == []
        assert wait_until("the connection closes", lambda: server.streams[0].gone_at)
    with opened(real_display, data) as (_, screen):
        screen.wait_for("Assistant said")
        kept = screen.last("Assistant said")
        assert kept.startswith(on_screen[:-10])
        assert kept.endswith("Not finished")
        assert "showing" in screen.wait_for("Send")["states"]


@pytest.mark.exhaustive(
    "tests/ui/shell/test_window.py::test_closing_while_working_asks_once",
    "tests/whole_app/test_tray.py::test_closing_to_the_tray_is_a_choice_that_is_explained_once, which asks the same",
)
def test_closing_while_the_model_works_asks_once(real_display: dict[str, str], tmp_path: Path) -> None:
    with ModelServer(Story(numbered(), pace=0.01)) as server:
        arguments = ("--base-url", server.url, "--model", MODEL)
        with opened(real_display, tmp_path / "data", *arguments) as (running, screen):
            screen.send("story")
            screen.wait_for("Assistant said")
            screen.close_by_key(lambda: screen.find("Keep working"))
            screen.wait_says("The model is still working.", "Closing stops the model. The answer so far is kept.")
            screen.press("Keep working")
            screen.wait_gone("Keep working")
            grown = len(screen.last("Assistant said"))
            wait_until("it goes on", lambda: len(screen.last("Assistant said")) > grown)
            screen.close_by_key(lambda: screen.find("Stop and close"))
            screen.press("Stop and close")
            assert running.wait() == 0
