"""Code that is not ours: tools, hooks, guards, approvers, listeners. What it raises is held; what it gets is a copy."""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from copy import copy, deepcopy
from dataclasses import dataclass
from datetime import datetime
from traceback import walk_tb
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from pydantic import BaseModel, ValidationError

from desktop_agent.vocabulary.errors import AgentError

_log = logging.getLogger(__name__)
T = TypeVar("T")
P = ParamSpec("P")

_LONGEST_NAME = 80
_UNCHANGEABLE = frozenset({str, int, float, bool, type(None), bytes, datetime})


@dataclass(frozen=True, slots=True)
class Fault:
    """It raised, or took too long (TimeoutError), or cancelled itself (CancelledError)."""

    error: BaseException

    @property
    def trace(self) -> str:
        """For the log: what it was and where, but not what it says, which may be anybody's secret."""
        return safe_traceback(self.error)

    @property
    def kind(self) -> str:
        """The type of the error, all that may be said of one that is not ours."""
        return type_name(self.error)

    @property
    def message(self) -> str:
        """What an error of ours says, and its remedy; of any other nothing, since its text may hold anything."""
        if issubclass(type(self.error), AgentError):
            try:
                return str(cast("AgentError", self.error).whole)
            except BaseException:  # noqa: BLE001 - even the words of a foreign error may fail
                _log.warning("an error of kind %s cannot say what happened", self.kind)
        return ""

    @property
    def description(self) -> str:
        """For the model: what a tool says itself, else only the kind of error."""
        return self.message or f"The tool failed inside ({self.kind})."


async def call_foreign(work: Callable[[], Awaitable[T]]) -> T | Fault:
    """What foreign code answers, or how it failed. Only a cancel of the task that waits for it is passed on.

    SystemExit and KeyboardInterrupt are faults like any other: out of a task they would end the event loop. Ctrl-C is
    not lost by that. Where asyncio's Runner has the loop, it cancels the main task, and the program's own faces make it
    a Stop; a KeyboardInterrupt in here is the code's own, or a second Ctrl-C after such a cancel. A coroutine that is
    closed is closed level by level, so a GeneratorExit that is held here makes nobody go on.
    """
    try:
        return await work()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Fault(error)
    except BaseException as error:  # noqa: BLE001 - that is what this is for
        return Fault(error)


def notify(listener: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Tell it; who cannot listen must not end the run, nor keep the news from the others. Ctrl-C: see `contained`."""
    try:
        listener(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - a listener may raise anything
        _log.error("a listener failed: %s", safe_traceback(error))


def deep_copy(value: T) -> T:
    """Down to the last dictionary, for code that may change it. Raises RecursionError.

    Faster than deepcopy; several times on what JSON is made of.
    """
    return cast("T", _copy_value(value, dict, list))


def read_only_copy(value: T) -> T:
    """A copy that equals it and that many may share: to change it raises TypeError. Raises RecursionError.

    What is copied from it can be changed.
    """
    return cast("T", _copy_value(value, _ReadOnlyDict, _ReadOnlyList))


def type_name(value: object) -> str:
    """The name of its type, whatever a foreign class does to be called otherwise."""
    name: str = type.__dict__["__name__"].__get__(type(value))
    return name[:_LONGEST_NAME]


def first_problem(error: ValidationError) -> str:
    """What is wrong with it, without a full stop and without what was given."""
    first = error.errors(include_input=False, include_url=False)[0]
    return first["msg"].removeprefix("Value error, ").rstrip(".")


def safe_traceback(error: BaseException) -> str:
    """For the log: what it was and where, but neither what it says nor source lines, which may hold secrets."""
    traceback = BaseException.__dict__["__traceback__"].__get__(error)
    frames = [
        f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}'
        for frame, line in walk_tb(traceback)
    ]
    return "\n".join([type_name(error), *frames])


def _reject_change(*_given: object, **_named: object) -> NoReturn:
    raise TypeError("This can only be read. Change a copy of it.")


class _ReadOnlyDict(dict[Any, Any]):
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _reject_change

    def __reduce__(self) -> tuple[Any, ...]:
        # What copies and pickles are made by.
        return dict, (dict(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return deepcopy(dict(self), memo)


class _ReadOnlyList(list[Any]):
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _reject_change
    append = clear = extend = insert = pop = remove = reverse = sort = _reject_change

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return deepcopy(list(self), memo)


def _copy_value(value: Any, dict_kind: type[dict[Any, Any]], list_kind: type[list[Any]]) -> Any:
    kind = cast("type[object]", type(value))
    if kind in _UNCHANGEABLE:
        return value
    if kind is dict:
        pairs = cast("dict[Any, Any]", value).items()
        return dict_kind({key: _copy_value(each, dict_kind, list_kind) for key, each in pairs})
    if kind is list:
        return list_kind([_copy_value(each, dict_kind, list_kind) for each in cast("list[Any]", value)])
    if kind is tuple:
        return tuple([_copy_value(each, dict_kind, list_kind) for each in cast("tuple[Any, ...]", value)])
    if issubclass(kind, BaseModel):
        copied_value = copy(value)
        fields = vars(cast("BaseModel", value)).items()
        copied_value.__dict__.update({name: _copy_value(each, dict_kind, list_kind) for name, each in fields})
        return copied_value
    if dataclasses.is_dataclass(kind):
        copied_value = copy(value)
        for each in dataclasses.fields(kind):
            object.__setattr__(copied_value, each.name, _copy_value(getattr(value, each.name), dict_kind, list_kind))
        return copied_value
    return deepcopy(value)
