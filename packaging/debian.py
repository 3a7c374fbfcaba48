"""What the Debian package must do: install, describe itself, and run from where it was put."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from build import APPLICATION_ID
from linux_tree import ICON_SIZES
from windows import opened

Check = tuple[str, bool, str]
ICON = "usr/share/icons/hicolor/scalable/apps/desktop-agent.svg"
DRAWN = "usr/share/icons/hicolor/*/apps/desktop-agent.png"
STARTER = "usr/share/applications/desktop-agent.desktop"


def debian(package: Path, shown: dict[str, str], root: Path) -> Iterator[Check]:
    """Yield all checks."""
    how = install(package, root)
    program = root / "usr/bin/desktop-agent"
    version = subprocess.run([program, "--version"], env=shown, capture_output=True, text=True, check=False)
    yield "Debian package installs", version.returncode == 0, f"{how}; says {version.stdout.strip()}"
    with opened(shown, root / "data", "--demo", command=[str(program)]) as (_, screen):
        screen.wait_for("Message")
        yield "and its window opens", True, "from usr/bin of its root"
    icon, drawn = root / ICON, sorted(root.glob(DRAWN))
    is_drawing = icon.is_file() and b"<svg" in icon.read_bytes()[:400]
    yield "icons", is_drawing and len(drawn) == len(ICON_SIZES), f"{ICON} and {len(drawn)} sizes"
    places = [STARTER, "usr/share/man/man1/desktop-agent.1.gz", f"usr/share/metainfo/{APPLICATION_ID}.metainfo.xml"]
    absent = [place for place in places if not (root / place).is_file()]
    yield "entry, page and metadata", not absent, ", ".join(absent) or ", ".join(places)
    missing = undeclared(package, root)
    yield "dependencies", not missing, "; ".join(missing) or field(package, "Depends")


def install(package: Path, root: Path) -> str:
    """Install it with dpkg into a root of its own, if root may; else unpack it. Returns how it was done."""
    if os.geteuid() == 0:
        (root / "var/lib/dpkg/updates").mkdir(parents=True)
        (root / "var/lib/dpkg/info").mkdir()
        (root / "var/lib/dpkg/status").touch()
        command = ["dpkg", f"--root={root}", "--force-depends", "--install", str(package)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return "dpkg --install"
    subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    return "dpkg-deb --extract"


def field(package: Path, name: str) -> str:
    """Return a field of the package's control file."""
    return subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True, check=True).stdout.strip()


def undeclared(package: Path, root: Path) -> list[str]:
    """Return system libraries that the program loads although no package that it depends on brings them."""
    declared = {re.split(r"[ (|]", entry.strip())[0] for entry in field(package, "Depends").split(",")}
    # These come with libc6 and the C++ runtime of every system, and with libxcb1, libgl1 and libfontconfig1.
    declared |= with_their_own(declared)
    inside = root / "usr/lib/desktop-agent"
    needed: set[str] = set()
    for file in [inside / "desktop-agent", *inside.rglob("*.so*")]:
        listed = subprocess.run(
            ["ldd", file],
            env={**os.environ, "LD_LIBRARY_PATH": str(inside / "_internal")},
            capture_output=True,
            text=True,
            check=False,
        )
        needed |= {path for path in re.findall(r"=> (/.+?) \(0x", listed.stdout) if str(root) not in path}
    return [f"{path} is of {owner}" for path in sorted(needed) if (owner := owner_of(path)) not in declared]


def with_their_own(names: set[str]) -> set[str]:
    """Return these packages and what they depend on in turn, as far as dpkg knows it."""
    known: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        known.add(name)
        command = ["dpkg-query", "-W", "-f=${Depends}, ${Pre-Depends}", name]
        entries = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split(",")
        waiting |= {other for entry in entries if (other := re.split(r"[ (:|]", entry.strip())[0])} - known
    return known


def owner_of(path: str) -> str:
    """Return the package that brought a file."""
    for candidate in (path, path.removeprefix("/usr"), str(Path(path).resolve())):
        output = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True, check=False).stdout
        if output:
            return output.split(":")[0]
    return f"nobody ({path})"
