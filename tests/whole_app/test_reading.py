"""Reading and copying in a real window while an answer is still being written."""

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageGrab

from tests.fakes.threaded_model_server import MODEL, ModelServer, Story, Stream
from tests.fakes.window_process import Screen, opened, wait_until
from tests.frame.displays import program
from tests.frame.patience import PATIENCE

WORDS = "One of **many** words that `arrive` one by one, and [a link](https://x.org/a) among them. "
PACE = 0.02


def story(beginning: str, seen: threading.Event) -> Iterator[str]:
    """Yield the beginning at once, then words until `seen` is set, and a few more."""
    yield beginning
    number = extra = 0
    while extra < 2:
        extra += seen.is_set()
        yield from (f"{word} " for word in WORDS.split(" "))
        yield f"\n\n- item {number}\n\n"
        number += 1


class Hands:
    """A mouse and a clipboard."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    def __call__(self, *words: str) -> None:
        subprocess.run([program("xdotool"), *words], env=self._environment, check=True, timeout=PATIENCE)

    def drag(self, *points: tuple[int, int]) -> None:
        self("mousemove", *map(str, points[0]))
        self("mousedown", "1")
        for point in points[1:]:
            self("mousemove", *map(str, point))
            time.sleep(0.05)
        self("mouseup", "1")

    def clipboard(self, kind: str = "UTF8_STRING") -> str:
        command = [program("xclip"), "-selection", "clipboard", "-t", kind, "-o"]
        result = subprocess.run(command, env=self._environment, capture_output=True, check=False, timeout=PATIENCE)
        return result.stdout.decode()

    def picture(self, box: tuple[int, int, int, int]) -> Image.Image:
        left, top, width, height = box
        return ImageGrab.grab(bbox=(left, top, left + width, top + height), xdisplay=self._environment["DISPLAY"])


def wait_longer(stream: Stream, length: int) -> None:
    """Wait until more than `length` characters were sent, or all of the answer."""
    wait_until("more text arrives", lambda: len(stream.text) > length or stream.ended)


def settled(hands: Hands, box: tuple[int, int, int, int]) -> Image.Image:
    """Return the picture of the box once nothing fades or moves there."""
    pictures = [hands.picture(box)]

    def same() -> bool:
        time.sleep(0.3)
        pictures.append(hands.picture(box))
        return ImageChops.difference(*pictures[-2:]).getbbox() is None

    wait_until("nothing moves", same)
    return pictures[-1]


def ask(screen: Screen) -> None:
    screen.wait_for("Message")
    screen.send("Write something long")
    wait_until("text arrives", lambda: len(screen.last("Assistant said")) > 20)


@pytest.mark.exhaustive(
    "tests/ui/transcript/test_selecting.py::test_what_is_selected_while_text_arrives_stays_selected_to_the_character",
    "tests/ui/transcript/test_clipboard.py::test_the_menu_of_a_message",
)
def test_what_is_dragged_over_while_text_arrives_is_copied_after_the_end(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    hands, seen = Hands(real_display), threading.Event()
    with ModelServer(Story(story("The first *words* of an answer ", seen), PACE)) as server:
        arguments = ("--base-url", server.url, "--model", MODEL)
        with opened(real_display, tmp_path / "data", *arguments) as (_, screen):
            ask(screen)

            def dragged_over() -> str:
                # Text still arrives: at the time of the drag this may be a gap between two lines.
                left, top, width, _ = screen.wait_for("Assistant said")["box"]
                line = max(top, screen.wait_for("Transcript")["box"][1]) + 18
                hands.drag((left + 30, line), (left + width // 6, line), (left + width // 3, line))
                screen.keys("ctrl+c")
                return hands.clipboard().strip()

            early = wait_until("it is copied", dragged_over)
            assert screen.find("Stop")
            arrived = len(server.streams[0].text)
            seen.set()
            screen.wait_for("Send")
            assert len(server.streams[0].text) > arrived, "nothing came after the copy"
            with screen.clipboard(b"something else", "UTF8_STRING"):
                pass
            screen.keys("ctrl+c")
            wait_until("it is copied again", lambda: hands.clipboard().strip() == early)
            # A copy has the bullets of a list, which are not part of its text.
            copied = " ".join(early.replace("• ", "").split())
            wait_until("it is in the answer", lambda: copied in " ".join(screen.last("Assistant said").split()))
            kinds = hands.clipboard("TARGETS").split()
            assert {"text/markdown", "text/html", "UTF8_STRING"} <= set(kinds)
            assert "<meta" in hands.clipboard("text/html")
            # Assistive technology hears of this menu when its entries get the keyboard; the menu is not in the tree.
            screen.keys("shift+F10", "k")
            wait_until("the message is copied", lambda: hands.clipboard().startswith("The first *words* of"))
            screen.keys("Menu", "v")
            wait_until("the conversation is copied", lambda: hands.clipboard().startswith("## You said"))


@pytest.mark.exhaustive(
    "tests/ui/transcript/test_view.py::test_scrolled_up_it_stays_to_the_pixel_and_counts_what_is_new"
)
def test_who_reads_above_sees_the_same_picture_while_text_arrives_below(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    hands, enough = Hands(real_display), threading.Event()
    above = "".join(f"## Part {number}\n\nSome words of part {number}.\n\n- an item\n\n" for number in range(40))
    with ModelServer(Story(story(above, enough), PACE)) as server:
        arguments = ("--base-url", server.url, "--model", MODEL)
        with opened(real_display, tmp_path / "data", *arguments) as (_, screen):
            ask(screen)
            left, top, width, height = screen.wait_for("Transcript")["box"]
            hands("mousemove", str(left + width // 2), str(top + height // 2))
            hands("click", "--repeat", "6", "4")
            wait_until("it stays", lambda: screen.find("Jump to latest"))
            # Without the scroll bar, whose handle shrinks, and without the button that leads to the end.
            seen = (left, top, width - 40, height - 80)
            first = settled(hands, seen)
            compared = 0
            while compared < 5:
                assert screen.find("Stop")
                arrived = len(server.streams[0].text)
                wait_longer(server.streams[0], arrived)
                difference = ImageChops.difference(first, hands.picture(seen)).getbbox()
                assert difference is None, f"other pixels after {arrived} characters: {difference}"
                compared += 1
            enough.set()
            assert len(first.getcolors(1 << 24) or ()) > 10, "an empty picture"
            wait_until("the end is there", lambda: screen.find("Send"))
            assert ImageChops.difference(first, hands.picture(seen)).getbbox() is None
