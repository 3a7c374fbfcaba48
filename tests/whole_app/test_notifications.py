"""The desktop's notifications, shown by a real server on its own bus."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.threaded_model_server import MODEL, ModelServer, Plain, Story
from tests.fakes.window_process import Screen, opened, wait_until
from tests.frame import displays

TITLE = "Is <b>3 < 4</b> & true?"

# Dunst runs this for each notification that it shows, with the program's name, the title and the text.
SCRIPT = """#!/usr/bin/env python3
import json, sys
with open({file!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:4]) + "\\n")
"""
CONFIGURATION = """
[global]
markup = full
timeout = 0
[all]
summary = *
script = {script}
"""


class Server:
    """Dunst, and the notifications that it got."""

    def __init__(self, environment: dict[str, str], shown: Path) -> None:
        self.environment = environment
        self._shown = shown

    @property
    def shown(self) -> list[list[str]]:
        lines = self._shown.read_text().splitlines() if self._shown.exists() else []
        return [json.loads(line) for line in lines]

    def wait_shown(self, count: int) -> list[list[str]]:
        return wait_until(f"{count} notifications", lambda: self.shown[count - 1 :] and self.shown)

    @property
    def waiting(self) -> int:
        """How many notifications are on the screen."""
        return int(self._ask("count", "displayed"))

    def click(self) -> None:
        """Do what a click on the newest notification does."""
        self._ask("action")

    def _ask(self, *words: str) -> str:
        command = [displays.program("dunstctl"), *words]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Dunst on its own bus: on a shared one D-Bus itself starts a Dunst as soon as any window notifies."""
    folder = tmp_path_factory.mktemp("notifications")
    shown, script, configuration = folder / "shown", folder / "script.py", folder / "dunstrc"
    script.write_text(SCRIPT.format(file=str(shown)))
    script.chmod(0o700)
    configuration.write_text(CONFIGURATION.format(script=script))
    command = [displays.program("dunst"), "-conf", str(configuration)]
    with (
        displays.readable_display(tmp_path_factory.mktemp("display")) as environment,
        displays.running(command, environment) as process,
    ):
        displays.wait_for_name("org.freedesktop.Notifications", environment, process)
        yield Server(environment, shown)


@contextmanager
def in_front(environment: dict[str, str], screen: Screen) -> Iterator[None]:
    """Show another window with the keyboard, and wait until the program knows that it has lost the keyboard."""
    with displays.running([displays.program("xev")], environment):
        wait_until("another window is in front", lambda: screen.active_window() == "Event Tester")
        wait_until("the program knows", lambda: "active" not in (screen.find("", "frame") or {"states": ()})["states"])
        yield


def connected(server: ModelServer) -> tuple[str, ...]:
    return ("--base-url", server.url, "--model", MODEL)


@pytest.mark.exhaustive(
    "tests/whole_app/test_call_notifications.py::test_a_call_is_denied_shown_and_allowed_from_its_notification",
    "tests/ui/shell/desktop/test_notifications.py::test_behind_another_window_it_is_said_what_happens_unless_that_is_off",
    "tests/ui/shell/desktop/test_notifications.py::test_a_click_on_it_leads_to_its_conversation",
)
def test_an_answer_behind_another_window_is_notified_and_a_click_leads_to_it(server: Server, tmp_path: Path) -> None:
    gate = threading.Event()

    def words() -> Iterator[str]:
        yield "half "
        gate.wait(60)
        yield "whole"

    environment = server.environment
    with (
        ModelServer(lambda _: Story(words())) as model,
        opened(environment, tmp_path / "data", *connected(model)) as (_, screen),
    ):
        screen.wait_for("Message")
        screen.send(TITLE)
        screen.wait_says("half")
        with in_front(environment, screen):
            gate.set()
            ((program, title, text),) = server.wait_shown(1)
            assert (program, title, text) == ("Desktop Agent", TITLE, "The answer is done.")
            server.click()
            wait_until("the window is in front", lambda: screen.active_window().endswith("Desktop Agent"))
        # A person who sees the conversation needs no notification any more.
        wait_until("the notification goes", lambda: server.waiting == 0)
        _in_view_nothing_is_said(screen, server)


