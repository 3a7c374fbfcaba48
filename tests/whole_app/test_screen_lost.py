"""The X server ends while the window works: the prompt, the answer so far and the draft are there at the next start."""

import os
import signal
from pathlib import Path

from tests.fakes.threaded_model_server import MODEL, ModelServer, Story
from tests.fakes.window_process import Program, Screen, opened, wait_until
from tests.frame.displays import SERVER, accessibility, base_environment, display, session_bus
from tests.whole_app.test_kill import MARK, Pausing


def test_what_is_said_and_written_survives_the_screen(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    story = Pausing()
    environment = base_environment(tmp_path / "home")
    with (
        ModelServer(Story(story.words(), pace=0.01)) as server,
        display(environment) as shown,
        session_bus(shown) as bus,
        accessibility(bus) as readable,
    ):
        running = Program(readable, data, "--base-url", server.url, "--model", MODEL)
        screen = Screen(readable, running.process.pid)
        try:
            wait_until("one can write", lambda: screen.find("Message"))
            screen.send("story")
            wait_until("text is shown", lambda: screen.last("Assistant said"))
            story.pause()
            last = server.streams[0].text.split()[-1]
            wait_until("all of it is shown", lambda: screen.last("Assistant said").split()[-1:] == [last])
            screen.write("Message", "half a thought")
            os.kill(int(shown[SERVER]), signal.SIGKILL)
            assert running.wait() == 1
        finally:
            story.end()
            screen.close()
            if running.process.poll() is None:
                running.kill()
    assert "The screen is gone: its server has ended." in running.said
    assert "What was said and what was being written is kept." in running.said
    assert "Traceback" not in running.said
    with opened(real_display, data) as (again, screen):
        whole = server.streams[0].text.strip()
        screen.wait_last("Assistant said", f"{whole}\n{MARK}")
        screen.wait_last("Message", "half a thought")
        screen.scroll_to_start()
        screen.wait_last("You said", "story")
        assert again.end() == 0
