"""Calls are decided in notifications of the whole program, behind another window."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from desktop_agent.storage.store import Store
from desktop_agent.types.messages import Message
from tests.fakes.notification_server import NotificationServer, notification_server
from tests.fakes.threaded_model_server import MODEL, Asked, ModelServer, Plain
from tests.fakes.window_process import NO_TITLES, Screen, opened, wait_until
from tests.frame import displays
from tests.frame.patience import PATIENCE
from tests.whole_app.test_notifications import in_front
from ui.shell.desktop.call_notifications import HAND_SECONDS

ARGUMENTS = {"path": "a.txt", "content": "Hello"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with displays.readable_display(tmp_path_factory.mktemp("display")) as environment:
        yield environment


@pytest.fixture(scope="module")
def server(environment: dict[str, str]) -> Iterator[NotificationServer]:
    with notification_server(environment, "actions", "body", "body-markup") as server:
        yield server


class Model:
    """Answers each prompt with a call, once `may_answer` is released, and the call's result with a word."""

    def __init__(self) -> None:
        self.may_answer = threading.Semaphore(0)

    def __call__(self, request: Asked) -> Plain:
        messages = request.json["messages"]
        if messages[-1]["role"] == "tool":
            delta, reason = {"content": "Well."}, "stop"
        else:
            self.may_answer.acquire(timeout=PATIENCE)
            function = {"name": "write_file", "arguments": json.dumps(ARGUMENTS)}
            calls = [{"index": 0, "id": f"call_{len(messages)}", "function": function}]
            delta, reason = {"tool_calls": calls}, "tool_calls"
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        body = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()
        return Plain(body, headers={"content-type": "text/event-stream"})


def prepare(data: Path, work: Path, url: str) -> None:
    """Store a conversation that works in a folder, with the model at this address."""
    data.mkdir(mode=0o700)
    work.mkdir()
    providers = {"endpoints": [{"id": "e", "title": "E", "base_url": url}], "endpoint_id": "e", "model": MODEL}
    (data / "preferences.json").write_text(json.dumps({**NO_TITLES, "providers": providers}))

    async def store() -> None:
        opened_store = await Store.open(data)
        record = await opened_store.create_conversation(
            title="Boats", endpoint_id="e", model=MODEL, workspace=str(work)
        )
        await opened_store.commit(record.id, Message.user("Hello"), Message.assistant("Hi."))
        await opened_store.close()

    asyncio.run(store())


@contextmanager
def waiting_call(screen: Screen, server: NotificationServer, model: Model) -> Iterator[int]:
    """A call that waits in a conversation that is not open, behind another window; yield its notification's number."""
    screen.press(screen.wait_line("Boats, "))
    screen.wait_for("Boats — Desktop Agent", "frame")
    screen.send("write a file")
    screen.new_conversation()
    before = len(server.calls)
    with in_front(server.environment, screen):
        model.may_answer.release()
        wait_until("it is notified", lambda: len(server.calls) > before)
        number, title, text, _ = server.calls[-1]
        assert title == "Boats"
        assert text == "A call waits for your approval:\nWrite a file: a.txt · content: Hello"
        assert server.offered == ["Show", "Deny", "Allow once"]
        yield number


def wait_done(server: NotificationServer, count: int) -> None:
    """Wait until so many notifications have said that an answer is done."""
    done = "The answer is done."
    wait_until(f"{count} answers are done", lambda: [shown[2] for shown in server.shown].count(done) == count)


def test_a_call_is_denied_shown_and_allowed_from_its_notification(server: NotificationServer, tmp_path: Path) -> None:
    data, work, model = tmp_path / "data", tmp_path / "work", Model()
    with ModelServer(model) as address:
        prepare(data, work, address.url)
        with opened(server.environment, data) as (_, screen):
            screen.wait_says("Hi.")
            with waiting_call(screen, server, model) as number:
                server.lock(is_locked=True)
                server.click(number, "allow")
                wait_until("it is shown anew", lambda: server.offered == ["Show", "Deny"])
                server.lock(is_locked=False)
                server.click(server.calls[-1][0], "deny")
                wait_done(server, 1)
            with waiting_call(screen, server, model) as number:
                server.click(number, "default")
                screen.wait_for("Approve tool call", "dialog")
            wait_until("Deny can be pressed", lambda: "enabled" in screen.wait_for("Deny")["states"])
            screen.press("Deny")
            screen.wait_gone("Approve tool call", "dialog")
            screen.wait_for("Send")
            assert list(work.iterdir()) == []
            with waiting_call(screen, server, model):

                def allow() -> bool:
                    # An earlier click is not taken as a decision, and the notification is shown again.
                    time.sleep(HAND_SECONDS)
                    server.click(server.calls[-1][0], "allow")
                    return (work / "a.txt").exists()

                wait_until("it is written", allow)
                wait_done(server, 2)


@pytest.mark.exhaustive(
    "tests/ui/shell/desktop/test_call_notifications.py::test_a_call_is_shown_with_its_decisions_and_allowed_once"
)
def test_a_call_of_the_open_conversation_leaves_the_keyboard_with_the_program_in_front(
    server: NotificationServer, tmp_path: Path
) -> None:
    data, work, model = tmp_path / "data", tmp_path / "work", Model()
    with ModelServer(model) as address:
        prepare(data, work, address.url)
        with opened(server.environment, data) as (_, screen):
            screen.wait_says("Hi.")
            screen.press(screen.wait_line("Boats, "))
            screen.wait_for("Boats — Desktop Agent", "frame")
            for is_allowed in (True, False):
                screen.send("write a file")
                before = len(server.calls)
                with in_front(server.environment, screen):
                    model.may_answer.release()
                    wait_until("it is notified", lambda before=before: len(server.calls) > before)
                    time.sleep(HAND_SECONDS)
                    assert screen.active_window() == "Event Tester"
                    number = server.calls[-1][0]
                    if is_allowed:
                        server.click(number, "allow")
                        wait_until("it is written", (work / "a.txt").exists)
                        screen.wait_for("Send")
            # The person comes back and is asked at once.
            screen.wait_for("Approve tool call", "dialog")
            wait_until("the notification goes", lambda: number in server.closed)
