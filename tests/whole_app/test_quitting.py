"""The program is ended while the disk refuses to store: its exit code and its last line."""

import shutil
from pathlib import Path

import pytest

from tests.fakes.threaded_model_server import MODEL, ModelServer, Story, pieces_of
from tests.fakes.window_process import Program, Screen, wait_until


@pytest.mark.exhaustive("tests/ui/shell/test_closing.py::test_keeping_it_open_keeps_it_open_and_quitting_without_fails")
def test_quitting_without_saving_is_no_success(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ModelServer(Story(pieces_of("All is well."))) as server:
        running = Program(real_display, data, "--base-url", server.url, "--model", MODEL)
        screen = Screen(real_display, running.process.pid)
        try:
            wait_until("one can write", lambda: screen.find("Message"))
            screen.send("Before")
            wait_until("the answer comes", lambda: screen.last("Assistant said") == "All is well.")
            screen.wait_for("Send")
            shutil.rmtree(data)
            screen.send("precious")
            wait_until("it says so", lambda: "is gone: it was removed or moved" in screen.says())
            wait_until("the answer comes", lambda: len(server.streams) == 2 and server.streams[1].ended)
            screen.wait_for("Send")
            screen.close_by_key(lambda: screen.find("Quit without saving"))
            screen.press("Quit without saving")
            assert running.wait() == 1
        finally:
            screen.close()
            if running.process.poll() is None:
                running.kill()
    assert "“Before” could not be saved" in running.said
    assert "Traceback" not in running.said
