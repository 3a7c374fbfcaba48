"""`kill -9` in the middle of an answer: what was on the screen a second before is there at the next start.

Two records are kept until the kill: what the server had sent, piece by piece, with its moments, and what the screen
told assistive technology, each look with the moment it ended. Nothing can be on the screen that was not sent, so the
first record is the stricter measure; the second shows that the text was on the screen at all, and how soon.

DESKTOP_AGENT_KILLS says how often to kill; without it, often enough for every run of the tests.
"""

import os
import random
import time
from pathlib import Path

import pytest

from tests.whole_app.model_server import MODEL, ModelServer, Story, Stream, numbered
from tests.whole_app.window import Screen, opened, wait_until

KILLS = int(os.environ.get("DESKTOP_AGENT_KILLS", "6"))
PROMISED = 1.0
"""Seconds of text that a kill may cost."""
MARK = "Stopped before the end"
SEED = 4


def look_on(screen: Screen, until: float) -> list[tuple[float, str]]:
    """What is on the screen, again and again until the moment comes."""
    looks: list[tuple[float, str]] = []
    while time.monotonic() < until:
        text = screen.last("Assistant said")
        looks.append((time.monotonic(), text))
    return looks


def kill_in_the_middle(
    environment: dict[str, str], data: Path, server: ModelServer, seconds: float
) -> tuple[float, list[tuple[float, str]], Stream]:
    """When it was killed, what was seen, and what was sent."""
    arguments = ("--base-url", server.url, "--model", MODEL)
    with opened(environment, data, *arguments) as (running, screen):
        known = len(server.streams)
        screen.send(f"story {known}")
        stream = wait_until("the server is asked", lambda: server.streams[known:])[0]
        wait_until("text is shown", lambda: screen.last("Assistant said"))
        looks = look_on(screen, time.monotonic() + seconds)
        killed_at = time.monotonic()
        running.process.kill()
        running.process.wait()
    return killed_at, looks, stream


def shown_after_restart(environment: dict[str, str], data: Path, prompt: str) -> str:
    """The broken answer, without the mark that it must have."""
    with opened(environment, data) as (running, screen):
        screen.wait_for("Assistant said")
        screen.wait_last("You said", prompt)
        text = screen.last("Assistant said")
        assert text.endswith(MARK), text[-200:]
        assert screen.find("Stop") is None
        assert running.end() == 0
    return text.removesuffix(MARK).strip()


@pytest.mark.timeout(60 + 20 * KILLS)
def test_a_kill_costs_less_than_the_last_second(real_display: dict[str, str], tmp_path: Path) -> None:
    chance = random.Random(SEED)
    losses: list[float] = []
    lags: list[float] = []
    with ModelServer(lambda _: Story(numbered(), pace=0.01)) as server:
        for number in range(KILLS):
            data = tmp_path / "data" if number % 2 else tmp_path / f"data {number}"
            seconds = chance.uniform(0.5, 4.0)
            killed_at, looks, stream = kill_in_the_middle(real_display, data, server, seconds)
            kept = shown_after_restart(real_display, data, f"story {len(server.streams) - 1}")
            # A beginning of what was sent, without a hole, and all that the screen showed a second before.
            assert stream.text.startswith(kept)
            assert kept.startswith(stream.sent_by(killed_at - PROMISED).strip()), (number, seconds)
            for seen_at, text in looks:
                assert seen_at > killed_at - PROMISED or kept.startswith(text.strip()), (number, seconds)
            lost = [at for at, _ in stream.sent if at <= killed_at][len(kept.split()) :]
            losses.append(killed_at - lost[0] if lost else 0.0)
            lags += [seen_at - moment_of(text, stream) for seen_at, text in looks if text]
    losses.sort()
    print(
        f"{KILLS} kills: lost were the last {losses[0]:.2f} to {losses[-1]:.2f} s of text, median "
        f"{losses[KILLS // 2]:.2f} s; least margin to the promise {PROMISED - losses[-1]:.2f} s. A look at the screen "
        f"showed text that was sent {sorted(lags)[len(lags) // 2]:.2f} s before its end (median of {len(lags)})"
    )


def moment_of(text: str, stream: Stream) -> float:
    """When the last word of this text was sent."""
    return stream.sent[len(text.split()) - 1][0]


def killed_while_it_waits(environment: dict[str, str], data: Path) -> None:
    """The program is gone before the person decided."""
    with opened(environment, data, "--demo") as (running, screen):
        screen.send("write a file")
        screen.wait_for("Approve tool call", "dialog")
        # Longer than it takes to reach the disk.
        time.sleep(PROMISED)
        running.kill()


def press_when_enabled(screen: Screen, name: str) -> None:
    wait_until(f"{name} can be pressed", lambda: "enabled" in screen.wait_for(name)["states"])
    screen.press(name)


def test_a_waiting_call_is_asked_about_again_after_a_kill_and_run_once(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    killed_while_it_waits(real_display, data)
    with opened(real_display, data) as (running, screen):
        screen.wait_for("Approve tool call", "dialog")
        assert not list(Path(data).rglob("hello.txt"))
        press_when_enabled(screen, "Allow once")
        screen.wait_gone("Approve tool call")
        screen.wait_for("Send")
        card = wait_until("the call is shown", lambda: screen.last("Tool call: write_file"))
        assert "Done" in card
        assert len(list(Path(data).rglob("hello.txt"))) == 1
        screen.send("and now calculate 6 * 7")
        screen.wait_for("Send")
        assert "42" in screen.last("Assistant said")
        assert running.end() == 0
    # It is over: nobody is asked a second time.
    with opened(real_display, data) as (_, screen):
        wait_until("the answer is shown", lambda: "42" in screen.last("Assistant said"))
        assert screen.find("Approve tool call") is None


def test_a_call_that_waited_can_be_denied_after_a_kill(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    killed_while_it_waits(real_display, data)
    with opened(real_display, data) as (running, screen):
        screen.wait_for("Approve tool call", "dialog")
        press_when_enabled(screen, "Deny")
        screen.wait_gone("Approve tool call")
        screen.wait_for("Send")
        assert "Denied" in wait_until("the call is shown", lambda: screen.last("Tool call: write_file"))
        assert not list(data.rglob("hello.txt"))
        screen.send("and now calculate 6 * 7")
        wait_until("it is answered", lambda: "42" in screen.last("Assistant said"))
        assert running.end() == 0
