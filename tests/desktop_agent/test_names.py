"""What `import desktop_agent` brings along: nothing, until a name is used; and never a window."""

import subprocess
import sys
from pathlib import Path

import pytest

import desktop_agent

ROOT = Path(__file__).parents[2]
HEAVY = ("PySide6", "httpx", "PIL", "sqlite3", "keyring", "tree_sitter", "psutil", "simpleeval")


def loaded_after(statement: str) -> set[str]:
    """All modules that a fresh interpreter has then."""
    code = f"{statement}\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing() -> None:
    loaded = loaded_after("import desktop_agent")
    assert {name for name in loaded if name.startswith("desktop_agent")} == {"desktop_agent"}
    assert not loaded & {*HEAVY, "pydantic", "jsonschema", "asyncio"}


def test_the_faces_load_neither_a_window_nor_what_a_question_needs() -> None:
    loaded = loaded_after("from desktop_agent import AgentOptions, Client, Hooks, Message, query, tool")
    assert "desktop_agent.faces.client" in loaded
    assert not loaded & set(HEAVY)
    assert not {name for name in loaded if name.startswith(("desktop_agent.engine", "desktop_agent.storage"))}


def test_every_name_is_there_and_is_itself() -> None:
    for name in desktop_agent.__all__:
        value = getattr(desktop_agent, name)
        assert getattr(value, "__name__", name) == name
        assert name in dir(desktop_agent)


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        desktop_agent.nothing  # noqa: B018
