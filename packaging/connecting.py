"""Checks the installed Debian package: a person connects a server with a key, which goes into the secret service.

The system gets what every desktop has for that: a session bus, a keyring, and the bus of screen readers.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loopback import ANSWER, serving
from systems import HOME, USER, command_inside
from tests.fakes.window_process import Screen, wait_until
from tests.frame import a11y
from tests.whole_app.steps import command_by_keys
from windows import PATIENCE, picture_of_screen

Check = tuple[str, bool, str]
PARTS = "at-spi2-core dbus gnome-keyring python3-pyatspi"
SOCKETS = "/tmp/.X11-unix"  # noqa: S108  where X servers have them
KEY = "sk-typed-by-the-person"
RUNTIME = "/run/user/1000"
READER = "/tmp/a11y_reader.py"  # noqa: S108  of a root that nobody else is in
ADD = f"""
set -e
apt-get install -y -qq --no-install-recommends /root/*.deb {PARTS}
install -d -o {USER} -m 700 {RUNTIME}
"""
KEYRINGS = f"{HOME}/.local/share/keyrings"


def session(words: str) -> str:
    """Return a script that runs words of a shell in a session of the desktop, whose keyring is unlocked."""
    unlock = "printf login | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1"
    # Services of the session bus write to its output, too.
    return f"exec 3>&1; exec dbus-run-session -- sh -c '{unlock}; exec >&3; {words}' >/dev/null"


class ScreenInside(Screen):
    """Reads a window inside the root, through a reader that runs there."""

    def __init__(self, environment: dict[str, str], process: "subprocess.Popen[bytes]") -> None:
        self._environment = environment
        self._application = "the installed program"
        self._process = process


@contextmanager
def window_inside(root: Path, shown: dict[str, str]) -> Iterator[Screen]:
    """Yield the window of the installed program in a session of its own; it is closed as a person closes it."""
    shutil.copyfile(a11y.SCRIPT, root / READER[1:])
    words = f"desktop-agent </dev/null >/dev/null 2>&1 & exec python3 {READER} $! serve"
    settings = {"DISPLAY": shown["DISPLAY"], "XDG_RUNTIME_DIR": RUNTIME, "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1"}
    started = command_inside(root, session(words), USER, SOCKETS, **settings)
    started |= {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(**started)
    screen = ScreenInside(shown, process)
    try:
        wait_until("the installed window opens", screen.has_window)
        yield screen
        screen.close_by_key(lambda: not screen.has_window())
    finally:
        # When the reader ends, everything inside the root does.
        screen.close()


def connecting(root: Path, pictures: Path, shown: dict[str, str]) -> Iterator[Check]:
    """Connect a server with a key in the installed window, and look where the key is afterwards."""
    with serving() as server:
        with window_inside(root, shown) as screen:
            screen.wait_for("Menu bar")
            command_by_keys(screen, "Connect a model")
            screen.wait_for("Address of the server")
            screen.focus("Address of the server")
            screen.type(server.url)
            screen.keys("Tab")
            screen.wait_focus("API key, if the server needs one")
            screen.type(KEY)
            picture_of_screen(shown, pictures / "4-address-and-key.png")
            screen.press("Connect this address")
            screen.wait_gone("Address of the server")
            screen.send("Well?")
            screen.wait_says(ANSWER)
            picture_of_screen(shown, pictures / "5-answer-of-a-server.png")
            yield "a server answers", server.keys[-1:] == [KEY], "with the key; 5-answer-of-a-server.png"
        script = session(f'desktop-agent ask --base-url {server.url} --model m "And again?"')
        command = command_inside(root, script, USER, XDG_RUNTIME_DIR=RUNTIME)
        run = subprocess.run(**command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        is_stored = ANSWER in run.stdout and server.keys[-1:] == [KEY] and len(server.keys) > 1
        seen = "another session sends it" if is_stored else run.stderr[-300:]
        yield "the key is kept in the secret service", is_stored, seen
    files = [file for file in (root / HOME[1:]).rglob("*") if file.is_file() and not file.is_symlink()]
    readable = [str(file.relative_to(root)) for file in files if KEY.encode() in file.read_bytes()]
    keyrings = [file.name for file in (root / KEYRINGS[1:]).glob("*.keyring")]
    seen = ", ".join(readable) or f"only in {KEYRINGS}/{', '.join(keyrings)}"
    yield "and in no file that can be read", not readable and bool(keyrings), seen
