"""Call foreign code: catch what it raises, give it copies, and validate what it returns."""

import asyncio
import dataclasses
import json
import logging
import math
import re
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from datetime import datetime
from traceback import walk_tb
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from desktop_agent.processes.worker_threads import is_nested_deeper, run_by_size
from desktop_agent.types.blocks import Image, Json, ResultPart, Text
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed, WrongUse
from desktop_agent.types.messages import Message

# Parts of one result; if there are more, the last one says how many were left out.
MAX_PARTS = 1_000
# ECMA-48, as programs send it: colours, moves of the cursor, titles, links. An endless title only up to a limit.
_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,4}[@-~]"
    r"|\x1b[PX^_\]][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{0,4}[0-~]"
)


def result_parts(value: object) -> tuple[ResultPart, ...]:
    """Turn an answer into parts: None is no part, a text a text, a part itself, anything else JSON.

    In a list or tuple with a part in it each element is a part of its own, up to MAX_PARTS; any other is one piece of
    JSON. Raises ToolFailed for what JSON cannot say.
    """
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        elements = tuple(cast("tuple[object, ...]", value))
        if any(isinstance(element, Text | Json | Image) for element in elements):
            first, rest = limit_parts(elements)
            return (*(_result_part(part) for part in first), *((omitted_parts_note(rest),) if rest else ()))
    return (_result_part(cast("object", value)),)


def limit_parts(parts: Sequence[object]) -> tuple[tuple[object, ...], int]:
    """Return the elements of a list or tuple that are kept, and how many are left out."""
    count = len(parts) if len(parts) <= MAX_PARTS else MAX_PARTS - 1
    return tuple(parts[:count]), len(parts) - count


def omitted_parts_note(count: int) -> Text:
    """Return the note about parts that are left out."""
    return Text(text=f"[left out: {count:,} more parts]")


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which Python's texts may hold: they can be neither stored nor sent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def strip_terminal_sequences(output: str) -> str:
    """Remove what only a terminal understands."""
    return _TERMINAL_SEQUENCE.sub("", output) if "\x1b" in output or "\x9b" in output else output


