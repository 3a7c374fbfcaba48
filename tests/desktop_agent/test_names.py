"""What `import desktop_agent` brings along: nothing, until a name is used; and never a window."""

import ast
import contextlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import desktop_agent
from desktop_agent import (
    AgentError,
    Block,
    Decision,
    Event,
    GuardVerdict,
    HookVerdict,
    Interrupt,
    LoopStep,
    Pattern,
    Preview,
    Reasoning,
)
from desktop_agent.types import errors

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
    assert "desktop_agent.api.client" in loaded
    assert not loaded & set(HEAVY)
    assert not {name for name in loaded if name.startswith(("desktop_agent.engine", "desktop_agent.storage"))}


def test_every_name_is_there_and_is_itself() -> None:
    for name in desktop_agent.__all__:
        value = getattr(desktop_agent, name)
        assert name in dir(desktop_agent)
        if isinstance(value, type):
            assert value.__name__ == name


def test_checkers_and_the_program_find_the_same_names_in_the_same_places() -> None:
    tree = ast.parse((ROOT / "desktop_agent/__init__.py").read_text(encoding="utf-8"))
    named = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("desktop_agent.")
        for alias in node.names
    }
    assert {name for _, name in named} == set(desktop_agent.__all__)
    assert len(named) == len(desktop_agent.__all__) > 150
    for module, name in named:
        assert getattr(import_module(module), name) is getattr(desktop_agent, name)


def ours(hint: object) -> Iterator[type]:
    """The classes of this package in an annotation."""
    if isinstance(hint, type) and hint.__module__.startswith("desktop_agent."):
        yield hint
    for part in get_args(hint):
        yield from ours(part)


def hints(value: object) -> Iterator[object]:
    """What a caller of this class or function sees: arguments and answers, fields and properties."""
    if inspect.isclass(value):
        with contextlib.suppress(NameError):
            yield from get_type_hints(value).values()
        for name, member in vars(value).items():
            got = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(got):
                yield from hints(got)
    elif inspect.isfunction(value):
        with contextlib.suppress(NameError):
            yield from get_type_hints(value).values()


def test_whatever_a_public_name_leads_to_is_public() -> None:
    public = [getattr(desktop_agent, name) for name in desktop_agent.__all__]
    seen = {found for value in public for hint in hints(value) for found in ours(hint)}
    assert len(seen) > 50
    # What the engine compares a call with before it starts; no caller asks a Resolution for it.
    assert {one.__name__ for one in seen if one not in public} == {"Allowed"}


def test_all_events_errors_decisions_and_steps_are_public() -> None:
    unions = (Event, Decision, LoopStep, Block, Preview, Pattern, GuardVerdict, HookVerdict, Interrupt, Reasoning)
    classes = {found for union in unions for found in ours(union)}
    classes |= {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, AgentError)}
    assert len(classes) > 100
    assert {one.__name__ for one in classes} - set(desktop_agent.__all__) == set()


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        desktop_agent.nothing  # noqa: B018
