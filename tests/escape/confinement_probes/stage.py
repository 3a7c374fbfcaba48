"""Creates a mount namespace as root, fills it with folders of other users and disks, and runs the arena in it.

    python -m tests.escape.confinement_probes.stage bubblewrap|Landlock|none ordinary|root PART PARTS

Needs root to create the namespace. Nothing outside of it changes.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.escape.confinement_probes.arena import SECRET
from tests.frame.unprivileged import ROOT, USER, mount, unshare

_NEW_IPC = 0x08000000
_EMPTIED = ("/home", "/mnt", "/media", "/srv", "/var/mail", "/var/spool", "/var/log", "/var/backups", "/var/tmp")
_MORE = ("/var/lib/systemd", "/tmp", "/dev/shm")


def main() -> int:
    confinement, who, *parts = sys.argv[1:]
    unshare(_NEW_IPC)
    for folder in (*_EMPTIED, *_MORE):
        if Path(folder).is_dir() and not Path(folder).is_symlink() and not str(ROOT).startswith(folder):
            mount("tmpfs", folder, 0, "tmpfs", "mode=1777")
    owner = USER if who == "ordinary" else 0
    for name in ("/home/tester", "/home/other/open", "/home/other/.config/foo", "/mnt/disk/open", "/media/usb"):
        Path(name).mkdir(parents=True, exist_ok=True)
        os.chown(name, owner, owner)
    Path("/home").chmod(0o755)
    for name in ("/home/other", "/home/other/.config", "/mnt/disk"):
        os.chown(name, owner, owner)
    if who == "root":
        for name in ("shadow", "gshadow"):
            fake = Path("/home", name)
            fake.write_text(SECRET)
            fake.chmod(0o600)
            mount(str(fake), f"/etc/{name}")
    arena = "tests.escape.confinement_probes.arena"
    first = [] if who == "root" else ["tests.frame.unprivileged"]
    module, *command = [*first, arena, confinement, *parts]
    return subprocess.run([sys.executable, "-m", module, *command], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
