"""`make wheels`: whether every pinned package can be had as a wheel with a pinned hash, for each system and Python.

Nothing is installed, compiled or downloaded whole: uv resolves the lock file again for a system that is not this one.
A package that only some systems need has a marker in the lock, and is expected there alone.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from packaging.markers import Environment, Marker, default_environment

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
PLATFORMS = {
    "x86_64-manylinux_2_34": ("linux", "x86_64"),
    "aarch64-manylinux_2_39": ("linux", "aarch64"),
    "x86_64-pc-windows-msvc": ("win32", "AMD64"),
    "aarch64-apple-darwin": ("darwin", "arm64"),
    "x86_64-apple-darwin": ("darwin", "x86_64"),
}
"""As uv names them, with `sys_platform` and `platform_machine`."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
LOCKS = ("requirements.lock", "requirements-dev.lock")
_NAMES = {"linux": ("posix", "Linux"), "win32": ("nt", "Windows"), "darwin": ("posix", "Darwin")}
_PIN = re.compile(
    r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)(?: *; *([^\\]+))?((?: *\\\n +--hash=sha256:[0-9a-f]+)*)", re.MULTILINE
)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")


def expected(lock: str, platform: str, python: str) -> dict[str, set[str]]:
    """Return what a lock pins there: `name==version`, with the hashes of its files."""
    system, machine = PLATFORMS[platform]
    os_name, system_name = _NAMES[system]
    environment = default_environment()
    environment.update(
        Environment(
            implementation_name="cpython",
            implementation_version=f"{python}.0",
            os_name=os_name,
            platform_machine=machine,
            platform_release="",
            platform_system=system_name,
            platform_version="",
            python_full_version=f"{python}.0",
            platform_python_implementation="CPython",
            python_version=python,
            sys_platform=system,
        )
    )
    return {
        f"{name}=={version}": set(_HASH.findall(hashes))
        for name, version, marker, hashes in _PIN.findall(lock)
        if not marker or Marker(marker.strip()).evaluate(environment)
    }


def judge(pinned: dict[str, set[str]], resolved: dict[str, Any]) -> list[str]:
    """Return what is wrong with a resolution (pylock.toml, PEP 751); nothing if it is what the lock pins, as wheels."""
    packages = resolved.get("packages", [])
    wheels = {f"{package['name']}=={package['version']}": package.get("wheels", []) for package in packages}
    faults = [f"{name} is not found" for name in sorted(pinned.keys() - wheels.keys())]
    faults += [f"{name} is not pinned" for name in sorted(wheels.keys() - pinned.keys())]
    for name in sorted(pinned.keys() & wheels.keys()):
        if not wheels[name]:
            faults.append(f"{name} has no wheel")
        elif not {wheel["hashes"]["sha256"] for wheel in wheels[name]} <= pinned[name]:
            faults.append(f"{name} has a wheel whose hash is not pinned")
    return faults


def resolve(lock: str, platform: str, python: str) -> tuple[dict[str, Any], str]:
    """Let uv choose wheels for a lock file. Returns the resolution, and what uv said if it found none."""
    with tempfile.TemporaryDirectory() as folder:
        # The lock has addresses of files, so it is not kept.
        target = Path(folder) / "pylock.wheels.toml"
        where = ("--python-platform", platform, "--python-version", python, "--only-binary", ":all:")
        command = (UV, "pip", "compile", lock, *where, "--no-deps", "--quiet", "--output-file", target)
        environment = {**os.environ, **MACOS}
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if run.returncode:
            return {}, run.stderr.strip() or f"uv ended with {run.returncode}"
        return tomllib.loads(target.read_text(encoding="utf-8")), ""


def main() -> int:
    """Check every system, Python and lock file. Returns 1 when something is missing."""
    failed = 0
    for platform in PLATFORMS:
        for python in PYTHONS:
            for lock in LOCKS:
                pinned = expected((ROOT / lock).read_text(encoding="utf-8"), platform, python)
                resolved, problem = resolve(lock, platform, python)
                faults = [problem] if problem else judge(pinned, resolved)
                failed += bool(faults)
                words = f"{'BAD' if faults else 'ok '} {platform}, Python {python}, {lock}: {len(pinned)} packages"
                sys.stdout.write("\n    ".join([words, *faults]) + "\n")
                sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
