"""`kill -9` in the middle of an answer: what was stored is there at the next start, and nothing else.

Half of the kills come at any moment. Before the others the server pauses, and the test waits until the database has all
of the text: all of it must be there again. For the first half the test prints how many seconds of text were lost.

DESKTOP_AGENT_KILLS sets the number of kills; without it, it is small enough for every run of the tests.
"""

import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from desktop_agent.storage.opening import DATABASE_NAME
from tests.fakes.threaded_model_server import MODEL, ModelServer, Story, Stream, numbered
from tests.fakes.window_process import opened, wait_until

KILLS = int(os.environ.get("DESKTOP_AGENT_KILLS", "4"))
MARK = "Not finished"
SEED = 4


class Pausing:
    """Numbered words until `pause` is called; `next_word` is the first word that is not sent."""

    def __init__(self) -> None:
        self.next_word = ""
        self._paused = threading.Event()
        self._over = threading.Event()

    def words(self) -> Iterator[str]:
        for word in numbered():
            if self._paused.is_set():
                self.next_word = word
                self._over.wait()
                return
            yield word

    def pause(self) -> None:
        """Return when no further word will come."""
        self._paused.set()
        wait_until("the server pauses", lambda: self.next_word)

    def end(self) -> None:
        """Let the server's thread end."""
        self._over.set()


def kill_in_the_middle(
    environment: dict[str, str], data: Path, server: ModelServer, seconds: float, *, when_stored: bool
) -> tuple[float, Stream]:
    """Return when the program was killed, and what had been sent."""
    arguments = ("--base-url", server.url, "--model", MODEL)
    story = Pausing()
    server.answer = Story(story.words(), pace=0.01)
    with opened(environment, data, *arguments) as (running, screen):
        known = len(server.streams)
        screen.send(f"story {known}")
        stream = wait_until("the server is asked", lambda: server.streams[known:])[0]
        wait_until("text is shown", lambda: screen.last("Assistant said"))
        time.sleep(seconds)
        if when_stored:
            story.pause()
            wait_until("all of it is stored", lambda: stream.text.split()[-1] in stored(data))
        killed_at = time.monotonic()
        running.process.kill()
        running.process.wait()
        story.end()
    return killed_at, stream


def stored(data: Path) -> str:
    """Return every text in the database, read while the program runs."""
    with closing(sqlite3.connect(f"file:{data / DATABASE_NAME}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = (row for table in tables for row in database.execute(f'SELECT * FROM "{table}"'))
        return "\n".join(str(value) for row in rows for value in row if isinstance(value, str | bytes))


def shown_after_restart(environment: dict[str, str], data: Path, prompt: str) -> str:
    """Return the unfinished answer, without the mark that it must have."""
    with opened(environment, data) as (running, screen):
        screen.wait_for("Assistant said")
        text = screen.last("Assistant said")
        assert text.endswith(MARK), text[-200:]
        assert screen.find("Stop") is None
        screen.scroll_to_start()
        screen.wait_last("You said", prompt)
        assert running.end() == 0
    return text.removesuffix(MARK).strip()


@pytest.mark.exhaustive("tests/whole_app/test_kill_between_records.py::test_between_any_two_records, without a window")
def test_a_kill_costs_nothing_that_was_stored(real_display: dict[str, str], tmp_path: Path) -> None:
    chance = random.Random(SEED)
    losses: list[float] = []
    with ModelServer(Story(())) as server:
        for number in range(KILLS):
            data = tmp_path / "data" if number % 2 else tmp_path / f"data {number}"
            seconds, when_stored = chance.uniform(0.5, 4.0), number % 4 < 2
            killed_at, stream = kill_in_the_middle(real_display, data, server, seconds, when_stored=when_stored)
            kept = shown_after_restart(real_display, data, f"story {len(server.streams) - 1}")
            if when_stored:
                assert kept == stream.text.strip()
                continue
            # It must be a beginning of what was sent, without a gap.
            assert stream.text.startswith(kept)
            lost = [sent_at for sent_at, _ in stream.sent if sent_at <= killed_at][len(kept.split()) :]
            losses.append(killed_at - lost[0] if lost else 0.0)
    print(f"{len(losses)} kills in the middle cost the last {min(losses):.2f} to {max(losses):.2f} s of text")
