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
from loopback import serving
from prune import prune
from tests.fakes.window_process import opened
from tests.frame.displays import program as installed

Check = tuple[str, bool, str]
ROUNDS = 7
PATIENCE = 30.0
KEYWORD = (0x8A, 0x2F, 0xA8)
"""The colour of Python's keywords in the light theme: ui/transcript/style.py."""
STILL = 3
"""So many pictures in a row must be the same."""
WRITTEN = r"""
$$\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2} \qquad \sum_{n=1}^\infty \frac{1}{n^2} = \frac{\pi^2}{6}$$

$$\begin{pmatrix} a & b \\ c & d \end{pmatrix}^{-1} = \frac{1}{ad-bc} \begin{pmatrix} d & -b \\ -c & a \end{pmatrix}$$

$$\hat{f}(\xi) = \int_{-\infty}^{\infty} f(x)\, e^{-2\pi i x \xi}\, dx$$

```scala
val shown: Int = 1
def next(of: Int): Int = if (of > 0) of + 1 else throw new Exception
private sealed abstract class Shape extends Object with Serializable
```
"""
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
    """Return the command of the same program from the environment that it was built in."""
    return [sys.executable, "-m", "ui"]


def windows(program: Path, shown: dict[str, str], home: Path) -> Iterator[Check]:
    """Yield all checks."""
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
    keywords = colours_of(looks["packaged"]).get(KEYWORD, 0)
    yield "code is highlighted", keywords > 4, f"{keywords} pixels in the colour of keywords"
    share = difference(looks["packaged"], looks["source"])
    yield "it looks as from source", share < 0.002, f"{share:.3%} of the pixels differ"
    yield from formulas(program, shown, home)
    yield from starts(program, shown)


def formulas(program: Path, shown: dict[str, str], home: Path) -> Iterator[Check]:
    """Check what needs libraries that are loaded late: formulas, and highlighting of an uncommon language."""
    looks: dict[str, Image.Image] = {}
    with serving(answer=WRITTEN) as server:
        words = ("--base-url", server.url, "--model", "m")
        for name, command in (("packaged", [str(program)]), ("source", source_program())):
            with opened(shown, home / f"written-{name}", *words, command=command) as (_, screen):
                screen.wait_for("Message")
                screen.send("Well?")
                screen.wait_for("Assistant said")
                looks[name] = picture_of_screen(shown, home / f"written-{name}.png")
    keywords = [colours_of(look).get(KEYWORD, 0) for look in looks.values()]
    yield "Scala is highlighted", min(keywords) > 4, f"{keywords[0]} pixels in the colour of keywords"
    share = difference(looks["packaged"], looks["source"])
    yield "formulas look as from source", share < 0.001, f"{share:.3%} of the pixels differ"


def picture_of_screen(shown: dict[str, str], file: Path) -> Image.Image:
    """Return a picture of the display once nothing changes there: highlighting and formulas appear a moment later."""
    pictures: list[Image.Image] = []
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        subprocess.run([sys.executable, "-c", GRAB, str(file)], env=shown, check=True, capture_output=True)
        pictures.append(Image.open(file).convert("RGB"))
        if len(pictures) > STILL and all(difference(pictures[-1], last) < 0.0002 for last in pictures[-STILL:]):
            break
        time.sleep(0.3)
    return pictures[-1]


def colours_of(picture: Image.Image) -> dict[tuple[int, ...], int]:
    """Return how many pixels have each colour."""
    counts = picture.getcolors(1 << 24) or ()
    return {colour: count for count, colour in counts if isinstance(colour, tuple)}


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return the share of pixels that differ."""
    changed = ImageChops.difference(one, other).convert("L").point(lambda value: 255 if value > 24 else 0)
    return changed.histogram()[255] / (one.width * one.height)


def starts(program: Path, shown: dict[str, str]) -> Iterator[Check]:
    """Compare size and start with those of a bare window, and of the same program from source."""
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
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    seen = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in medians.items())
    yield "start", medians["packaged"] <= 1.05 * medians["from source"], f"{seen} (medians of {ROUNDS}, in turn)"


def bare_program() -> Path:
    """Return a program with a label in a window, packaged the same way."""
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
    """Return the seconds from the start of a program to its visible window; the program is ended afterwards."""
    started = time.perf_counter()
    with ended(subprocess.Popen(command, env=shown, stdin=subprocess.DEVNULL)) as program:
        while not window_of(name, shown):
            if program.poll() is not None:
                sys.exit(f"{name} ended with {program.returncode} before it showed a window")
            if time.perf_counter() - started > PATIENCE:
                sys.exit(f"{name} showed no window within {PATIENCE:.0f} s")
            time.sleep(0.005)
        return time.perf_counter() - started


@contextmanager
def ended(program: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process, and end it afterwards."""
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
    """Return whether a window of this class is visible."""
    command = [installed("xdotool"), "search", "--onlyvisible", "--class", name]
    return bool(subprocess.run(command, env=shown, capture_output=True, check=False).stdout.strip())
