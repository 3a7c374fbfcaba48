"""What the packaged program must do on a screen: answer, look as from source, and start as fast."""

import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageChops

from build import BUILD, size_of
from prune import prune
from tests.frame.displays import program as installed
from tests.whole_app.window import opened

Check = tuple[str, bool, str]
ROUNDS = 7
PATIENCE = 30.0
KEYWORD = (0x8A, 0x2F, 0xA8)
"""The colour of Python's keywords in the light theme: ui/transcript/blocks/code/syntax.py."""
BARE = """
import sys
from PySide6.QtWidgets import QApplication, QLabel

app = QApplication(sys.argv)
label = QLabel("bare")
label.resize(1100, 760)
label.show()
sys.exit(app.exec())
"""
GRAB = """
import sys
from PySide6.QtGui import QGuiApplication

app = QGuiApplication(sys.argv)
app.primaryScreen().grabWindow(0).save(sys.argv[1])
"""


def source_program() -> list[str]:
    """The same program from the environment that it was built in."""
    return [sys.executable, "-m", "ui"]


def windows(program: Path, shown: dict[str, str], home: Path) -> Iterator[Check]:
    """All of it."""
    looks: dict[str, Image.Image] = {}
    for name, command in (("packaged", [str(program)]), ("source", source_program())):
        with opened(shown, home / f"data-{name}", "--demo", command=command) as (_, screen):
            screen.wait_for("Message")
            screen.send("Hello there")
            screen.wait_for("Stop")
            screen.wait_for("Send")
            answer = screen.last("Assistant said")
            looks[name] = picture_of_screen(shown, home / f"{name}.png")
        if name == "packaged":
            good = "I am the demo model" in answer and "def greet(name: str)" in answer
            yield "the window answers", good, f"{len(answer)} characters, read as a screen reader reads them"
    keywords = sum(count for count, colour in looks["packaged"].getcolors(1 << 24) or () if colour == KEYWORD)
    yield "code is highlighted", keywords > 4, f"{keywords} pixels in the colour of keywords"
    share = difference(looks["packaged"], looks["source"])
    yield "it looks as from source", share < 0.002, f"{share:.3%} of the pixels differ"
    yield from starts(program, shown)


def picture_of_screen(shown: dict[str, str], file: Path) -> Image.Image:
    """What is on the display now."""
    subprocess.run([sys.executable, "-c", GRAB, str(file)], env=shown, check=True, capture_output=True)
    return Image.open(file).convert("RGB")


def difference(one: Image.Image, other: Image.Image) -> float:
    """The share of pixels that are not the same."""
    changed = ImageChops.difference(one, other).convert("L").point(lambda value: 255 if value > 24 else 0)
    return changed.histogram()[255] / (one.width * one.height)


def starts(program: Path, shown: dict[str, str]) -> Iterator[Check]:
    """Size and start beside the bare window, and beside the same program from source."""
    bare = bare_program()
    ours, theirs = size_of(program.parent) / 1e6, size_of(bare.parent) / 1e6
    yield "size", ours < 260, f"{ours:.0f} MB, a bare window {theirs:.0f} MB"
    times: dict[str, list[float]] = {"packaged": [], "from source": [], "bare": []}
    runs: dict[str, Callable[[], float]] = {
        "packaged": lambda: start_seconds([str(program), "--demo"], "desktop-agent", shown),
        "from source": lambda: start_seconds([*source_program(), "--demo"], "desktop-agent", shown),
        "bare": lambda: start_seconds([str(bare)], "bare", shown),
    }
    for number in range(ROUNDS + 1):
        for name, run in runs.items():
            seconds = run()
            if number:  # the first start of each finds cold files
                times[name].append(seconds)
    medians = {name: statistics.median(found) for name, found in times.items()}
    told = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in medians.items())
    yield "start", medians["packaged"] <= 1.05 * medians["from source"], f"{told} (medians of {ROUNDS}, in turn)"


def bare_program() -> Path:
    """A label in a window, packaged the same way."""
    folder = BUILD / "bare"
    program = folder / "dist" / "bare" / "bare"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bare.py").write_text(BARE)
        options: list[str | Path] = [
            "--noconfirm",
            "--log-level",
            "ERROR",
            "--workpath",
            folder / "work",
            "--distpath",
            folder / "dist",
        ]
        command = [sys.executable, "-m", "PyInstaller", *options, "--specpath", folder, folder / "bare.py"]
        subprocess.run(command, check=True)
        prune(program.parent)
    return program


def start_seconds(command: list[str], name: str, shown: dict[str, str]) -> float:
    """From the start of the program to its visible window; the program is ended afterwards."""
    begun = time.perf_counter()
    with ended(subprocess.Popen(command, env=shown, stdin=subprocess.DEVNULL)) as program:
        while not window_of(name, shown):
            if program.poll() is not None:
                sys.exit(f"{name} ended with {program.returncode} before it showed a window")
            if time.perf_counter() - begun > PATIENCE:
                sys.exit(f"{name} showed no window within {PATIENCE:.0f} s")
            time.sleep(0.005)
        return time.perf_counter() - begun


@contextmanager
def ended(program: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The process, ended at the end."""
    try:
        yield program
    finally:
        program.send_signal(signal.SIGTERM)
        try:
            program.wait(10)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def window_of(name: str, shown: dict[str, str]) -> bool:
    """Whether a window of this class is visible."""
    command = [installed("xdotool"), "search", "--onlyvisible", "--class", name]
    return bool(subprocess.run(command, env=shown, capture_output=True, check=False).stdout.strip())
