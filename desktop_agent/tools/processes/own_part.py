"""How the runtime starts a part of itself in a process of its own, which can be ended and confined."""

import os
import sys
from pathlib import Path

CHILD = "--child"
_ROOT = Path(__file__).parents[3]
_START = "import sys; sys.path.append({root!r}); from {module} import main; sys.exit(main())"


def part_command(part: str, module: str, *words: str) -> list[str]:
    """The words that start a part. A frozen program is its own interpreter and knows the part by name."""
    if getattr(sys, "frozen", False):
        return [sys.executable, CHILD, part, *words]
    code = _START.format(root=str(_ROOT), module=module)
    return [sys.executable, "-I", "-B", "-X", "utf8", "-c", code, CHILD, part, *words]


def part_environment() -> dict[str, str]:
    """Nothing of the person's but what the system needs to start a program."""
    return {name: os.environ[name] for name in ("SYSTEMROOT", "PATH") if name in os.environ}


def own_places() -> tuple[Path, ...]:
    """The folders that a part is read from: the interpreter's, and the program's."""
    places = (Path(sys.executable).parent, Path(sys.prefix), Path(sys.base_prefix), _ROOT / "desktop_agent")
    return tuple(dict.fromkeys(places))
