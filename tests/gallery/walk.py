"""Reads every screen as a screen reader does: `python -m tests.gallery.walk [NAME…] [--write FOLDER]`.

It prints what cannot be told by its name, and writes the lines that are read to
FOLDER/NAME.txt. The screens are built as for their pictures, without a display.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from PySide6.QtWidgets import QApplication

from tests.gallery.__main__ import load_screens, shown
from tests.gallery.screens import SCREENS
from tests.gallery.spoken import faults, read_lines
from ui.bridge.event_loop import run_event_loop
from ui.style.accessibility import install_accessibility
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource, theme_for

SETTLE = 5.0
"""Seconds that a window gets to stop changing."""


async def settled() -> list[str]:
    """Return the lines once they are the same twice, or after SETTLE seconds as they are then."""
    until, before = time.monotonic() + SETTLE, [""]
    while True:
        await asyncio.sleep(0.1)
        lines = read_lines()
        if lines == before or time.monotonic() > until:
            return lines
        before = lines


async def walk(names: list[str], source: ThemeSource, folder: Path | None) -> int:
    """Print the faults of each screen; returns how many have some."""
    failed = 0
    for name in names:
        began = time.monotonic()
        try:
            async with shown(SCREENS[name], source):
                lines = await settled()
                found = faults()
        except Exception as error:  # one broken screen must not hide the others
            lines, found = [], [f"broken: {error!r}"]
        if folder is not None:
            (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        failed += bool(found)
        sys.stderr.writelines(f"{name}: {line}\n" for line in found)
        sys.stdout.write(f"{name} {time.monotonic() - began:.1f} s\n")
        sys.stdout.flush()
    return failed


def main() -> int:
    """Read the screens that are named, or all."""
    load_screens()
    parser = argparse.ArgumentParser(prog="python -m tests.gallery.walk", description="Reads the screens")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    app = QApplication(["desktop-agent-gallery"])
    install_accessibility(app)
    source = ThemeSource(theme_for("system", system_dark=False, strong_contrast=False), 100)
    apply_theme(app, source)
    failed = run_event_loop(app, lambda: walk(arguments.names or list(SCREENS), source, arguments.write))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
