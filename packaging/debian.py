"""What the Debian package must do: install, describe itself, and run from where it was put."""

import configparser
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from windows import opened

Check = tuple[str, bool, str]
ICON = "usr/share/icons/hicolor/scalable/apps/desktop-agent.svg"
STARTER = "usr/share/applications/desktop-agent.desktop"


def debian(package: Path, shown: dict[str, str], root: Path) -> Iterator[Check]:
    """All of it."""
    how = install(package, root)
    program = root / "usr/bin/desktop-agent"
    version = subprocess.run([program, "--version"], env=shown, capture_output=True, text=True, check=False)
    yield "Debian package installs", version.returncode == 0, f"{how}; says {version.stdout.strip()}"
    with opened(shown, root / "data", "--demo", command=[str(program)]) as (_, screen):
        screen.wait_for("Message")
        yield "and its window opens", True, "from usr/bin of its root"
    icon = root / ICON
    is_drawing = icon.is_file() and b"<svg" in icon.read_bytes()[:400]
    yield "icon", is_drawing, ICON
    problems = wrong_in_starter(root / STARTER)
    yield "desktop entry", not problems, "; ".join(problems) or STARTER
    missing = undeclared(package, root)
    yield "dependencies", not missing, "; ".join(missing) or field(package, "Depends")


def install(package: Path, root: Path) -> str:
    """With dpkg into a root of its own, where one may; else unpacked."""
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


def wrong_in_starter(file: Path) -> list[str]:
    """What desktop-file-validate says, or the rules of the Desktop Entry Specification 1.5 that matter most."""
    if checker := shutil.which("desktop-file-validate"):
        said = subprocess.run([checker, file], capture_output=True, text=True, check=False)
        return said.stdout.strip().splitlines()
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  keys are case sensitive here
    parser.read(file, encoding="utf-8")
    entry = dict(parser["Desktop Entry"])
    wrong = [f"{key} is missing" for key in ("Type", "Name", "Exec", "Icon", "Categories") if not entry.get(key)]
    wrong += [f"{key} must end with ;" for key in ("Categories", "Keywords") if not entry.get(key, ";").endswith(";")]
    known = re.compile(r"(Type|Version|Name|GenericName|Comment|Exec|Icon|Terminal|Categories|Keywords|StartupWMClass)")
    return wrong + [f"{key} is unknown" for key in entry if not known.fullmatch(re.sub(r"\[\w+\]$", "", key))]


def field(package: Path, name: str) -> str:
    """One line of its description."""
    return subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True, check=True).stdout.strip()


def undeclared(package: Path, root: Path) -> list[str]:
    """System libraries that the program loads although no package that it depends on brings them."""
    declared = {re.split(r"[ (|]", each.strip())[0] for each in field(package, "Depends").split(",")}
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
    """What those packages depend on in turn, where dpkg knows them."""
    known: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        known.add(name)
        asked = ["dpkg-query", "-W", "-f=${Depends}, ${Pre-Depends}", name]
        said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        waiting |= {found for each in said.split(",") if (found := re.split(r"[ (:|]", each.strip())[0])} - known
    return known


def owner_of(path: str) -> str:
    """The package that brought a file."""
    for candidate in (path, path.removeprefix("/usr"), str(Path(path).resolve())):
        said = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True, check=False).stdout
        if said:
            return said.split(":")[0]
    return f"nobody ({path})"
