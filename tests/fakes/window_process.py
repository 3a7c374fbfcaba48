"""The program in a process of its own with its window, driven from the test by accessible names."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.frame.a11y import SCRIPT, SYSTEM_PYTHON, Node, Reader
from tests.frame.displays import program
from tests.frame.patience import PATIENCE

# Qt's bridge warns about a newer call of the registry, which it does not know, and about questions for what was just
# deleted: an object, or a row of a list or tree that was counted before it became shorter. All other output is a fault.
EXPECTED = re.compile(
    r"^qt\.accessibility\.atspi: .*(GetApplicationBusAddress|Could not find accessible on path).*$"
    r"|^QAccessible(Table|List|Tree)::(child|cellAt|indexFromLogical): [Ii]nvalid index.*$|^$"
)

_NOT_YET = ("nothing showing", "no application")
NO_TITLES = {"chat": {"titles": "local"}}
"""Preferences with which no model is asked for a title."""
GLANCES: dict[str, Any] = {"screen": [], "words": "", "focused": [], "texts": [], "find": None}
"""Verbs that only read, and their answers when there is nothing to read."""


def wait_until(what: str, true: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait until the condition is true, and return its value; fail the test after these seconds."""
    deadline = time.monotonic() + seconds
    while True:
        asked_at = time.monotonic()
        if answer := true():
            return answer
        if asked_at > deadline:
            pytest.fail(f"not within {seconds:.0f} s: {what}")
        # The program itself answers each question: this leaves it two thirds of the time for its work.
        time.sleep(max(0.05, 2 * (time.monotonic() - asked_at)))


