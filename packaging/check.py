"""`make package-check`: tries what `make package` built, from another folder: `python packaging/check.py [FOLDER]`.

Without a screen: version, answers, pictures, certificates, the keyring, libraries; the bill of materials; tools, whose
child processes are parts of the program, and MCP servers; the other packages and the recipes for other systems. With
one: the window answers, looks like the one from source, and starts as fast; spelling, global keys, a model file and the
check for a new version work. Finally the Debian package, installed into a folder of its own.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from acting import acting
from bill_of_materials import components_of
from build import DIST, FOLDER, ROOT, set_source_date
from debian import debian
from features import features
from headless import headless
from recipes import recipes
from tests.frame.displays import accessibility, display, session_bus
from ui.bridge.desktop.licences import BILL_OF_MATERIALS, parse_bill_of_materials
from windows import windows


def environment(home: Path) -> dict[str, str]:
    """Return a minimal environment: without Python, with an empty home."""
    runtime = home / "run"
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C.UTF-8"}
    return {**kept, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


def checks(program: Path, elsewhere: Path) -> Iterator[tuple[str, bool, str]]:
    """Yield for each check its name, whether it passed, and what was seen."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    run = subprocess.run(
        [program, "--version"], env=environment(elsewhere / "v"), capture_output=True, text=True, check=False
    )
    yield "version", run.stdout.strip() == f"desktop-agent {version}", run.stdout.strip() or run.stderr
    yield from headless(program, environment(elsewhere / "headless"), elsewhere / "headless")
    yield listed_components(program.parent)
    yield from acting(program, environment(elsewhere / "acting"), elsewhere / "acting")
    yield from recipes(environment(elsewhere / "recipes home"), elsewhere / "recipes")
    home = elsewhere / "windows"
    own = environment(home)
    # Bytecode is written by the first start; the program in the folder brings its own.
    outer = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with display({**outer, **own}) as shown, session_bus(shown) as bus, accessibility(bus) as readable:
        yield from windows(program, readable, home)
        yield from features(program, readable, home)
        for package in DIST.glob("*.deb"):
            yield from debian(package, readable, elsewhere / "debian")


def listed_components(folder: Path) -> tuple[str, bool, str]:
    """Check that every component of the folder is in its list of licences, with a text."""
    (file,) = folder.rglob(BILL_OF_MATERIALS)
    listed = parse_bill_of_materials(file.read_text(encoding="utf-8"))
    bare = [component.name for component in listed if not component.text]
    complete = {component.name for component in listed} == {component.name for component in components_of(folder)}
    kinds = json.loads(file.read_text(encoding="utf-8"))["components"]
    system = sum(component["purl"].startswith("pkg:deb/") for component in kinds)
    seen = f"{len(listed)} components, {system} of them of the system; without a text: {', '.join(bare) or 'none'}"
    return "bill of materials", complete and not bare, seen


def main() -> int:
    """Run all checks. Returns 1 when one failed."""
    set_source_date()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    failed = 0
    with tempfile.TemporaryDirectory(prefix="desktop agent ", ignore_cleanup_errors=True) as place:
        moved = Path(place, "moved")
        shutil.copytree(folder, moved, symlinks=True)
        for name, passed, seen in checks(moved / "desktop-agent", Path(place)):
            failed += not passed
            sys.stdout.write(f"{'ok  ' if passed else 'BAD '} {name}: {seen}\n")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
