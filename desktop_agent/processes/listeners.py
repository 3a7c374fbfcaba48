"""Listeners of one kind of event."""

from collections.abc import Callable
from typing import Generic, ParamSpec

_P = ParamSpec("_P")


class Listeners(Generic[_P]):
    """Functions that are called with each event of one kind."""

    def __init__(self) -> None:
        self._listeners: list[Callable[_P, object]] = []

    def add(self, listener: Callable[_P, object]) -> None:
        """Call `listener` from now on."""
        self._listeners.append(listener)

    def clear(self) -> None:
        """Call none of them any more."""
        self._listeners.clear()

    def notify(self, *event: _P.args, **named: _P.kwargs) -> None:
        """Call all of them."""
        for listener in tuple(self._listeners):
            listener(*event, **named)
