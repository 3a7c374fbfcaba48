"""Compiles the translations in resources/translations (.ts) to what Qt loads (.qm), where they are older.

The compiled ones are not committed: `make` makes them beside their sources, and the hook of the wheel for a wheel.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "resources" / "translations"


def compile_stale() -> list[Path]:
    """Compile what changed; return all compiled files. Raises FileNotFoundError where PySide6 is missing."""
    compiled: list[Path] = []
    for source in sorted(FOLDER.glob("*.ts")):
        target = source.with_suffix(".qm")
        if not target.exists() or target.stat().st_mtime_ns < source.stat().st_mtime_ns:
            # Through another name: a window that starts meanwhile finds the old file or the new one.
            unfinished = target.with_suffix(".new")
            subprocess.run([_lrelease(), "-silent", source, "-qm", unfinished], check=True)
            unfinished.replace(target)
        compiled.append(target)
    return compiled


def _lrelease() -> Path:
    spec = find_spec("PySide6")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("lrelease is missing: it comes with PySide6-Essentials")
    folder = Path(spec.origin).parent
    return folder / ("lrelease.exe" if sys.platform == "win32" else "lrelease")


if __name__ == "__main__":
    compile_stale()
