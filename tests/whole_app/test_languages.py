"""The window in the language that was chosen before the last end: its own words, and those of the runtime."""

import json
from pathlib import Path

from tests.fakes.window_process import opened, wait_until
from tests.frame.translations import compiled


def test_a_chosen_language_is_there_at_the_next_start(real_display: dict[str, str], tmp_path: Path) -> None:
    compiled()
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "preferences.json").write_text(json.dumps({"appearance": {"language": "de"}}))
    with opened(real_display, data, "--demo") as (_, screen):
        screen.wait_says("New conversation", "Settings")
        wait_until("it is noted for the start", lambda: "language=de" in noted(data))
    # Before the preferences can be read, and where they cannot, the window knows its language.
    (data / "preferences.json").write_text("{")
    with opened(real_display, data, "--demo") as (_, screen):
        screen.wait_says("Neue Unterhaltung", "Einstellungen", "Dateien anhängen")
        screen.wait_says("Die Einstellungen waren beschädigt. Die Datei wurde als „")
        assert not screen.says("New conversation")


def noted(data: Path) -> str:
    file = data / "window.ini"
    return file.read_text() if file.exists() else ""
