"""`make wheels`: whether every pinned package of the program can be had as a wheel, for each system and Python.

Nothing is installed and nothing is compiled: uv resolves the lock file again for a system that is not this one.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
PLATFORMS = (
    "x86_64-manylinux_2_34",
    "aarch64-manylinux_2_39",
    "x86_64-pc-windows-msvc",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
LOCKS = ("requirements.lock", "requirements-dev.lock")


def missing(lock: str, platform: str, python: str) -> str:
    """Say what has no wheel there; nothing when all have one."""
    options = ("--no-header", "--no-annotate", "--quiet", "--output-file", "/dev/null", "--no-emit-index-url")
    wanted = ("--python-version", python, "--python-platform", platform, "--only-binary", ":all:")
    command = (UV, "pip", "compile", lock, *wanted, *options)
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **MACOS}, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def main() -> int:
    """All of them; 1 when something is missing."""
    failed = 0
    for platform in PLATFORMS:
        for python in PYTHONS:
            for lock in LOCKS:
                fault = missing(lock, platform, python)
                failed += bool(fault)
                sys.stdout.write(f"{'BAD ' if fault else 'ok  '} {platform}, Python {python}, {lock} {fault}\n")
                sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
