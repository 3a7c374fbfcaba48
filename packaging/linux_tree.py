"""Everything that a Linux system gets, laid out as it is installed: the program, its icons, entries and pages."""

import gzip
import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "packaging" / "linux"
ICON = ROOT / "resources" / "icons" / "desktop-agent.svg"
ICON_SIZES = (16, 22, 24, 32, 48, 64, 96, 128, 192, 256, 512)
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Desktop Agent
Comment: What the program brings along, with the licence of each part, is listed in
 /usr/lib/desktop-agent/_internal/resources/components.cdx.json and in the program under Help.

Files: *
Copyright: The Desktop Agent authors
License: Expat

License: Expat
{license}
"""


def lay_out(program: Path, tree: Path, version: str, application_id: str) -> None:
    """Fill an empty folder with `usr`; every file has the same time, and is readable by everybody."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(program, tree / "usr/lib/desktop-agent", symlinks=True)
    (tree / "usr/bin").mkdir()
    (tree / "usr/bin/desktop-agent").symlink_to("../lib/desktop-agent/desktop-agent")
    share = tree / "usr/share"
    place(DATA / "desktop-agent.desktop", share / "applications/desktop-agent.desktop")
    metadata = share / "metainfo" / f"{application_id}.metainfo.xml"
    metadata.parent.mkdir()
    metadata.write_text(application_metadata(version, application_id), encoding="utf-8")
    page = share / "man/man1/desktop-agent.1.gz"
    page.parent.mkdir(parents=True)
    page.write_bytes(gzip.compress((DATA / "desktop-agent.1").read_bytes(), mtime=0))
    icons = share / "icons/hicolor"
    place(ICON, icons / "scalable/apps/desktop-agent.svg")
    draw_icons(icons)
    documents = share / "doc/desktop-agent"
    place(ROOT / "CHANGELOG.md", documents / "changelog.md")
    text = "\n".join(f" {line}" if line else " ." for line in (ROOT / "LICENSE").read_text().splitlines())
    (documents / "copyright").write_text(COPYRIGHT.format(license=text))
    settle(tree)


def settle(tree: Path) -> None:
    """Give all files the same time and plain permissions, whoever built it and whenever."""
    moment = int(os.environ["SOURCE_DATE_EPOCH"])
    for path in [*tree.rglob("*"), tree]:
        if not path.is_symlink():
            is_program = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if is_program else 0o644)
        os.utime(path, (moment, moment), follow_symlinks=False)


def application_metadata(version: str, application_id: str) -> str:
    """Return what software centres show, in the format of AppStream."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", changes, re.MULTILINE)
    date = f"{datetime.fromtimestamp(int(os.environ['SOURCE_DATE_EPOCH']), UTC):%Y-%m-%d}"
    if released:
        release = f'<release version="{version}" date="{released[1]}"/>'
    else:
        release = f'<release version="{version}" date="{date}" type="development"/>'
    text = (DATA / "desktop-agent.metainfo.xml").read_text(encoding="utf-8")
    return text.replace("@ID@", application_id).replace("@RELEASE@", release)


def draw_icons(folder: Path, sizes: tuple[int, ...] = ICON_SIZES) -> list[Path]:
    """Draw the icon as PNG in a folder of the hicolor theme. Returns the files."""
    files: list[Path] = []
    for side in sizes:
        target = folder / f"{side}x{side}" / "apps" / "desktop-agent.png"
        target.parent.mkdir(parents=True)
        draw_icon(target, side)
        files.append(target)
    return files


def draw_icon(target: Path, side: int) -> None:
    """Draw the icon into a picture file, in the format that its suffix names."""
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    picture = QImage(side, side, QImage.Format.Format_ARGB32)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    QSvgRenderer(str(ICON)).render(painter)
    painter.end()
    if not picture.save(str(target)):
        message = f"{target} cannot be written"
        raise OSError(message)


def place(source: Path, target: Path) -> None:
    """Copy one file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
