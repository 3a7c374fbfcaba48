"""The keys of the quick question on a real X server, pressed while another program has the keyboard."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from tests.fakes.window_process import NO_TITLES, Program, Screen, opened, wait_until
from tests.frame import displays

Desk = tuple[Program, Screen]

OTHER = """
from PySide6.QtWidgets import QApplication, QLineEdit
app = QApplication([])
line = QLineEdit()
line.setWindowTitle("Another program")
line.textChanged.connect(lambda text: print(text, flush=True))
line.show()
line.activateWindow()
print("shown", flush=True)
app.exec()
"""
WALL = """
from PySide6.QtWidgets import QApplication, QWidget
app = QApplication([])
wall = QWidget()
wall.setWindowTitle("A red wall")
wall.setStyleSheet("background: #e00000")
wall.showFullScreen()
print("shown", flush=True)
app.exec()
"""
GRAB = """
import asyncio, sys
from ui.bridge.desktop.key_names import parse_keys
from ui.bridge.desktop import x11_keys
try:
    held = x11_keys._grab(parse_keys(sys.argv[1]))
except x11_keys.KeysUnavailable as refused:
    sys.exit(f"{refused} {refused.remedy}")
print("held", flush=True)
sys.stdin.read()
"""
CANCELLED_GRAB = """
import asyncio, sys
from PySide6.QtCore import QCoreApplication
from ui.bridge.desktop.key_names import parse_keys
from ui.bridge.desktop import x11_keys
async def grab_twice():
    keys, combination = x11_keys.X11Keys(), parse_keys(sys.argv[1])
    grab = asyncio.ensure_future(keys.grab(combination))
    await asyncio.sleep(0)
    grab.cancel()
    await asyncio.gather(grab, return_exceptions=True)
    await keys.release()
    await asyncio.get_running_loop().shutdown_default_executor()
    x11_keys._grab(combination)
    print("grabbed again", flush=True)
app = QCoreApplication([])
asyncio.run(grab_twice())
"""

TAKEN = ("Another program already uses Ctrl+Alt+W.", "Choose other keys, or take these from that program.")


@contextmanager
def program(environment: dict[str, str], code: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Another program, which has written its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline()
        yield process
    finally:
        displays.end_group(process)
        process.stdin.close()
        process.stdout.close()


def press(environment: dict[str, str], *keys: str) -> None:
    if keys:
        subprocess.run([displays.program("xdotool"), "key", *keys], env=environment, check=True)


def active_window(environment: dict[str, str], *, title: bool = True) -> str:
    """Return the title of the window that has the keyboard, or its number; "" if no window has it."""
    command = [displays.program("xdotool"), "getactivewindow", *(["getwindowname"] if title else [])]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout.strip()


def data_folder(tmp_path: Path, keys: str) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "preferences.json").write_text(json.dumps({"chat": {**NO_TITLES["chat"], "quick_ask_keys": keys}}))
    return data


@pytest.fixture(scope="module")
def desk(real_display: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("keys")
    with opened(real_display, data_folder(folder, "Ctrl+Alt+Q"), "--demo") as desk:
        desk[1].wait_for("Message")
        yield desk


def test_the_keys_open_the_window_over_another_program_whatever_locks_are_on(
    real_display: dict[str, str], desk: Desk
) -> None:
    _, screen = desk
    with program(real_display, OTHER):
        for locks in ((), ("Num_Lock", "Caps_Lock")):
            wait_until("the other program has the keyboard", lambda: active_window(real_display) == "Another program")
            try:
                press(real_display, *locks)
                open_by_keys(real_display, screen)
            finally:
                press(real_display, *locks)
            wait_until("it has the keyboard", lambda: "Desktop Agent" in active_window(real_display))
            if locks:
                screen.type_text("calculate 6 * 7")
                screen.keys("Return")
                screen.wait_says("6 * 7 = 42")
            leave(screen)


def open_by_keys(environment: dict[str, str], screen: Screen) -> None:
    wait_until("the small window opens", lambda: _press_until_open(environment, screen))


def leave(screen: Screen) -> None:
    # Keys pressed before the window was seen open may still arrive.
    wait_until("it goes", lambda: screen.find("Quick question") is None or screen.keys("Escape"))


def _press_until_open(environment: dict[str, str], screen: Screen) -> bool:
    """The keys are grabbed after the first paint, so the first press may be too early."""
    press(environment, "ctrl+alt+q")
    return screen.find("Quick question") is not None


def test_the_keys_move_with_the_layout_of_the_keyboard(real_display: dict[str, str], desk: Desk) -> None:
    _, screen = desk
    open_by_keys(real_display, screen)
    leave(screen)
    try:
        # On this layout Q is in the place of A.
        subprocess.run([displays.program("setxkbmap"), "fr"], env=real_display, check=True)
        open_by_keys(real_display, screen)
    finally:
        subprocess.run([displays.program("setxkbmap"), "us"], env=real_display, check=True)
    leave(screen)


def test_a_screenshot_shows_what_is_behind_the_window(real_display: dict[str, str], desk: Desk) -> None:
    running, screen = desk
    with program(real_display, WALL):
        wait_until("the wall is in front", lambda: active_window(real_display) == "A red wall")
        open_by_keys(real_display, screen)
        wait_until("it has the keyboard", lambda: "Desktop Agent" in active_window(real_display))
        small = active_window(real_display, title=False)
        screen.press("Attach a screenshot")
        screen.wait_says("Screenshot")
        # Before that the main window, which is never hidden, may have the keyboard.
        wait_until("it is back", lambda: active_window(real_display, title=False) == small)
        screen.type("What is this?")
        screen.keys("Return")
        pictures = wait_until(
            "it is stored", lambda: [file for file in running.data.glob("pictures/*/*") if file.is_file()]
        )
        picture = QImage(str(pictures[0]))
        width, height = picture.width(), picture.height()
        assert width > height > 0
        inside = {
            picture.pixelColor(round(width * across), round(height * down)).name()
            for across in (0.1, 0.5, 0.9)
            for down in (0.1, 0.5, 0.9)
        }
        assert inside == {"#e00000"}


def test_keys_that_another_program_has_are_refused_with_a_remedy(real_display: dict[str, str]) -> None:
    with program(real_display, GRAB, "Ctrl+Alt+W"):
        second = subprocess.run(
            [sys.executable, "-c", GRAB, "Ctrl+Alt+W"],
            env=real_display,
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.stdout == ""
    assert TAKEN[0] in second.stderr
    assert TAKEN[1] in second.stderr


@pytest.mark.exhaustive(
    "test_keys_that_another_program_has_are_refused_with_a_remedy",
    "tests/ui/shell/desktop/test_quick_ask_keys.py::test_at_the_start_they_are_taken_again_or_the_window_says_why_not",
)
def test_keys_that_another_program_has_are_said_with_a_remedy(real_display: dict[str, str], tmp_path: Path) -> None:
    with (
        program(real_display, GRAB, "Ctrl+Alt+W"),
        opened(real_display, data_folder(tmp_path, "Ctrl+Alt+W"), "--demo") as (_, screen),
    ):
        screen.wait_says(" ".join(TAKEN))


def test_a_grab_that_is_cancelled_on_the_way_can_be_released(real_display: dict[str, str]) -> None:
    with program(real_display, CANCELLED_GRAB, "Ctrl+Alt+V") as process:
        assert process.stdout is not None
        assert process.wait(60) == 0
