"""A fault is a mistake that an engineer may make in the engine, put there for a while."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

Make = Callable[[Any], Any]


@dataclass(frozen=True)
class Fault:
    """`breaks` are the invariants by which it may be found: a world is stopped by the first that it meets."""

    name: str
    breaks: tuple[int, ...]
    patch: Callable[[], Any]


def replaced(owner: object, name: str, make: Make) -> Callable[[], Any]:
    """Return a patch that replaces the attribute with what `make` returns for the real one."""
    return lambda: mock.patch.object(owner, name, make(getattr(owner, name)))


def together(*patches: Callable[[], Any]) -> Callable[[], Any]:
    """Return one patch of several: a check that two places make is only missing where both are patched."""

    @contextmanager
    def patch() -> Iterator[None]:
        with ExitStack() as stack:
            for open_patch in patches:
                stack.enter_context(open_patch())
            yield

    return patch


def everywhere(real: Any, make: Make) -> Callable[[], Any]:
    """Return a patch of a function in every module that imports it by name, also in the checks."""
    name = real.__name__

    @contextmanager
    def patch() -> Iterator[None]:
        replacement = make(real)
        with ExitStack() as stack:
            for module in [module for module in sys.modules.values() if getattr(module, name, None) is real]:
                stack.enter_context(mock.patch.object(module, name, replacement))
            yield

    return patch
