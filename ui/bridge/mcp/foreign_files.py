"""Where other programs keep the MCP servers that they know, and how those files are read."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

MAX_CONFIG_BYTES = 200_000
"""Of a file that is read, in bytes."""

_TEXT_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TEXT_OR_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file of servers. `program` is the name of whose it is."""

    program: str
    path: Path


def find_config_files() -> tuple[ConfigFile, ...]:
    """Those that exist here. It looks at the disk: call it in a thread."""
    home, settings = Path.home(), _settings_folder()
    known = (
        ConfigFile("Claude Desktop", settings / "Claude" / "claude_desktop_config.json"),
        ConfigFile("Visual Studio Code", settings / "Code" / "User" / "mcp.json"),
        ConfigFile("Cursor", home / ".cursor" / "mcp.json"),
    )
    return tuple(each for each in known if _is_file(each.path))


def read_config_file(path: Path) -> str:
    """The text of a file, as far as LARGEST. It waits for the disk: call it in a thread. Raises OSError."""
    if not path.is_file():
        # What is no file may never end.
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return file.read(MAX_CONFIG_BYTES + 1).decode("utf-8-sig", "replace")


def strip_comments(text: str) -> str:
    """JSON as editors of programs write it, made plain: no comments, no comma before a closing brace."""
    plain = _TEXT_OR_COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)
    return _TEXT_OR_COMMA.sub(lambda found: found[1] or "", plain)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _settings_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
