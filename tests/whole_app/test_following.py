"""The window and `ask` on one data folder: the window follows, sends nothing, and takes over when `ask` has ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.threaded_model_server import MODEL, ModelServer, Story, numbered
from tests.fakes.window_process import opened, wait_until

ROOT = Path(__file__).parents[2]


def asking(environment: dict[str, str], data: Path, url: str) -> "subprocess.Popen[bytes]":
    options = ["--data-dir", str(data), "--base-url", url, "--model", MODEL]
    command = [sys.executable, "-m", "desktop_agent", "ask", *options, "story"]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, stdout=null, stderr=null)


@pytest.mark.exhaustive(
    "tests/ui/shell/test_models.py::test_what_another_process_works_in_is_shown_and_not_changed",
    "tests/desktop_agent/engine/test_conversation_follower.py",
)
def test_the_window_reads_along_and_takes_over_when_the_other_process_dies(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    (tmp_path / "link").symlink_to(data)
    with ModelServer(Story(numbered(), pace=0.05)) as server:
        ask = asking(real_display, data, server.url)
        try:
            wait_until("ask has an answer", lambda: server.streams and len(server.streams[0].text) > 20)
            with opened(real_display, tmp_path / "link") as (running, screen):
                screen.wait_for("Assistant said")
                screen.wait_last("You said", "story")
                who = f"is being worked on by “desktop-agent ask” (process {ask.pid}) since"
                wait_until("it says who works", lambda: who in screen.says())
                seen = len(screen.last("Assistant said"))
                wait_until("it grows", lambda: len(screen.last("Assistant said")) > seen)
                screen.write("Message", "and me?")
                assert "enabled" not in screen.wait_for("Send")["states"]
                assert screen.find("Stop") is None
                assert ask.poll() is None
                ask.kill()
                ask.wait()
                wait_until("it takes over", lambda: who not in screen.says())
                wait_until("what broke off is marked", lambda: "Not finished" in screen.says())
                said = wait_until("it is there", lambda: screen.last("Assistant said"))
                assert server.streams[0].text.startswith(said.split("Stopped")[0].strip()[:20])
                wait_until("it can be sent", lambda: "enabled" in screen.wait_for("Send")["states"])
                screen.wait_last("Message", "and me?")
                assert len(server.prompts) == 1
                assert running.end() == 0
        finally:
            if ask.poll() is None:
                ask.kill()
                ask.wait()
