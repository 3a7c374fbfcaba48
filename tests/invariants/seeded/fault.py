"""What a fault is: a mistake that an engineer may make in the engine, put there for a while."""

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
    """A patch that gives `make` the real thing and puts what it answers in its place."""
    return lambda: mock.patch.object(owner, name, make(getattr(owner, name)))


def together(*patches: Callable[[], Any]) -> Callable[[], Any]:
    """Several at once: what two places look at independently is only left undone where both do not look."""

    @contextmanager
    def patch() -> Iterator[None]:
        with ExitStack() as stack:
            for each in patches:
                stack.enter_context(each())
            yield

    return patch


def everywhere(real: Any, make: Make) -> Callable[[], Any]:
    """A patch of a function in every module that knows it by its name, the checks among them."""
    name = real.__name__

    @contextmanager
    def patch() -> Iterator[None]:
        made = make(real)
        with ExitStack() as stack:
            for module in [each for each in sys.modules.values() if getattr(each, name, None) is real]:
                stack.enter_context(mock.patch.object(module, name, made))
            yield

    return patch
