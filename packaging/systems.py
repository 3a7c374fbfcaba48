"""`make systems`: the program and its quick tests on other releases of Debian, `python packaging/systems.py [SUITE...]`

Each release is a root of its own, made by mmdebstrap from the mirror of this machine, with the release's own Python. In
it a user without rights installs what the lock files list, opens the window (`packaging/from_source.py`) and runs
`make check ARGS=--all`, all of what was last committed. Needs Linux, root and mmdebstrap. The roots stay for the next
time: in a folder of the person's cache, or in --folder.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUITES = ("trixie", "sid")  # Python 3.13 and 3.14
PACKAGES = "ca-certificates,git,make,mount,passwd,procps,python3-venv"
USER = "tester"
HOME = f"/home/{USER}"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
PASSED_ON = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL")
"""What a machine needs to reach its packages."""

# A root that was only changed to (chroot) could make no namespaces, and nothing could be confined in it. The devices
# are copies, so that nothing in there can take one away from the machine.
ENTER = r"""
set -eu
root=$1 authorities=$2 shared=$3
shift 3
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
    touch dev/$device
    mount --bind /dev/$device dev/$device
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
touch etc/resolv.conf
mount --bind /etc/resolv.conf etc/resolv.conf
mount --bind "$authorities" "${authorities#/}"
if [ -n "$shared" ]; then
    mkdir -p "${shared#/}"
    mount --bind "$shared" "${shared#/}"
fi
mkdir -p .machine
pivot_root . .machine
umount -l .machine
exec "$@"
"""

TAKE_SOURCE = r"""
set -eu
id {user} >/dev/null 2>&1 || useradd --uid 1000 --shell /bin/sh {user}
chown -R {user}: {home}
cd {home}/desktop-agent
packaging/system-packages.sh test
"""

TRY = r"""
set -u
cd {home}/desktop-agent
make setup-test || exit
.venv/bin/python --version
.venv/bin/python -m pip list 2>/dev/null | grep -iE '^(pyside6|qasync)'
failed=0
.venv/bin/python packaging/from_source.py || failed=1
make check ARGS=--all || failed=1
exit $failed
"""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "desktop-agent-tests" / "systems"


def mirror() -> str:
    """Return the address from which this machine has Debian's packages."""
    command = ("apt-get", "indextargets", "--format", "$(LABEL)|$(COMPONENT)|$(REPO_URI)", "Created-By: Packages")
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        label, component, address = line.split("|")
        if (label, component) == ("Debian", "main"):
            return address
    sys.exit("This machine has no source of Debian's packages: name one with --mirror.")


def make_root(suite: str, root: Path, address: str, packages: str = PACKAGES) -> None:
    partial = root.with_name(f"{root.name}.partial")
    subprocess.run(("rm", "-rf", partial), check=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    # A mirror that is a copy of one day counts as expired some days later.
    options = ("--variant=apt", f"--include={packages}", '--aptopt=Acquire::Check-Valid-Until "false"', "--quiet")
    subprocess.run(("mmdebstrap", *options, suite, partial, address), check=True)
    # What an installer writes. Without it Debian 12 does not know its own name.
    (partial / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n", encoding="ascii")
    partial.rename(root)


def take_source(root: Path) -> None:
    """Check out what was last committed; the virtual environment of an earlier run stays."""
    target = root / HOME[1:] / "desktop-agent"
    # Its files belong to another user.
    git = ("git", "-c", f"safe.directory={target}", "-C", str(target))
    if not target.exists():
        subprocess.run(("git", "init", "--quiet", target), check=True)
    for words in (
        ("fetch", "--quiet", "--depth=1", f"file://{ROOT}", "HEAD"),
        ("checkout", "--quiet", "--force", "-B", "main", "FETCH_HEAD"),
        ("clean", "--quiet", "-fd", "-e", ".venv"),
    ):
        subprocess.run((*git, *words), check=True)


def inside(root: Path, script: str, user: str) -> int:
    """Run a script inside a root. Returns its exit code."""
    return subprocess.run(**command_inside(root, script, user), check=False).returncode


def command_inside(root: Path, script: str, user: str, shared: str = "", **more: str) -> dict[str, Any]:
    """Return the arguments of subprocess.run for a script inside a root. `shared` is a folder of this machine."""
    home = HOME if user == USER else "/root"
    settings = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    settings |= {"HOME": home, "USER": user, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    settings |= {"PIP_CERT": AUTHORITIES, "DEBIAN_FRONTEND": "noninteractive"}
    unshare = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
    enter = (*unshare, "sh", "-c", ENTER, "sh", str(root), AUTHORITIES, shared)
    become = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
    work = ("sh", "-c", script.format(user=USER, home=HOME))
    command = [*enter, *(become if user == USER else ()), *work]
    return {"args": command, "env": {**settings, **more}, "stdin": subprocess.DEVNULL}


def try_system(suite: str, folder: Path, address: str | None) -> bool:
    root = folder / suite
    if not root.exists():
        sys.stdout.write(f"{suite}: making a root of it, in some minutes\n")
        sys.stdout.flush()
        make_root(suite, root, address or mirror())
    take_source(root)
    sys.stdout.write(f"{suite}:\n")
    sys.stdout.flush()
    return not inside(root, TAKE_SOURCE, "root") and not inside(root, TRY, USER)


def main() -> int:
    """Try all of them. Returns 1 when something failed."""
    parser = argparse.ArgumentParser(description="Tries the program on other releases of Debian.")
    parser.add_argument("suites", nargs="*", default=SUITES, metavar="SUITE")
    parser.add_argument("--folder", type=Path, default=cache())
    parser.add_argument("--mirror", help="where the packages are, instead of where this machine has its own from")
    arguments = parser.parse_args()
    if os.geteuid():
        sys.exit("This needs root: it makes roots of other systems, and goes into them.")
    passed = [try_system(suite, arguments.folder.resolve(), arguments.mirror) for suite in arguments.suites]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
