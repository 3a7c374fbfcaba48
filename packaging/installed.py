"""`make installed`: the Debian package on a system that has nothing else: `python packaging/installed.py [SUITE]`

A root of its own, made by mmdebstrap, gets the package by apt, with what it depends on. A user without rights starts
it by its desktop entry, asks the demo, connects a server with a key, and closes it; then it is removed, and nothing may
be left but the user's own files. A picture of each step stays in --pictures, and a list of what is left. Needs Linux,
root and mmdebstrap, and what `make package` built.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from build import DIST
from connecting import ADD, PARTS, SOCKETS, connecting
from systems import HOME, USER, cache, command_inside, inside, make_root, mirror
from tests.frame.displays import base_environment, display
from windows import picture_of_screen, window_of

Check = tuple[str, bool, str]
PACKAGES = "ca-certificates,libglib2.0-bin,mount,passwd"
"""The desktop entry is started by gio, as desktops do."""
PATIENCE = 120.0
INSTALL = """
set -e
useradd --create-home --uid 1000 {user}
apt-get update -qq
apt-get install -y -qq --no-install-recommends /root/*.deb
"""
REMOVE = "apt-get purge -y -qq desktop-agent && apt-get autopurge -y -qq"
LISTED = "dpkg-query --list desktop-agent 2>&1"
ENTRY = "/usr/share/applications/desktop-agent.desktop"
LAUNCH = f"""
gio launch {ENTRY}
sleep 5
while grep -qs desktop-agent /proc/[0-9]*/comm; do sleep 1; done
"""
"""A program ends with the first process of the root, so this script waits for it."""
ACCOUNTS = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
BOOKS = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "etc/ld.so.cache", "etc/shells", "run", "tmp", "root")
"""What apt and the system itself write at every installation."""
OURS = ("proc", "sys", "dev", ".machine")
"""What `systems.ENTER` mounts in a root."""


def fresh_root(suite: str, folder: Path, address: str | None) -> Path:
    """Return a copy of an unused root; that is made first where there is none."""
    unused, root = folder / f"{suite}-bare", folder / f"{suite}-installed"
    if not unused.exists():
        sys.stdout.write(f"{suite}: making a root of it, in some minutes\n")
        sys.stdout.flush()
        make_root(suite, unused, address or mirror(), PACKAGES)
    subprocess.run(("rm", "-rf", root), check=True)
    subprocess.run(("cp", "-a", "--reflink=auto", unused, root), check=True)
    return root


def files_of(root: Path) -> set[str]:
    """Return all files and folders of a root but those of BOOKS and OURS."""
    paths: set[str] = set()
    for folder, folders, names in os.walk(root):
        here = Path(folder).relative_to(root)
        folders[:] = [name for name in folders if str(here / name) not in (*BOOKS, *OURS)]
        paths |= {str(here / name) for name in (*names, *folders) if str(here / name) not in BOOKS}
    return paths


def output_of(root: Path, script: str) -> str:
    """Return what a script of the user prints."""
    started = command_inside(root, script, USER)
    return subprocess.run(**started, capture_output=True, text=True, check=False, timeout=PATIENCE).stdout


@contextmanager
def opened(root: Path, script: str, shown: dict[str, str]) -> Iterator[None]:
    """Run a program of the user with its window open; afterwards the window is closed, or the program killed."""
    started = command_inside(root, script, USER, SOCKETS, DISPLAY=shown["DISPLAY"])
    process = subprocess.Popen(**started, start_new_session=True)
    try:
        wait_until("a window", lambda: window_of("desktop-agent", shown) or process.poll() is not None)
        yield
    finally:
        xdotool(shown, "search", "--onlyvisible", "--class", "desktop-agent", "windowclose")
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def xdotool(shown: dict[str, str], *words: str) -> None:
    """Move the pointer or press keys, with xdotool."""
    subprocess.run((shutil.which("xdotool") or "xdotool", *words), env=shown, check=False, capture_output=True)


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    """Wait until something is so; end the program if that takes too long."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > until:
            sys.exit(f"{what} did not come within {PATIENCE:.0f} s")
        time.sleep(0.2)


def answer_in(root: Path) -> str:
    """Return the stored answer of the only conversation, as another process of the user reads it."""
    listed = output_of(root, "desktop-agent conversations list --json")
    conversations = json.loads(listed) if listed.strip() else []
    if not conversations:
        return ""
    return output_of(root, f"desktop-agent conversations show {conversations[0]['id']}")


