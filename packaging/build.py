"""`make package`: the program as a folder that needs no Python, and as a Debian package. Both go to dist/."""

import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from prune import libraries, prune

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
BUILD = ROOT / "build"
FOLDER = DIST / "desktop-agent"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# What PyInstaller leaves to the system: drivers and what must match the machine's own configuration.
DRIVERS = ("libgl1", "libegl1", "libxcb1", "libwayland-client0", "libwayland-cursor0", "libwayland-egl1")
DEPENDS = (*DRIVERS, "libfontconfig1", "fontconfig", "ca-certificates")
RECOMMENDS = ("fonts-noto-core", "fonts-noto-color-emoji", "gnome-keyring | kwalletmanager | keepassxc", "xdg-utils")

COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Desktop Agent

Files: *
Copyright: The Desktop Agent authors
License: Expat

License: Expat
{license}
"""


def run(*command: str | Path) -> None:
    """Run, and end with its code when it fails."""
    result = subprocess.run(command, cwd=ROOT, check=False)
    if result.returncode != 0:
        sys.exit(result.returncode)


def freeze() -> None:
    """The folder."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    run(
        *(sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
        *("--distpath", DIST, "--workpath", BUILD / "pyinstaller", ROOT / "packaging" / "desktop-agent.spec"),
    )
    if sys.platform == "linux":
        prune(FOLDER)


def needed_glibc(folder: Path) -> str:
    """The newest symbol version of the C library that any part asks for."""
    asked = {(2, 17)}
    for file in libraries(folder):
        symbols = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=False).stdout
        asked |= {(int(a), int(b)) for a, b in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", symbols)}
    return "{}.{}".format(*max(asked))


def size_of(folder: Path) -> int:
    """Bytes on disk."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())


def place(source: Path, target: Path) -> None:
    """Copy one file, readable by everybody."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o644)


def control(tree: Path, architecture: str) -> str:
    """The package's description (Debian Policy Manual, chapter 5)."""
    fields = {
        "Package": "desktop-agent",
        "Version": PROJECT["version"],
        "Architecture": architecture,
        "Maintainer": "The Desktop Agent authors <desktop-agent@localhost>",
        "Section": "utils",
        "Priority": "optional",
        "Installed-Size": str(size_of(tree) // 1024),
        "Depends": ", ".join([f"libc6 (>= {needed_glibc(tree)})", *DEPENDS]),
        "Recommends": ", ".join(RECOMMENDS),
        "Description": PROJECT["description"],
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


def debian_package() -> Path:
    """Lay the folder out as Debian wants it, and pack it."""
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    tree = BUILD / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(FOLDER, tree / "usr/lib/desktop-agent", symlinks=True)
    (tree / "usr/bin").mkdir()
    (tree / "usr/bin/desktop-agent").symlink_to("../lib/desktop-agent/desktop-agent")
    share = tree / "usr/share"
    place(ROOT / "packaging/desktop-agent.desktop", share / "applications/desktop-agent.desktop")
    icon = ROOT / "resources/icons/desktop-agent.svg"
    if icon.exists():
        place(icon, share / "icons/hicolor/scalable/apps/desktop-agent.svg")
    else:
        sys.stderr.write("resources/icons/desktop-agent.svg is missing: the package has no icon\n")
    documents = share / "doc/desktop-agent"
    place(ROOT / "CHANGELOG.md", documents / "changelog.md")
    text = "\n".join(f" {line}" if line else " ." for line in (ROOT / "LICENSE").read_text().splitlines())
    (documents / "copyright").write_text(COPYRIGHT.format(license=text))
    description = control(tree, architecture)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(description)
    package = DIST / f"desktop-agent_{PROJECT['version']}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, package)
    return package


def main() -> None:
    """Build both and say how large they are."""
    freeze()
    sys.stdout.write(f"{FOLDER.relative_to(ROOT)}: {size_of(FOLDER) / 1e6:.0f} MB\n")
    if shutil.which("dpkg-deb"):
        package = debian_package()
        sys.stdout.write(f"{package.relative_to(ROOT)}: {package.stat().st_size / 1e6:.0f} MB\n")
    else:
        sys.stdout.write("No dpkg-deb here, so no Debian package.\n")


if __name__ == "__main__":
    main()