class Screen(Reader):
    """A reader whose process stays, with keyboard, mouse and clipboard."""

    def __init__(self, environment: dict[str, str], pid: int) -> None:
        super().__init__(environment, f"process {pid}")
        self._process = subprocess.Popen(
            [SYSTEM_PYTHON, str(SCRIPT), str(pid), "serve"],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        """End the reader's process."""
        self._process.kill()
        self._process.communicate()

    def tree(self) -> list[Node]:
        """All that is showing, depth first; empty while it is not on the bus yet."""
        return self._ask("screen")

    def find(self, name: str, role: str | None = None) -> Node | None:
        """The first node of this name that is showing."""
        return self._ask("find", name, role or "")

    def has_window(self) -> bool:
        """Whether a window is showing."""
        return self._ask("find", "", "frame") is not None

    def texts(self, name: str) -> list[str]:
        """The texts of all showing nodes of this name, in order."""
        return self._ask("texts", name)

    def last(self, name: str) -> str:
        """The text of the last showing node of this name, or ""."""
        return (self.texts(name) or [""])[-1]

    def on_bus(self) -> str:
        """The applications that the accessibility bus knows, for the message of a failure."""
        return self._ask("bus")

    def says(self, *words: str) -> str:
        """All showing names and texts, if all these words are among them; else ""."""
        whole: str = self._ask("words")
        return whole if all(word in whole for word in words) else ""

    def wait_says(self, *words: str, seconds: float = PATIENCE) -> str:
        """Wait until `says` finds these words; a failure names all that was on the screen."""
        try:
            return wait_until(f"the screen says {words}", lambda: self.says(*words), seconds)
        except pytest.fail.Exception:
            pytest.fail(f"the screen does not say {words}, but:\n{self.says()}")

    def scroll_to_start(self) -> None:
        """Show the first messages: how long the answer below them is by now depends on the machine."""
        self.focus("Transcript")
        self.keys("Home")

    def focused(self) -> list[str]:
        """The names of all nodes that have the keyboard focus, or are the current row of a list."""
        return self._ask("focused")

    def wait_focus(self, name: str) -> None:
        """Wait until a node of this name has the keyboard focus, or is the current row; a failure names what has it."""
        try:
            wait_until(f"the keyboard is at {name!r}", lambda: name in self.focused())
        except pytest.fail.Exception:
            pytest.fail(f"the keyboard is not at {name!r}, but at {self.focused()}")

    def wait_line(self, beginning: str) -> str:
        """Wait for a name or a line of a text that begins so, and return it whole."""

        def line() -> str:
            lines = self.says().splitlines()
            return next((line for line in lines if line.startswith(beginning)), "")

        return wait_until(f"something begins with {beginning!r}", line)

    def type(self, text: str) -> None:
        """Type a text on the keyboard."""
        self._xdotool("type", "--delay", "1", text)

    def wait_gone(self, name: str, role: str | None = None) -> None:
        """Wait until nothing of this name is showing."""
        wait_until(f"{name!r} goes", lambda: self.find(name, role) is None)

    def wait_window(self, title: str) -> None:
        """Wait until a window whose title begins so has the keyboard; it is shown before it has."""
        wait_until(f"{title!r} has the keyboard", lambda: self.active_window().startswith(title))

    def close_dialog(self, name: str) -> None:
        """Close a dialog by Escape, once it has the keyboard."""
        self.wait_for(name, "dialog")
        self.wait_window(name)
        self.keys("Escape")
        self.wait_gone(name, "dialog")

    def send(self, text: str) -> None:
        """Write a prompt and press Send."""
        self.write("Message", text)
        wait_until("Send can be pressed", lambda: "enabled" in (self.find("Send") or {"states": ()})["states"])
        self.press("Send")
        wait_until("the message is sent", lambda: self.last("Message") == "")

    def wait_last(self, name: str, text: str) -> None:
        """Wait until the last node of this name has this text; a failure names the text that it has."""
        try:
            wait_until(f"{name!r} says {text!r}", lambda: self.last(name) == text)
        except pytest.fail.Exception:
            pytest.fail(f"{name!r} does not say {text!r}, but {self.last(name)!r}")

    def new_conversation(self) -> None:
        """Open a new conversation, unless one is open already."""
        # Qt holds a button down for 100 ms when assistive technology presses it: the title shows when that is over.
        title = "New conversation — Desktop Agent"
        if self.find(title, "frame") is None:
            self.press("New conversation")
            self.wait_for(title, "frame")

    def press(self, name: str, about: str = "") -> float:
        """Press by accessibility the node of this name and, if given, this description; return the moment before."""
        return self._ask("press", name, about)

    def keys(self, *keys: str) -> None:
        """Press keys of the keyboard."""
        self._xdotool("key", "--clearmodifiers", *keys)

    def active_window(self) -> str:
        """Return the title of the window that the window manager gives the keyboard; "" for none."""
        command = [program("xdotool"), "getactivewindow", "getwindowname"]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def type_text(self, text: str) -> None:
        """Press the keys of a text. Works also in the editor of a row, which accessibility does not show."""
        self._xdotool("type", text)

    def close_by_key(self, is_taken: Callable[[], Any]) -> None:
        """Press Alt+F4. Now and then the window manager has released its keys for a moment; then press again."""
        deadline = time.monotonic() + PATIENCE
        while not is_taken():
            if time.monotonic() > deadline:
                pytest.fail("Alt+F4 closes nothing")
            self.keys("alt+F4")
            next_try = time.monotonic() + 2.0
            while not is_taken() and time.monotonic() < next_try:
                time.sleep(0.02)

    def click(self, name: str, role: str | None = None) -> float:
        """Click with the mouse in the middle of the node; return the monotonic moment just before."""
        left, top, width, height = self.wait_for(name, role)["box"]
        # Not --sync: it waits for ever if the mouse is there already.
        self._xdotool("mousemove", str(left + width // 2), str(top + height // 2))
        clicked_at = time.monotonic()
        self._xdotool("click", "1")
        return clicked_at

    def paste(self, data: bytes, kind: str) -> None:
        """Put data on the clipboard and paste it into the message; returns when the program has fetched it."""
        # One answer for the list of formats and one for the data, and then xclip ends by itself.
        with self.clipboard(data, kind):
            self.focus("Message")
            before = self.says()
            self.keys("ctrl+v")
            wait_until("the paste is seen", lambda: self.says() != before)

    @contextmanager
    def clipboard(self, data: bytes, kind: str) -> Iterator[None]:
        """Own the clipboard with this data while the context lasts."""
        command = [program("xclip"), "-quiet", "-selection", "clipboard", "-t", kind, "-i"]
        owner = subprocess.Popen(
            command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert owner.stdin is not None
        owner.stdin.write(data)
        owner.stdin.close()
        try:
            wait_until("the clipboard has the data", lambda: self._offers(kind))
            yield
        finally:
            owner.kill()
            owner.wait()

    def _offers(self, kind: str) -> bool:
        command = [program("xclip"), "-selection", "clipboard", "-t", "TARGETS", "-o"]
        reply = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        return kind in reply.stdout.split()

    def _xdotool(self, *words: str) -> None:
        subprocess.run([program("xdotool"), *words], env=self._environment, check=True, timeout=PATIENCE)

    def _ask(self, *words: str) -> Any:
        deadline = time.monotonic() + (PATIENCE / 10 if words[0] in GLANCES else PATIENCE)
        while "error" in (response := self._ask_once(words)):
            # Nothing was done yet, so ask again: a node may be deleted while the tree is walked, or not exist yet.
            if not any(text in response["error"] for text in _NOT_YET) or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        else:
            return response["answer"]
        if words[0] in GLANCES:
            return GLANCES[words[0]]
        pytest.fail(f"{' '.join(words)[:200]}: {response['error']}")

    def _ask_once(self, words: tuple[str, ...]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(words).encode() + b"\n")
        stdin.flush()
        if not select.select([stdout], [], [], PATIENCE)[0]:
            pytest.fail(f"{words}: the window does not answer assistive technology")
        return json.loads(stdout.readline())


class Program:
    """One process of the program. Its output goes to a file."""

    def __init__(
        self,
        environment: dict[str, str],
        data: Path,
        *arguments: str,
        command: Sequence[str] = (sys.executable, "-m", "ui"),
    ) -> None:
        self.data = data
        if not data.exists():
            # The servers of these tests count requests: none for titles.
            data.mkdir(mode=0o700, parents=True)
            (data / "preferences.json").write_text(json.dumps(NO_TITLES))
        self.output = data.with_name(f"{data.name}.{time.monotonic_ns()}.out")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, "--data-dir", str(data), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        """Standard output and error."""
        return self.output.read_text(errors="replace")

    @property
    def crash(self) -> str:
        """The crash report of the program; "" without one."""
        report = self.data / "crash-report.txt"
        return report.read_text(errors="replace") if report.exists() else ""

    @property
    def unexpected(self) -> list[str]:
        """The lines of output that are a fault."""
        return [line for line in self.said.splitlines() if not EXPECTED.match(line)]

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for the end of the process; return its exit code."""
        return self.process.wait(seconds)

    def end(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill the process, and wait for its end."""
        self.process.kill()
        self.process.wait()

    def children(self) -> list[int]:
        """The ids of processes that it started and that still run."""
        listing = Path(f"/proc/{self.process.pid}/task")
        pids: list[int] = []
        for task in listing.iterdir() if listing.exists() else ():
            pids += [int(pid) for pid in (task / "children").read_text().split()]
        return pids


@contextmanager
def opened(environment: dict[str, str], data: Path, *arguments: str, **more: Any) -> Iterator[tuple[Program, Screen]]:
    """Run the program until its window is open. At the end it must exit with 0 and without unexpected output."""
    running = Program(environment, data, *arguments, **more)
    screen = Screen(environment, running.process.pid)
    try:
        wait_until(f"the window opens: {running.said}", lambda: _is_up(running, screen))
        yield running, screen
        if running.process.poll() is None:
            assert running.end() == 0
        assert running.unexpected == [], "\n".join(running.unexpected)
    except BaseException:
        # pytest shows what was printed with the failure.
        print(f"the window shows:\n{screen.says()}\n\nthe program said:\n" + "\n".join(running.unexpected))
        print(f"process {running.process.pid} ended with {running.process.poll()}; on the bus:\n{screen.on_bus()}")
        print(f"its crash report:\n{running.crash}")
        raise
    finally:
        screen.close()
        if running.process.poll() is None:
            running.kill()


def _is_up(running: Program, screen: Screen) -> bool:
    if running.process.poll() is not None:
        pytest.fail(f"it ended with {running.process.returncode}: {running.said}")
    return screen.has_window()


def alive(pid: int) -> bool:
    """Whether this process runs and is no zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
