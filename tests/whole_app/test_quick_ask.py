"""The small window for a quick question, by a command that can be bound to a key."""

import json
from pathlib import Path

import pytest

from tests.fakes.window_process import NO_TITLES, opened, wait_until
from tests.whole_app.test_links import start_again


@pytest.mark.exhaustive(
    "tests/ui/shell/test_quick_ask.py::test_a_question_is_answered_in_a_new_conversation_and_goes_on_in_the_main_window",
    "tests/whole_app/test_quick_ask_keys.py::test_the_keys_open_the_window_over_another_program_whatever_locks_are_on",
)
def test_a_quick_question_by_keyboard_alone(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "preferences.json").write_text(json.dumps(NO_TITLES))
    with opened(real_display, data, "--demo") as (program, screen):
        screen.wait_for("Message")
        screen.send("calculate 1 + 1")
        main = "calculate 1 + 1 — Desktop Agent"
        screen.wait_for(main, "frame")
        assert start_again(real_display, data, "--quick-ask").returncode == 0
        screen.wait_for("Quick question")
        # Only the window manager knows which of the two windows has the keyboard.
        wait_until("the small window has the keyboard", lambda: screen.active_window() not in {"", main})
        screen.type("calculate 6 * 7")
        screen.keys("Return")
        screen.wait_says("6 * 7 = 42")
        screen.keys("ctrl+shift+o")
        screen.wait_gone("Quick question")
        wait_until("the main window shows it", lambda: screen.find("calculate 6 * 7 — Desktop Agent", "frame"))
        assert program.process.poll() is None
