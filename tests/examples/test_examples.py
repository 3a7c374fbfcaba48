"""Each example prints what it says, in every dialect, however fast its tools are."""

import ast
import asyncio
import importlib.util
import inspect
import io
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.types.options import AgentOptions
from desktop_agent.types.providers import Dialect
from tests.examples.scripted_model import ScriptedModel
from tests.fakes.demo_server import DIALECTS
from tests.fakes.library import LIMIT
from tests.fakes.strict_server import demo_endpoint, strict_server
from tests.frame.selection import few

PROGRAMS = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.py"))
SECONDS = (0.0, 0.001, 0.01, 0.3)
# Here the caller and the answer race: a result comes before the answer has ended, or long after.
RACES = ("manual_loop", "manual_loop_with_an_error", "two_phase", "chat_loop")
# A story takes a while then, and nothing else.
SPEED = 20

_printed: ContextVar[io.StringIO] = ContextVar("printed")


class Parted(io.TextIOBase):
    """Standard output of programs that run side by side, apart from each other."""

    def write(self, text: str, /) -> int:
        return _printed.get().write(text)


@contextmanager
def parted_output() -> Iterator[None]:
    before, sys.stdout = sys.stdout, Parted()
    try:
        yield
    finally:
        sys.stdout = before


def main_of(program: Path) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(f"example_{program.stem}", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def promised(program: Path) -> str:
    """What its docstring says that it prints."""
    words = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or ""
    lines = words.partition("\nPrints:\n")[2].strip("\n").splitlines()
    return "".join(f"{line.removeprefix('    ')}\n" for line in lines)


async def printed(main: Callable[..., Any], dialect: Dialect, seconds: tuple[float, ...]) -> str:
    """Everything that it says to a server of its own."""
    _printed.set(io.StringIO())
    server = strict_server(SPEED, play=ScriptedModel().play)
    try:
        address = demo_endpoint(await server.start(), dialect).base_url
        options = AgentOptions(model="demo", dialect=dialect, base_url=address)
        async with asyncio.timeout(LIMIT):
            if inspect.iscoroutinefunction(main):
                await main(options, *seconds)
            else:
                await asyncio.to_thread(main, options, *seconds)
    finally:
        await server.aclose()
    return _printed.get().getvalue()


def test_there_are_enough_and_each_is_short() -> None:
    assert len(PROGRAMS) >= 40
    for program in PROGRAMS:
        assert len(program.read_text(encoding="utf-8").splitlines()) <= 60, program.name
        assert promised(program), program.name


@pytest.mark.parametrize("program", few(PROGRAMS, 22, "every third on a push"), ids=lambda program: program.stem)
async def test_it_prints_what_it_promises(program: Path) -> None:
    main = main_of(program)
    waits = [(wait,) for wait in SECONDS] if "seconds" in inspect.signature(main).parameters else [()]
    if program.stem in RACES or len(waits) == 1:
        variants = list(itertools.product(DIALECTS, waits))
    else:
        # Every dialect and every wait once, other pairs for the next program.
        first = PROGRAMS.index(program)
        variants = [(dialect, waits[(first + number) % len(waits)]) for number, dialect in enumerate(DIALECTS)]
    with parted_output():
        said = await asyncio.gather(*(asyncio.create_task(printed(main, *variant)) for variant in variants))
    expected = promised(program)
    assert [(*variant, text) for variant, text in zip(variants, said, strict=True) if text != expected] == []
