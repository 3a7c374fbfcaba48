"""Every screen of the gallery as a screen reader finds it, and as the keyboard goes through it.

What takes the keyboard has a role and a name of its own, without its value; Tab comes to it, or the arrows inside of a
list, a menu or a group; and it is read in the order that tests/gallery/reading_order records.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame import displays
from tests.frame.selection import few
from tests.gallery import spoken

RECORDED = Path(spoken.__file__).with_name("reading_order")
SCREENS = sorted(file.stem for file in RECORDED.glob("*.txt"))
ANEW = "If it is right so: python -m tests.gallery.walk {} --write tests/gallery/reading_order"

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="recorded on Linux"),
    # All screens are read while the first test waits.
    pytest.mark.timeout(5_400),
]


class Walk:
    """All the screens that are judged in this run, read by one process."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "tests.gallery.walk", "--list", f"--write={folder}", f"--expect={RECORDED}"]
        done = subprocess.run(
            [*command, *names],
            env=displays.base_environment(folder / "home"),
            capture_output=True,
            text=True,
            check=False,
        )
        self.said = done.stderr
        # The seconds of each screen are on lines of several words.
        self.every = {line for line in done.stdout.splitlines() if " " not in line}

    def faults(self, name: str) -> list[str]:
        """Return what is wrong with a screen; all of the walk if it never came there."""
        if not (self.folder / f"{name}.txt").exists():
            return [self.said[-3000:]]
        return [line for line in self.said.splitlines() if line.startswith(f"{name}: ")]


@pytest.fixture(scope="module")
def walk(request, tmp_path_factory):
    items = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    return Walk(tmp_path_factory.mktemp("walk"), [item.callspec.params["name"] for item in items])


@pytest.mark.parametrize("name", few(SCREENS, 14, "test_it_is_reached_told_apart_and_read_in_order: other screens"))
def test_it_is_reached_told_apart_and_read_in_order(walk, name):
    assert walk.faults(name) == []
    read = (walk.folder / f"{name}.txt").read_text("utf-8").splitlines()
    recorded = (RECORDED / f"{name}.txt").read_text("utf-8").splitlines()
    assert read == recorded, ANEW.format(name)


def test_every_screen_is_recorded(walk):
    assert len(walk.every) > 200
    assert walk.every == set(SCREENS), ANEW.format(" ".join(sorted(walk.every - set(SCREENS))))
