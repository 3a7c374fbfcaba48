"""Start with the computer: an entry in the autostart folder of the desktop, as the Desktop Application Autostart
Specification of freedesktop.org says. What counts is the entry that is there, whoever wrote or removed it.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from desktop_agent.storage.files import file_error, write_atomically
from desktop_agent.types.errors import Sentence, StorageFailed
from ui.bridge.single_instance import program_command

IN_BACKGROUND = "--background"
_NAME = "desktop-agent.desktop"
_MAX_BYTES = 65_536
# The Desktop Entry Specification, "The Exec key": escape these within quotes, then double each backslash.
_ESCAPED = str.maketrans({character: f"\\{character}" for character in '"`$\\'})


def is_offered() -> bool:
    """Return whether this system has desktops that follow the specification."""
    return sys.platform.startswith("linux")


def is_sandboxed_package() -> bool:
    """Return whether this program is a Flatpak or a Snap, which the system starts and updates."""
    return bool(Path("/.flatpak-info").exists() or os.environ.get("FLATPAK_ID") or os.environ.get("SNAP"))


def why_impossible() -> Sentence | None:
    """Return why our entry could not start the program; None if it could."""
    if is_sandboxed_package():
        return Sentence("Not possible in this package: it may not change how your desktop starts. Your desktop can.")
    return None


class Autostart:
    """The entry for one data folder. All methods block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_on(self) -> bool:
        """Return whether the desktop starts this program on this folder."""
        try:
            with self._path.open("rb") as file:
                text = file.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            return False
        lines = [line.strip() for line in text.splitlines()]
        # Desktops switch off an entry that they do not own with one of these lines.
        is_off = {"Hidden=true", "X-GNOME-Autostart-enabled=false"}.intersection(lines)
        return not is_off and f"Exec={self._command}" in lines

    def set_enabled(self, *, enabled: bool) -> None:
        """Write the entry, or remove it. Raises StorageFailed."""
        path = self._path
        try:
            if enabled:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, self._entry().encode())
            else:
                with suppress(FileNotFoundError):
                    path.unlink()
        except OSError as error:
            raise _not_changed(file_error(error, path).sentence) from error

    @property
    def _path(self) -> Path:
        config = os.environ.get("XDG_CONFIG_HOME", "")
        folder = Path(config) if config.startswith("/") else Path.home() / ".config"
        return folder / "autostart" / _NAME

    @property
    def _command(self) -> str:
        return " ".join(_quote(word) for word in (*program_command(), "--data-dir", str(self._folder), IN_BACKGROUND))

    def _entry(self) -> str:
        command = self._command
        if not command.isprintable():
            raise _not_changed(
                Sentence("The path of the program or of the data folder has characters that cannot be used there.")
            )
        return "\n".join(
            (
                "[Desktop Entry]",
                "Type=Application",
                "Name=Desktop Agent",
                f"Exec={command}",
                "Icon=desktop-agent",
                "Terminal=false",
                "X-GNOME-Autostart-enabled=true",
                "",
            )
        )


def _not_changed(why: Sentence) -> StorageFailed:
    words = Sentence("“Start with the computer” was not changed: {why}", {"why": why})
    return StorageFailed(words, "Change it in the settings of your desktop.")


def _quote(word: str) -> str:
    word = word.replace("%", "%%")
    if word and all(character.isalnum() or character in "/._-+%=,:@" for character in word):
        return word
    return '"' + word.translate(_ESCAPED).replace("\\", "\\\\") + '"'
