"""The main screens as Orca gets them: over a private accessibility bus, in the order of tests/gallery/bus_order."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.selection import few
from tests.gallery import bus_walk

RECORDED = Path(bus_walk.__file__).with_name("bus_order")
ANEW = "If it is right so: python -m tests.gallery.bus_walk {} --write tests/gallery/bus_order"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has this bus")


@pytest.fixture(scope="module")
def walk(request, real_display, tmp_path_factory):
    """The folder of what was read, and what was wrong: one process for all screens that are judged in this run."""
    folder = tmp_path_factory.mktemp("bus")
    here = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    names = [item.callspec.params["name"] for item in here]
    command = [sys.executable, "-m", "tests.gallery.bus_walk", "--render", *names, f"--write={folder}"]
    command.append(f"--expect={RECORDED}")
    return folder, subprocess.run(command, env=real_display, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("name", few(bus_walk.MAIN, 1, "test_the_bus_says_what_qt_says: other screens"))
def test_the_bus_says_what_qt_says(name, walk):
    folder, said = walk
    assert (folder / f"{name}.txt").exists(), said[-3000:]
    assert [line for line in said.splitlines() if line.startswith(f"{name}: ")] == []
    recorded = (RECORDED / f"{name}.txt").read_text("utf-8").splitlines()
    assert (folder / f"{name}.txt").read_text("utf-8").splitlines() == recorded, ANEW.format(name)


def test_every_main_screen_is_recorded():
    assert sorted(file.stem for file in RECORDED.glob("*.txt")) == sorted(bus_walk.MAIN)