def checks(root: Path, package: Path, pictures: Path, shown: dict[str, str]) -> Iterator[Check]:
    """Yield all checks, in the order in which a person does these things."""
    before = files_of(root)
    shutil.copy(package, root / "root")
    code = inside(root, INSTALL, "root")
    version = output_of(root, "desktop-agent --version")
    yield "installs", code == 0 and version.startswith("desktop-agent "), version.strip()
    with opened(root, LAUNCH, shown):
        picture_of_screen(shown, pictures / "1-started.png")
        yield "starts by its desktop entry", window_of("desktop-agent", shown), "1-started.png"
    with opened(root, "exec desktop-agent --demo", shown):
        picture_of_screen(shown, pictures / "2-demo.png")
        xdotool(shown, "type", "--delay", "20", "Hello there")
        xdotool(shown, "key", "Return")
        wait_until("an answer", lambda: "demo model" in answer_in(root))
        picture_of_screen(shown, pictures / "3-answer.png")
        yield "answers", True, f"{len(answer_in(root))} characters are stored; 3-answer.png"
    code = inside(root, REMOVE, "root")
    left = sorted(files_of(root) - before)
    is_gone = not (root / "usr/lib/desktop-agent").exists()
    yield "is removed", code == 0 and is_gone, f"{len(left)} files more than before"
    own = [path for path in left if path.startswith(HOME[1:])]
    system = [path for path in left if path not in own and not is_users(path)]
    yield "leaves the person's files", has_conversations(own), f"{len(own)} in {HOME}"
    yield "leaves nothing else", not system, ", ".join(system[:20]) or "nothing"
    yield from with_keyring(root, pictures, shown)
    own = sorted(path for path in files_of(root) - before if path.startswith(HOME[1:]))
    write_left(pictures / "6-left.txt", output_of(root, LISTED), own, system)
    yield "leaves them again", has_conversations(own), f"{len(own)} in {HOME}; 6-left.txt"


def with_keyring(root: Path, pictures: Path, shown: dict[str, str]) -> Iterator[Check]:
    """Install it again, together with a keyring, connect a server with a key, and remove it.

    Apt may leave dependencies of the keyring behind, so the files of the system are not compared.
    """
    code = inside(root, ADD, "root")
    yield "installs again, with a keyring", code == 0, PARTS
    yield from connecting(root, pictures, shown)
    yield "is removed again", inside(root, REMOVE, "root") == 0, "the keyring stays"


def has_conversations(paths: list[str]) -> bool:
    """Return whether the database of the person's conversations is among them."""
    return any(path.endswith("/conversations.sqlite3") for path in paths)


def write_left(file: Path, listed: str, own: list[str], system: list[str]) -> None:
    """Write what is left after the removal, as text: there is no window to take a picture of."""
    lines = ["$ dpkg-query --list desktop-agent", listed.strip(), ""]
    for where, paths in ((f"In {HOME}, of the person", own), ("Elsewhere", system)):
        lines += [f"{where}: {len(paths)} files and folders", *(f"    /{path}" for path in paths)]
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")


def is_users(path: str) -> bool:
    """Return whether a file is there because the user account is."""
    return path in {f"etc/{name}-" for name in ACCOUNTS} or path == f"var/mail/{USER}"


def main() -> int:
    """Run all checks. Returns 1 when one failed."""
    parser = argparse.ArgumentParser(description="Tries the Debian package on a system that has nothing else.")
    parser.add_argument("suite", nargs="?", default="trixie")
    parser.add_argument("--folder", type=Path, default=cache())
    parser.add_argument("--mirror", help="where the packages are, instead of where this machine has its own from")
    parser.add_argument("--pictures", type=Path, default=DIST / "pictures")
    arguments = parser.parse_args()
    if os.geteuid():
        sys.exit("This needs root: it makes a root of another system, and goes into it.")
    (package,) = DIST.glob("*.deb")
    arguments.pictures.mkdir(parents=True, exist_ok=True)
    root = fresh_root(arguments.suite, arguments.folder.resolve(), arguments.mirror)
    failed = 0
    with tempfile.TemporaryDirectory() as home, display(base_environment(Path(home)), "1280x860") as shown:
        for name, passed, seen in checks(root, package, arguments.pictures, shown):
            failed += not passed
            sys.stdout.write(f"{'ok  ' if passed else 'BAD '} {name}: {seen}\n")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
