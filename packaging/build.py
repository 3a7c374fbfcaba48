"""`make package`: the program as a folder that needs no Python, and the packages of Linux. All of it goes to dist/.

The same commit gives the same bytes, in whatever folder and whenever: `make reproducible` shows it.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from bill_of_materials import write_bill
from linux_packages import packages, run, size_of
from linux_tree import draw_icon, lay_out, settle
from prune import prune

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
BUILD = ROOT / "build"
FOLDER = DIST / "desktop-agent"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
APPLICATION_ID = SETTINGS["tool"]["desktop-agent"]["application-id"]


def set_source_date() -> None:
    """Date everything by the commit, unless SOURCE_DATE_EPOCH says otherwise (reproducible-builds.org)."""
    if "SOURCE_DATE_EPOCH" not in os.environ:
        command = ("git", "log", "-1", "--format=%ct")
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        os.environ["SOURCE_DATE_EPOCH"] = commit.stdout.strip() or str(int((ROOT / "pyproject.toml").stat().st_mtime))


def draw_other_icons(folder: Path) -> None:
    """Draw the icon in the formats of Windows and macOS, where the recipe of PyInstaller expects it."""
    from PIL import Image

    folder.mkdir(exist_ok=True)
    draw_icon(folder / "icon.png", 1024)
    with Image.open(folder / "icon.png") as picture:
        picture.save(folder / "desktop-agent.ico", sizes=[(side, side) for side in (16, 24, 32, 48, 64, 128, 256)])
        picture.save(folder / "desktop-agent.icns")


def write_update_feed(folder: Path, feed: str) -> Path | None:
    """Write what `ui.bridge.desktop.updates` reads. Ends the program if that is neither an address nor `system`."""
    if not feed:
        return None
    parts = urlsplit(feed)
    if feed != "system" and (parts.scheme != "https" or not parts.hostname or parts.username or not feed.isascii()):
        sys.exit("UPDATE_FEED is an https address, or the word system.")
    target = next(folder.rglob("resources/guide.md")).with_name("updates.json")
    target.write_text(f"{json.dumps({'feed': feed})}\n", encoding="utf-8")
    return target


def freeze() -> None:
    """Make the folder, with its bill of materials."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    # Work files of an earlier build would be reused; and sets are written in the order of their hashes.
    work = BUILD / "pyinstaller"
    shutil.rmtree(work, ignore_errors=True)
    draw_other_icons(BUILD)
    spec = ROOT / "packaging" / "desktop-agent.spec"
    options = ("--noconfirm", "--log-level", "WARN", "--distpath", DIST, "--workpath", work)
    run(sys.executable, "-m", "PyInstaller", *options, spec, PYTHONHASHSEED="0")
    if sys.platform == "linux":
        prune(FOLDER)
    write_update_feed(FOLDER, os.environ.get("UPDATE_FEED", ""))
    bill = write_bill(FOLDER, PROJECT["version"])
    shutil.copyfile(bill, DIST / f"desktop-agent-{PROJECT['version']}.cdx.json")
    settle(FOLDER)


def main() -> None:
    """Build all, and print the sizes."""
    set_source_date()
    freeze()
    sys.stdout.write(f"{FOLDER.relative_to(ROOT)}: {size_of(FOLDER) / 1e6:.0f} MB\n")
    if sys.platform == "linux":
        tree = BUILD / "tree"
        lay_out(FOLDER, tree, PROJECT["version"], APPLICATION_ID)
        for package in packages(tree, DIST, PROJECT):
            sys.stdout.write(f"{package.relative_to(ROOT)}: {package.stat().st_size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
