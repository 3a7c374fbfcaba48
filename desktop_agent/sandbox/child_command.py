"""Start the parts of this program as child processes, and programs of the system as this one was started.

Each child imports this first: only modules that cost nothing are imported here.
"""

import os
import sys
from pathlib import Path

CHILD = "--child"
_ROOT = Path(__file__).parents[2]
_START_CODE = "import sys; sys.path.append({root!r}); from {module} import main; sys.exit(main())"


def child_command(part: str, module: str, *words: str) -> list[str]:
    """Return the words that start a part of this program; a frozen program knows its parts by name."""
    if getattr(sys, "frozen", False):
        return [sys.executable, CHILD, part, *words]
    code = _START_CODE.format(root=str(_ROOT), module=module)
    return [sys.executable, "-I", "-B", "-X", "utf8", "-c", code, CHILD, part, *words]


def minimal_environment() -> dict[str, str]:
    """Return only the variables that the system needs to start a program."""
    return {name: os.environ[name] for name in ("SYSTEMROOT", "PATH") if name in os.environ}


def program_paths() -> tuple[Path, ...]:
    """Return what a part is read from: the interpreter, its folders, and the program's."""
    # The folder of a frozen program holds whatever the person keeps there.
    program = Path(sys.executable) if getattr(sys, "frozen", False) else Path(sys.executable).parent
    places = (program, Path(sys.prefix), Path(sys.base_prefix), _ROOT / "desktop_agent")
    return tuple(dict.fromkeys(places))


def original_environment() -> dict[str, str]:
    """Return the environment that this program was started with, for programs of the system.

    A frozen program makes the loader find its own libraries first, which others must not load. The original value of
    LD_LIBRARY_PATH is in LD_LIBRARY_PATH_ORIG (PyInstaller manual, "LD_LIBRARY_PATH / LIBPATH considerations").
    """
    if not getattr(sys, "frozen", False):
        return dict(os.environ)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("LD_LIBRARY_PATH", "_PYI"))
    }
    original_path = os.environ.get("LD_LIBRARY_PATH_ORIG")
    return environment if original_path is None else {**environment, "LD_LIBRARY_PATH": original_path}
