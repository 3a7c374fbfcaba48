"""The window in the language that was chosen before the restart: the program's own texts, and those of its runtime."""

from pathlib import Path

from tests.fakes.window_process import opened, wait_until
from tests.frame.translations import compiled
from tests.whole_app.steps import command_by_keys


def test_the_program_starts_again_in_another_language_and_knows_it_from_then_on(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    compiled()
    data = tmp_path / "data"
    with opened(real_display, data, "--demo") as (running, screen):
        screen.wait_says("What can you do?", "New conversation", "Settings")
        command_by_keys(screen, "Language")
        screen.wait_focus("Language")
        screen.type_text("Deutsch")
        screen.wait_says("Restart now")
        first = started_at(running.process.pid)
        screen.press("Restart now")
        wait_until("another program runs in its place", lambda: started_at(running.process.pid) != first)
        screen.wait_says("Neue Unterhaltung", "Einstellungen")
        wait_until("it is noted for the start", lambda: '"look/language": "de"' in noted(data))
    # The window knows its language also when the preferences cannot be read.
    (data / "preferences.json").write_text("{")
    with opened(real_display, data, "--demo") as (_, screen):
        screen.wait_says("Neue Unterhaltung", "Einstellungen", "Dateien anhängen")
        screen.wait_says("Die Einstellungen waren beschädigt. Die Datei wurde als „")
        assert not screen.says("New conversation")


def noted(data: Path) -> str:
    file = data / "window.json"
    return file.read_text() if file.exists() else ""


def started_at(pid: int) -> bytes:
    """Return a value that differs between programs run one after the other in a process: where the system laid them."""
    addresses = Path(f"/proc/{pid}/auxv")
    return addresses.read_bytes() if addresses.exists() else b""
