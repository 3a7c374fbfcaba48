"""On a small screen nothing is cut and every control can be reached.

480 x 600 pixels, also with text of 24 points; and 360 x 640 in German, which has longer words.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame import displays
from tests.frame.selection import few
from tests.gallery.__main__ import screen_for

LARGE_TEXT = "229"
"""Percent of 10.5 points that are 24 points."""
LARGE = (
    "approval-five",
    "approval-others-too",
    "server-form",
    "server-page",
    "server-several",
    "welcome-no-server",
    "settings-appearance",
    "conversation-settings",
    "help-about",
    "palette",
    "closing-unsaved",
    "banners",
    "composer-too-long",
    "trash",
    "welcome-servers",
    "trash-asked",
    "question-choices",
    "model-picker",
)
NARROW = (
    "banners-narrow",
    "picture-viewer",
    "menu-arguments",
    "found-histories",
    "versions-files",
    "deleted-but-kept",
    "settings-storage",
)
SCENES = [
    *((LARGE_TEXT, "480x600", "en", LARGE[first::6]) for first in range(6)),
    ("100", "480x600", "en", ("approval-tainted", "welcome-servers", "settings-providers", "help-guide")),
    ("100", "360x640", "de", NARROW),
]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="private displays are built for Linux")
@pytest.mark.parametrize(
    ("zoom", "room", "language", "scenes"),
    few(SCENES, 1, "tests/ui/approval/test_dialog_layout.py, tests/ui/settings/test_narrow.py"),
)
def test_every_screen_fits(zoom, room, language, scenes, tmp_path):
    command = [sys.executable, "-m", "tests.gallery", "--render", "--theme=light", "--scale=1", f"--room={room}"]
    command += [f"--zoom={zoom}", f"--language={language}", f"--folder={tmp_path}", *scenes]
    width, height = map(int, room.split("x"))
    with displays.display(displays.base_environment(tmp_path), screen_for((width, height))) as shown:
        environment = {**shown, "QT_SCALE_FACTOR": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(list(Path(tmp_path).glob("*-small.png"))) == len(scenes)