def unique_keys(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the pairs with unique names: a name that occurs again gets a mark."""
    unique: dict[Any, Any] = {}
    for original, value in pairs:
        name = original
        while name in unique:
            name = f"{name}⟨{len(unique)}⟩"
        unique[name] = value
    return unique


def _result_part(value: object) -> ResultPart:
    if isinstance(value, Text | Json | Image):
        return value
    if isinstance(value, str):
        return Text(text=replace_surrogates(value))
    try:
        return Json(value=clean_json(to_jsonable_python(clean_json(value))))
    except (PydanticSerializationError, ValueError, RecursionError):
        kind = type(value).__name__
        sentence = Sentence(
            "The tool ran, but answered with something that cannot be written as JSON ({kind}).", {"kind": kind}
        )
        raise ToolFailed(sentence, "Do not run it again for that; its program must be corrected.") from None


def clean_json(value: Any) -> Any:
    """Remove what JSON cannot hold but Python's writers let through: lone surrogates, NaN, infinity."""
    match value:
        case str() if type(value) is str:
            return replace_surrogates(value)
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return unique_keys(
                (replace_surrogates(name) if type(name) is str else name, clean_json(item)) for name, item in pairs
            )
        case list() | tuple():
            return [clean_json(item) for item in cast("list[Any]", value)]
        case _:
            return value


_log = logging.getLogger(__name__)
T = TypeVar("T")
P = ParamSpec("P")

_LONGEST_NAME = 80
_UNCHANGEABLE = frozenset({str, int, float, bool, type(None), bytes, datetime})


@dataclass(frozen=True, slots=True)
class Fault:
    """Foreign code raised, or took too long (TimeoutError), or cancelled itself (CancelledError)."""

    error: BaseException

    @property
    def trace(self) -> str:
        """For the log: the error's type and place, but not its text, which may hold anybody's secret."""
        return safe_traceback(self.error)

    @property
    def kind(self) -> str:
        """The type of the error, all that may be shown of one that is not ours."""
        return type_name(self.error)

    @property
    def message(self) -> str:
        """The sentence and remedy of an error of ours; empty for any other, since its text may hold anything."""
        return str(self.error.whole) if isinstance(self.error, AgentError) else ""

    @property
    def description(self) -> str:
        """For the model: the tool's own sentence, else only the kind of error."""
        return self.message or f"The tool failed inside ({self.kind})."


async def call_foreign(work: Callable[[], Awaitable[T]]) -> T | Fault:
    """Return what foreign code answers, or how it failed. Only a cancel of the waiting task is passed on.

    SystemExit and KeyboardInterrupt are faults like any other: raised from a task they would end the event loop.
    Ctrl-C is not lost by that: asyncio's Runner turns it into a cancel of the main task, and the program's entry points
    turn that into a Stop; a KeyboardInterrupt in here is the code's own, or a second Ctrl-C after such a cancel. A
    closed coroutine is closed level by level, so no code goes on because a GeneratorExit is caught here.
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


class OutOfTime(Exception):
    """Foreign code did not end in its time."""


async def call_within(work: Callable[[], Awaitable[T]], seconds: float, grace: float, name: str) -> T | Fault:
    """Call foreign code; after `seconds` it is cancelled, which is an OutOfTime, and has `grace` seconds to end.

    It runs in a task of its own: code that swallows its cancel would block a plain timeout for ever. A cancel is passed
    on to it. `name` is for the log.
    """
    task = asyncio.create_task(call_foreign(work))
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        in_time = task.done()
        if not in_time:
            task.cancel()
            await asyncio.wait({task}, timeout=grace)
            if not task.done():
                _log.error("%s does not heed that it was cancelled, and was left alone", name)
    if not in_time:
        return Fault(OutOfTime())
    return Fault(asyncio.CancelledError()) if task.cancelled() else task.result()


def notify(listener: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call a listener; if it fails, the run and other listeners go on. Ctrl-C: see call_foreign."""
    try:
        listener(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - a listener may raise anything
        _log.error("a listener failed: %s", safe_traceback(error))


def deep_copy(value: T) -> T:
    """Copy down to the last dictionary, for code that may change it. Raises RecursionError.

    Faster than copy.deepcopy, on JSON several times as fast.
    """
    return cast("T", _copy_value(value, dict, list))


def read_only_copy(value: T) -> T:
    """Return an equal copy that can be shared: changing it raises TypeError. Raises RecursionError.

    Copies of it can be changed.
    """
    return cast("T", _copy_value(value, _ReadOnlyDict, _ReadOnlyList))


def type_name(value: object) -> str:
    """Return the name of a value's type, cut to fit in a sentence."""
    return type(value).__name__[:_LONGEST_NAME]


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a validation, without a full stop and without the input."""
    first = error.errors(include_input=False, include_url=False)[0]
    return first["msg"].removeprefix("Value error, ").rstrip(".")


def safe_traceback(error: BaseException) -> str:
    """Return a traceback for the log, without messages and source lines, which may hold secrets."""
    frames = [
        f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}'
        for frame, line in walk_tb(error.__traceback__)
    ]
    return "\n".join([type_name(error), *frames])


def _reject_change(*_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError("This can only be read. Change a copy of it.")


class _ReadOnlyDict(dict[Any, Any]):
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _reject_change

    def __reduce__(self) -> tuple[Any, ...]:
        # Used for copying and pickling.
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
        return dict_kind({key: _copy_value(item, dict_kind, list_kind) for key, item in pairs})
    if kind is list:
        return list_kind([_copy_value(item, dict_kind, list_kind) for item in cast("list[Any]", value)])
    if kind is tuple:
        return tuple([_copy_value(item, dict_kind, list_kind) for item in cast("tuple[Any, ...]", value)])
    if issubclass(kind, BaseModel):
        copied_value = copy(value)
        fields = vars(cast("BaseModel", value)).items()
        copied_value.__dict__.update({name: _copy_value(item, dict_kind, list_kind) for name, item in fields})
        return copied_value
    if dataclasses.is_dataclass(kind):
        copied_value = copy(value)
        for field in dataclasses.fields(kind):
            object.__setattr__(copied_value, field.name, _copy_value(getattr(value, field.name), dict_kind, list_kind))
        return copied_value
    return deepcopy(value)


class TaskSupervisor:
    """Starts foreign code in tasks of its own, so that code that ignores a cancel can be abandoned."""

    def __init__(self) -> None:
        self._unfinished: set[asyncio.Task[Any]] = set()

    def start(self, work: Callable[[], Awaitable[T]]) -> "asyncio.Task[T | Fault]":
        """Start a task; it raises nothing, and ends as cancelled only when it was asked to."""
        task = asyncio.create_task(call_foreign(work))
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return task

    async def run(self, work: Callable[[], Awaitable[T]], seconds: float | None = None) -> T | Fault:
        """Return the outcome after at most `seconds`. A cancel is passed on and not waited for."""
        task = self.start(work)
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            is_done = task.done()
            if not is_done:
                task.cancel()
        if not is_done:
            return Fault(TimeoutError())
        return Fault(asyncio.CancelledError()) if task.cancelled() else task.result()

    def abandon(self, task: "asyncio.Task[Any]") -> None:
        """Stop waiting for a task that had its grace period."""
        self._unfinished.discard(task)

    @property
    def unfinished(self) -> frozenset["asyncio.Task[Any]"]:
        return frozenset(self._unfinished)


# Levels of a whole message: every reader and writer down to the disk can handle so many.
MAX_MESSAGE_DEPTH = 200
_REMEDY = "Make messages of texts, pictures, calls and results, and of what can be written as JSON."


class HistoryCopy:
    """The history as hooks and guards see it: copied when the first of them needs it, and each message only once.

    Later turns copy only new messages. All hooks and guards share the copy, so it can only be read.
    """

    def __init__(self, history: tuple[Message, ...]) -> None:
        self._history = history
        self._copy: tuple[Message, ...] | None = None
        self._lock = asyncio.Lock()

    async def copied(self) -> tuple[Message, ...]:
        """Return a copy that can only be read, down to the last dictionary."""
        async with self._lock:
            if self._copy is None:
                uncopied = [message for message in self._history if _COPIES.get(message) is None]
                for message, message_copy in zip(
                    uncopied, await run_by_size(lambda: read_only_copy(uncopied), uncopied), strict=True
                ):
                    _COPIES.add(message, message_copy)
                self._copy = tuple([_COPIES.get(message) or read_only_copy(message) for message in self._history])
            return self._copy


class _MessageCopies:
    """One copy for each message, for as long as the message is referenced. Messages are not hashable."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[weakref.ref[Message], Message]] = {}

    def get(self, message: Message) -> Message | None:
        entry = self._copies.get(id(message))
        return None if entry is None else entry[1]

    def add(self, message: Message, copied: Message) -> None:
        key = id(message)
        self._copies[key] = (weakref.ref(message, lambda _: self._copies.pop(key, None)), copied)

    def __len__(self) -> int:
        return len(self._copies)


_COPIES = _MessageCopies()


def validate_message(message: object) -> Message:
    """Copy a message that somebody else made, as a round trip through JSON does.

    Raises WrongUse for an invalid message, one nested too deep, or one that holds what JSON cannot say.
    """
    if not isinstance(message, Message):
        raise WrongUse(f"This is not a message but {type_name(message)}.", "Make it with Message.user(…) and the like.")
    try:
        return _round_trip(message)
    except RecursionError:
        raise WrongUse("A message is nested too deep.", _REMEDY) from None
    except ValidationError as error:
        raise WrongUse(f"A message is not what it should be: {first_problem(error)}.", _REMEDY) from None
    except AgentError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is made of, and whatever that raises
        raise WrongUse(f"A message cannot be kept as JSON ({type_name(error)}).", _REMEDY) from None


def validate_messages(candidates: object, known: Sequence[Message] = ()) -> tuple[Message, ...]:
    """Validate all messages. What is `known`, the very same object, was validated before. Raises WrongUse."""
    messages = tuple(cast("Iterable[object]", candidates)) if isinstance(candidates, Iterable) else (None,)
    if not all(isinstance(candidate, Message) for candidate in messages):
        raise WrongUse(
            "A history is a list of messages, and this is none.", "Make them with Message.user(…) and the like."
        )
    ids = {id(message) for message in known}
    return tuple(
        [
            candidate if id(candidate) in ids else validate_message(candidate)
            for candidate in cast("tuple[Message, ...]", messages)
        ]
    )


def _round_trip(message: Message) -> Message:
    try:
        parsed = Message.model_validate_json(BaseModel.model_dump_json(message, warnings=False))
        if parsed == message:
            return parsed
    except ValueError:
        # Lone surrogates, for one, are no fault; the slower way accepts them.
        pass
    if is_nested_deeper(message, MAX_MESSAGE_DEPTH):
        raise RecursionError
    dumped: Any = BaseModel.model_dump(message, warnings=False)
    return Message.model_validate(json.loads(json.dumps(dumped, default=to_jsonable_python, allow_nan=False)))
