"""Reads every screen as a screen reader does: `python -m tests.gallery.walk [NAME…] [--write FOLDER]`.

It prints what cannot be told by its name and what no key reaches, and writes the lines that are read to
FOLDER/NAME.txt. The screens are built as for their pictures, without a display.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtWidgets import QApplication

from desktop_agent.sandbox import backends
from tests.gallery.__main__ import load_screens, shown
from tests.gallery.keyboard import activate, keyboard_faults
from tests.gallery.screens import SCREENS
from tests.gallery.spoken import CONVERSATION_LIST_SCREENS, faults, open_windows, read_lines
from ui.approval.guarded_dialog import GuardedDialog
from ui.bridge.event_loop import run_event_loop
from ui.style.accessibility import install_accessibility
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource, theme_for

SETTLE = 30.0
"""Seconds that a window gets to become as it is to be: a bound against waiting for ever, on a machine that is busy."""


async def settled(name: str, expected: Path | None) -> list[str]:
    """Return the lines once they are the expected ones, or after SETTLE seconds as they are by then.

    Without a folder of expected ones, once they are the same three times.
    """
    recorded = None if expected is None else (expected / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    with_conversations = name.startswith(CONVERSATION_LIST_SCREENS)
    deadline, previous, repeats = time.monotonic() + SETTLE, [""], 0
    while True:
        await asyncio.sleep(0.1)
        lines = read_lines(with_conversations=with_conversations)
        is_locked = any(
            window.bar is not None and window.bar.is_input_delayed
            for window in open_windows()
            if isinstance(window, GuardedDialog)
        )
        repeats = repeats + 1 if lines == previous and not is_locked else 0
        is_done = repeats == 2 if recorded is None else lines == recorded
        if is_done or time.monotonic() > deadline:
            return lines
        previous = lines


async def walk(names: list[str], source: ThemeSource, folder: Path | None, expected: Path | None) -> int:
    """Print the faults of each screen; returns how many have some."""
    failed = 0
    for name in names:
        start = time.monotonic()
        try:
            async with shown(SCREENS[name], source):
                lines = await settled(name, expected)
                problems = faults()
                await activate()
                problems += keyboard_faults()
        except Exception as error:  # one broken screen must not hide the others
            lines, problems = [], [f"broken: {error!r}"]
        if folder is not None:
            (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        failed += bool(problems)
        sys.stderr.writelines(f"{name}: {line}\n" for line in problems)
        sys.stdout.write(f"{name} {time.monotonic() - start:.1f} s\n")
        sys.stdout.flush()
    return failed


def be_the_same_everywhere() -> None:
    """Let the screens say the same on each machine: no keyring, one clock, and a sandbox that works."""
    os.environ |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    time.tzset()
    backends.find_bubblewrap = lambda: "bwrap"
    backends.is_working = lambda _sandbox: True
    backends._is_ordinary_user = lambda: True


def run_in_window(work: Callable[[ThemeSource], Awaitable[int]]) -> int:
    """Run it as the program runs, with its theme, and return 1 if it found something."""
    app = QApplication(["desktop-agent-gallery"])
    app.setApplicationVersion("1.0")
    install_accessibility(app)
    source = ThemeSource(theme_for("system", system_dark=False, strong_contrast=False), 100)
    apply_theme(app, source)
    return 1 if run_event_loop(app, lambda: work(source)) else 0


def main() -> int:
    """Read the screens that are named, or all."""
    load_screens()
    parser = argparse.ArgumentParser(prog="python -m tests.gallery.walk", description="Reads the screens")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--expect", type=Path, metavar="FOLDER", help="wait until a screen is read as recorded there")
    parser.add_argument("--list", action="store_true", help="print the names of all, and read those that are named")
    arguments = parser.parse_args()
    if arguments.list:
        sys.stdout.write("\n".join(SCREENS) + "\n")
        if not arguments.names:
            return 0
    os.environ |= {"QT_QPA_PLATFORM": "offscreen", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}
    be_the_same_everywhere()
    names = arguments.names or list(SCREENS)
    return run_in_window(lambda source: walk(names, source, arguments.write, arguments.expect))


if __name__ == "__main__":
    sys.exit(main())
