"""Runs a module of the tests as a user without rights, also where the tests run as root.

    python -m tests.frame.unprivileged tests.some.module its arguments

As root a test cannot show that a sandbox holds: half of what root may do comes from its user id. So root enters a mount
namespace of its own, in which everybody can read the interpreter and the checkout, and /etc/passwd has one user more.
It becomes that user, and runs the module there. Nothing outside of the namespace changes. Another user than root runs
the module as they are, with a home folder of its own.
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
"""The user and group id. No account on the machine has it, so it owns nothing there."""

BIND = 4096
"""The flag of mount(2) that shows a folder or file at a second place."""

_NEW_MOUNTS = 0x00020000
_SET_DEATH_SIGNAL = 1
_RECURSIVE, _PRIVATE = 16384, 1 << 18
_ADDED = f"tester:x:{USER}:{USER}:a test:{{home}}:/bin/bash\n"


def run_unprivileged(
    module: str, *arguments: str, timeout: float, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests as the user without rights, and return what it wrote."""
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
        # End with the parent, which may be killed while the module runs. Set last: a change of user would undo it.
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
    _make_readable(home, list(needed))
    os.chown(home, USER, USER)
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)


def _make_readable(home: Path, needed: list[Path]) -> None:
    """Mount an empty folder over each closed one above a needed path, and show only the needed paths in it."""
    closed = {first for path in needed if (first := _first_closed(path)) is not None}
    for top in closed:
        inside = [path for path in needed if top in path.parents or top == path]
        mounts: list[Path] = []
        for number, path in enumerate(inside):
            second_place = home / f"kept-{top.name}-{number}"
            second_place.mkdir()
            mount(str(path), str(second_place), BIND | _RECURSIVE)
            mounts.append(second_place)
        mount("tmpfs", str(top), 0, "tmpfs", "mode=755")
        for path, second_place in zip(inside, mounts, strict=True):
            path.mkdir(parents=True, exist_ok=True)
            mount(str(second_place), str(path), BIND | _RECURSIVE)


def _first_closed(path: Path) -> Path | None:
    """The topmost folder of the path that other users cannot enter."""
    folders = (*reversed(path.parents), path)
    return next((folder for folder in folders if not folder.stat().st_mode & 0o001), None)


def unshare(more: int = 0) -> None:
    """Enter a mount namespace, from which no mount spreads. `more` are flags of other namespaces to enter."""
    _raise_if_failed(ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | more))
    mount("none", "/", _RECURSIVE | _PRIVATE)


def mount(source: str, target: str, flags: int = BIND, kind: str = "none", data: str = "") -> None:
    """Call mount(2). Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    _raise_if_failed(libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()))


def _raise_if_failed(answer: int) -> None:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


if __name__ == "__main__":
    sys.exit(main())
