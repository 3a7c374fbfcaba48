"""What the benchmark of the transcript relies on: its texts, its watchdog, and that every frame is painted."""

import statistics
import subprocess
import sys
import time

import pytest

from desktop_agent.types.blocks import Image
from tests.bench.transcript import parts
from tests.bench.transcript.cases import ending, run_case
from tests.bench.transcript.hostile_texts import break_lines
from tests.bench.transcript.parts import growth
from tests.bench.transcript.texts import AT_ONCE, Pictures, deltas_of, frames_of, messages, text_of
from tests.bench.transcript.watchdog import PATIENCE, Watchdog


def test_sixty_frames_bring_two_hundred_deltas() -> None:
    frames = frames_of(text_of(10_000), at_once=False)
    assert "".join(frames) == text_of(10_000)
    assert sum(len(deltas_of(frame)) for frame in frames[:60]) == 200
    assert {len(deltas_of(frame)) for frame in frames[:60]} == {3, 4}


def test_at_once_a_frame_is_full() -> None:
    frames = frames_of(text_of(10_000), at_once=True)
    assert "".join(frames) == text_of(10_000)
    assert [len(frame) for frame in frames] == [AT_ONCE, AT_ONCE, 2_000]


def test_messages_are_as_long_as_real_ones_and_have_everything_in_them(tmp_path) -> None:
    pictures = Pictures(tmp_path)
    thousand = list(messages(1_000, pictures))
    assert len(thousand) == 1_000
    assert 500 < statistics.mean(len(message.text) for message in thousand) < 600
    text = "\n".join(message.text for message in thousand)
    assert all(sign in text for sign in ("```python", "|---|", "![A drawing", "> Somebody", "### Heading", "- one"))
    shown = [block.source for message in thousand for block in message.blocks if isinstance(block, Image)]
    assert len(shown) == 25
    assert all(pictures.path_of(source).exists() for source in shown)


def test_the_limit_gets_short_lines() -> None:
    text = "ab\n\n" + "x" * 250 + "\n"
    assert break_lines(text) == "ab\n\n" + "\n".join(["x" * 100, "x" * 100, "x" * 50]) + "\n"


def test_growth_is_the_exponent() -> None:
    assert growth({10: 100.0, 100: 10_000.0, 1_000: 1_000_000.0}) == 2.0
    assert growth({10: 1.0, 100: 10.0}) is None


def test_a_size_that_was_ended_is_left_out_of_the_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(_case: str, size: str, _way: str, _rounds: str, limit: float) -> dict[str, object]:
        assert limit > 0
        return {"ended": "after 60 s"} if size == "1000000" else {"cpu_s": int(size) ** 2, "limit_s": int(size)}

    monkeypatch.setattr(parts, "run_case", answer)
    monkeypatch.setattr(parts, "ENOUGH", float("inf"))
    figures = parts.PARTS["streaming"]()
    assert figures["paced"]["exponent"] == figures["at_once"]["exponent"] == 2.0
    assert figures["paced"]["limit_exponent"] == 1.0
    assert figures["paced"]["1M"] == {"ended": "after 60 s"}


def test_without_time_no_case_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ENOUGH", 0.0)
    assert parts.case("moved", 10) == {"ended": "not begun: the time of the benchmark was over"}


def slow_work() -> None:
    time.sleep(PATIENCE * 10)


def test_the_watchdog_says_where_the_longest_turn_was() -> None:
    with Watchdog() as watchdog:
        watchdog.beat()
        slow_work()
        watchdog.beat()
        time.sleep(PATIENCE)
        watchdog.beat()
    assert "slow_work" in watchdog.where
    assert watchdog.longest == max(watchdog.gaps)


def test_a_case_whose_time_is_over_says_where_it_was() -> None:
    code = (
        "import faulthandler, queue, threading; faulthandler.dump_traceback_later(0.5, exit=True); "
        "threading.Thread(target=threading.Event().wait).start(); queue.Queue().get()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode
    assert "after 60 s in threading.py:wait < queue.py:get" in ending(run.stderr, 60.0)


def test_a_case_that_breaks_says_why() -> None:
    assert ending("Traceback …\nMemoryError\n", 60.0) == "MemoryError"


def test_every_frame_is_painted_in_a_real_window(real_display, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "QT_QPA_PLATFORM", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, real_display[name])
    figures = run_case("streamed", "1000", "paced", "1")
    assert figures["rounds"] == 1
    assert figures["paintings_per_frame"] >= 1
    assert figures["ratio"] > 0
