"""Runs a module of the tests as a user without rights, also where the tests run as root.

    python -m tests.frame.unprivileged tests.some.module its arguments

Root cannot show what a confinement holds: half of what it may do comes from its user id. So root enters a mount
namespace of its own, in which the interpreter and the checkout can be read by everybody and /etc/passwd knows one user
more, becomes that user, and runs the module there. Nothing outside of the namespace changes. Whoever is not root runs
the module as they are, with a home folder of their own.
"""

import ctypes
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
USER = 54_321
"""The user and group id. Of no account on the machine: it owns nothing there."""

BIND = 4096
"""What mount(2) knows a second place of something by."""

_NEW_MOUNTS = 0x00020000
_SET_DEATH_SIGNAL = 1
_RECURSIVE, _PRIVATE = 16384, 1 << 18
_ADDED = f"tester:x:{USER}:{USER}:a test:{{home}}:/bin/bash\n"


def run_unprivileged(
    module: str, *arguments: str, timeout: float, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests as `main` does, and return what it wrote."""
    return subprocess.run(
        [sys.executable, "-m", "tests.frame.unprivileged", module, *arguments],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="unprivileged-") as name:
        home = Path(name)
        child = os.fork()
        if not child:
            _run(home, sys.argv[1], sys.argv[2:])
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(home: Path, module: str, arguments: list[str]) -> None:
    try:
        if os.geteuid() == 0:
            _become_unprivileged(home)
        # Whoever runs a test no longer waits for it: it ends too. Becoming another user would undo this.
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        work = home / "home"
        work.mkdir(exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "PYTHON"))}
        env = kept | {"HOME": str(work), "TMPDIR": str(home), "USER": "tester", "LOGNAME": "tester"}
        env |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        os.chdir(work)
        os.execve(sys.executable, [sys.executable, "-m", module, *arguments], env)
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    os._exit(125)


def _become_unprivileged(home: Path) -> None:
    unshare()
    passwd = home / "passwd"
    passwd.write_text(Path("/etc/passwd").read_text() + _ADDED.format(home=home / "home"))
    passwd.chmod(0o644)
    mount(str(passwd), "/etc/passwd")
    needed = dict.fromkeys(map(Path, (ROOT, sys.prefix, sys.base_prefix, sysconfig.get_paths()["purelib"])))
    _open_the_way(home, list(needed))
    os.chown(home, USER, USER)
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)


def _open_the_way(home: Path, needed: list[Path]) -> None:
    """Put an empty folder over each closed one on the way to what is needed, and in it only what is needed."""
    closed = {first for each in needed if (first := _first_closed(each)) is not None}
    for top in closed:
        inside = [each for each in needed if top in each.parents or top == each]
        kept: list[Path] = []
        for number, each in enumerate(inside):
            place = home / f"kept-{top.name}-{number}"
            place.mkdir()
            mount(str(each), str(place), BIND | _RECURSIVE)
            kept.append(place)
        mount("tmpfs", str(top), 0, "tmpfs", "mode=755")
        for each, place in zip(inside, kept, strict=True):
            each.mkdir(parents=True, exist_ok=True)
            mount(str(place), str(each), BIND | _RECURSIVE)


def _first_closed(path: Path) -> Path | None:
    """The first folder on the way that others cannot enter."""
    return next((each for each in (*reversed(path.parents), path) if not each.stat().st_mode & 0o001), None)


def unshare(more: int = 0) -> None:
    """Enter a namespace of mounts, out of which none of them gets. `more` are other namespaces to enter."""
    _checked(ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | more))
    mount("none", "/", _RECURSIVE | _PRIVATE)


def mount(source: str, target: str, flags: int = BIND, kind: str = "none", data: str = "") -> None:
    """As mount(2) does. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()))


def _checked(answer: int) -> None:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


if __name__ == "__main__":
    sys.exit(main())
