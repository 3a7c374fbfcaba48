"""`make reproducible`: builds what was last committed twice, in two folders, and compares the bytes.

The second build has another folder, umask, language and time zone. Every file that
differs is named. `--first FOLDER` takes a build of the same commit for the first one.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OTHER = {"LC_ALL": "C.UTF-8", "TZ": "Pacific/Apia", "PYTHONHASHSEED": "17"}


def build(folder: Path, environment: dict[str, str], umask: int) -> Path:
    """Build a clone of what was last committed, with an environment of its own."""
    subprocess.run(("git", "clone", "--quiet", f"file://{ROOT}", folder), check=True)
    subprocess.run(("make", "--silent", "package"), cwd=folder, env=environment, umask=umask, check=True)
    return folder


def sums(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder, and the target of every link."""
    sums_by_name: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            sums_by_name[name] = f"-> {path.readlink()}"
        elif path.is_file():
            with path.open("rb") as opened:
                sums_by_name[name] = hashlib.file_digest(opened, "sha256").hexdigest()
    return sums_by_name


def main() -> int:
    """Compare both builds. Returns 1 when they differ."""
    parser = argparse.ArgumentParser(description="Builds twice, and compares the bytes.")
    parser.add_argument("--first", type=Path, help="a checkout in which `make package` has built the same commit")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="desktop-agent-builds-") as name:
        folder = Path(name)
        first = arguments.first or build(folder / "one", dict(os.environ), 0o022)
        second = build(folder / "two" / "and-somewhere-else", {**os.environ, **OTHER}, 0o027)
        one, two = sums(first / "dist"), sums(second / "dist")
    differing = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    for name in differing:
        sys.stdout.write(f"differs: {name}\n")
    for name in sorted(name for name in one.keys() - set(differing) if "/" not in name):
        sys.stdout.write(f"equal: {name} {one[name]}\n")
    sys.stdout.write(f"{len(one)} files, {len(differing)} differ\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
