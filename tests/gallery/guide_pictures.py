"""The pictures of the user guide: screens of the gallery with fewer colours, so that the repository stays small.

python -m tests.gallery.guide_pictures
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
PICTURES = {
    "welcome": "welcome-no-server",
    "approval": "approval-changed-file",
    "versions": "versions-hover",
    "search": "search-results",
    "found": "found-folders",
    "inbox": "inbox",
    "scheduled": "scheduled",
    "usage": "usage",
}
"""The file in the guide, and the screen of the gallery."""


def main() -> None:
    """Draw them anew."""
    with tempfile.TemporaryDirectory() as folder:
        screens = [*PICTURES.values()]
        size = ("--theme", "light", "--scale", "1", "--folder", folder)
        subprocess.run([sys.executable, "-m", "tests.gallery", *screens, *size], check=True)
        for name, screen in PICTURES.items():
            (drawn,) = Path(folder).glob(f"{screen}-light-*.png")
            with Image.open(drawn) as picture:
                small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
                small.save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