def _in_view_nothing_is_said(screen: Screen, server: Server) -> None:
    before = len(server.shown)
    screen.send("And now?")
    wait_until("the second answer is there", lambda: len(screen.texts("Assistant said")) == 2)
    screen.wait_for("Send")
    assert len(server.shown) == before


@pytest.mark.exhaustive(
    "tests/ui/shell/desktop/test_notifications.py::test_behind_another_window_it_is_said_what_happens_unless_that_is_off"
)
def test_switched_off_nothing_is_notified(server: Server, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "preferences.json").write_text(json.dumps({"chat": {"notifications": False}}))
    gate = threading.Event()

    def words() -> Iterator[str]:
        yield "half "
        gate.wait(60)
        yield "whole"

    before = len(server.shown)
    with (
        ModelServer(lambda _: Story(words())) as model,
        opened(server.environment, data, *connected(model)) as (_, screen),
    ):
        screen.wait_for("Message")
        screen.send("Quiet, please")
        screen.wait_says("half")
        with in_front(server.environment, screen):
            gate.set()
            screen.wait_says("half whole")
            screen.wait_for("Send")
        assert len(server.shown) == before


@pytest.mark.exhaustive(
    "tests/ui/shell/desktop/test_notifications.py::test_behind_another_window_it_is_said_what_happens_unless_that_is_off"
)
def test_a_call_that_waits_behind_another_window_is_notified(server: Server, tmp_path: Path) -> None:
    before = len(server.shown)
    with opened(server.environment, tmp_path / "data", "--demo") as (_, screen):
        screen.wait_for("Message")
        with in_front(server.environment, screen):
            screen.write("Message", "write a file")
            screen.press("Send")
            *_, shown = server.wait_shown(before + 1)
            assert shown[:2] == ["Desktop Agent", "write a file"]
            assert shown[2].startswith("A call waits for your approval:\nWrite a file: ")


QUESTION = {"question": "Which colour?", "choices": ["Red", "Blue"]}
ASKS = {"index": 0, "id": "call_1", "function": {"name": "ask_user", "arguments": json.dumps(QUESTION)}}
ASKED = {"index": 0, "delta": {"tool_calls": [ASKS]}, "finish_reason": "tool_calls"}


@pytest.mark.exhaustive(
    "tests/ui/shell/desktop/test_notifications.py::test_behind_another_window_it_is_said_what_happens_unless_that_is_off"
)
def test_a_question_behind_another_window_is_notified(server: Server, tmp_path: Path) -> None:
    before = len(server.shown)
    body = f"data: {json.dumps({'choices': [ASKED]})}\n\ndata: [DONE]\n\n".encode()
    answer = Plain(body, headers={"content-type": "text/event-stream"})
    with (
        ModelServer(lambda _: answer) as model,
        opened(server.environment, tmp_path / "data", *connected(model)) as (_, screen),
    ):
        screen.wait_for("Message")
        with in_front(server.environment, screen):
            screen.write("Message", "Paint it")
            screen.press("Send")
            *_, shown = server.wait_shown(before + 1)
            assert shown == ["Desktop Agent", "Paint it", "A question waits for your answer."]
        screen.press("Skip")


@pytest.mark.exhaustive(
    "tests/ui/shell/desktop/test_notifications.py::test_behind_another_window_it_is_said_what_happens_unless_that_is_off"
)
def test_what_nobody_saw_is_unread_also_after_a_restart_until_it_is_looked_at(server: Server, tmp_path: Path) -> None:
    environment, data = server.environment, tmp_path / "data"

    def marks(screen: Screen) -> list[str]:
        rows = [node["name"] for node in screen.tree() if node["role"] == "list item"]
        return [name for name in rows if "unread" in name]

    with ModelServer(lambda _: Story(["an answer"])) as model:
        with opened(environment, data, *connected(model)) as (_, screen):
            screen.wait_for("Message")
            with in_front(environment, screen):
                screen.write("Message", "Nobody looks")
                screen.press("Send")
                wait_until("it is marked, though it is open", lambda: marks(screen))
                screen.press("New conversation")
                wait_until("another one is open", lambda: not screen.texts("Assistant said"))
        with opened(environment, data, *connected(model)) as (_, screen):
            wait_until("it is still marked", lambda: marks(screen))
            screen.click(marks(screen)[0])
            wait_until("who looks at it has read it", lambda: screen.texts("Assistant said") and not marks(screen))
