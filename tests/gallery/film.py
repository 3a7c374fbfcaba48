"""A short film of the program: the demo is asked, a call is approved, an answer stopped. Run on a private screen.

python -m tests.gallery.film docs/pictures/film.webp
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

from PIL import Image, ImageGrab

from tests.fakes.window_process import Screen, opened, wait_until
from tests.frame import displays

SIZE = "1000x680"
FRAMES_A_SECOND = 10
LAST_FRAME_MS = 3_000


class Camera:
    """A recorder of a screen, in a thread. A picture that equals the one before it makes that one last longer."""

    def __init__(self, display: str) -> None:
        self._display = display
        self._frames: list[Image.Image] = []
        self._milliseconds: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._take)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def save(self, path: Path) -> None:
        """Write an animated WebP that runs for ever."""
        self._milliseconds[-1] = LAST_FRAME_MS
        # Around the window the screen is black.
        frames = [frame.crop(self._frames[0].getbbox()) for frame in self._frames]
        frames[0].save(
            path,
            save_all=True,
            append_images=frames[1:],
            duration=self._milliseconds,
            loop=0,
            quality=70,
            method=4,
        )

    def _take(self) -> None:
        last = time.monotonic()
        while not self._over.wait(1 / FRAMES_A_SECOND):
            picture = ImageGrab.grab(xdisplay=self._display)
            now = time.monotonic()
            passed, last = round((now - last) * 1000), now
            if self._frames and self._frames[-1].tobytes() == picture.tobytes():
                self._milliseconds[-1] += passed
            else:
                self._frames.append(picture)
                self._milliseconds.append(passed)


def act(screen: Screen) -> None:
    """Do what a person does in the film, with pauses for reading."""
    screen.focus("Message")
    screen.type_text("Write a file and check it")
    time.sleep(0.8)
    screen.keys("Return")
    screen.wait_for("Approve tool call")
    time.sleep(2.5)
    screen.keys("a")
    wait_until("the second call is done and answered", lambda: screen.find("Send") is not None)
    time.sleep(2)
    screen.type_text("Tell me a long story")
    screen.keys("Return")
    wait_until("the story is told", lambda: len(screen.last("Assistant said")) > 900)
    screen.keys("Escape")
    screen.wait_for("Send")


def main() -> None:
    """Make the film."""
    parser = argparse.ArgumentParser(description="A short film of the program")
    parser.add_argument("path", type=Path)
    path: Path = parser.parse_args().path
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environment = displays.base_environment(home)
        with (
            displays.display(environment, SIZE) as shown,
            displays.session_bus(shown) as bus,
            displays.accessibility(bus) as readable,
            opened(readable, home / "data", "--demo") as (_, screen),
        ):
            screen.wait_for("Settings")
            screen.wait_for("Mode")
            camera = Camera(readable["DISPLAY"])
            camera.start()
            try:
                act(screen)
            finally:
                camera.stop()
            camera.save(path)
    print(f"{path}: {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
