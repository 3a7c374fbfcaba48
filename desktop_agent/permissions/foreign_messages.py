"""Messages on their way to code that is not ours, and from it: what it gets is a copy, what it gives is checked."""

import asyncio
import json
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from desktop_agent.tools.foreign_code import first_problem, read_only_copy, type_name
from desktop_agent.tools.in_thread import run_by_size
from desktop_agent.tools.json_pieces import is_nested_deeper
from desktop_agent.vocabulary.errors import AgentError, WrongUse
from desktop_agent.vocabulary.messages import Message

# Of a whole message, in levels: what every reader and writer down to the disk can carry.
MAX_MESSAGE_DEPTH = 200
_REMEDY = "Make messages of texts, pictures, calls and results, and of what JSON can say."


class HistoryCopy:
    """The history as hooks and guards see it: copied when the first of them asks, and each message only once.

    A message is copied the first time that it is shown to anybody; so what a turn costs is what the turn added. All
    who are shown it share that copy, so it can only be read.
    """

    def __init__(self, history: tuple[Message, ...]) -> None:
        self._history = history
        self._copy: tuple[Message, ...] | None = None
        self._copying = asyncio.Lock()

    async def copied(self) -> tuple[Message, ...]:
        """A copy that can only be read, down to the last dictionary."""
        async with self._copying:
            if self._copy is None:
                fresh = [message for message in self._history if _COPIES.of(message) is None]
                for message, made in zip(fresh, await run_by_size(lambda: read_only_copy(fresh), fresh), strict=True):
                    _COPIES.keep(message, made)
                self._copy = tuple([_COPIES.of(message) or read_only_copy(message) for message in self._history])
            return self._copy


class _MessageCopies:
    """One copy for each message, for as long as somebody holds the message. Messages are not hashable."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Message], Message]] = {}

    def of(self, message: Message) -> Message | None:
        """The copy, if there is one."""
        known = self._known.get(id(message))
        return None if known is None else known[1]

    def keep(self, message: Message, made: Message) -> None:
        """This is its copy from now on."""
        key = id(message)
        self._known[key] = (weakref.ref(message, lambda _: self._known.pop(key, None)), made)

    def __len__(self) -> int:
        return len(self._known)


_COPIES = _MessageCopies()


def validate_message(given: object) -> Message:
    """A message that somebody else made, as our own: copied, and such that JSON carries it there and back.

    Raises WrongUse for what is none, is nested too deep, or holds what JSON cannot say.
    """
    if not isinstance(given, Message):
        raise WrongUse(f"This is no message but {type_name(given)}.", "Make it with Message.user(…) and the like.")
    try:
        return _round_trip(given)
    except RecursionError:
        raise WrongUse("A message is nested too deep.", _REMEDY) from None
    except ValidationError as error:
        raise WrongUse(f"A message is not what it should be: {first_problem(error)}.", _REMEDY) from None
    except AgentError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is made of, and whatever that raises
        raise WrongUse(f"A message cannot be kept as JSON ({type_name(error)}).", _REMEDY) from None


def validate_messages(given: object, known: Sequence[Message] = ()) -> tuple[Message, ...]:
    """All of them. What is `known`, the very same object, was looked at before. Raises WrongUse."""
    found = tuple(cast("Iterable[object]", given)) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(each, Message) for each in found):
        raise WrongUse(
            "A history is a list of messages, and this is none.", "Make them with Message.user(…) and the like."
        )
    ids = {id(message) for message in known}
    return tuple([each if id(each) in ids else validate_message(each) for each in cast("tuple[Message, ...]", found)])


def _round_trip(given: Message) -> Message:
    try:
        quick = Message.model_validate_json(BaseModel.model_dump_json(given, warnings=False))
        if quick == given:
            return quick
    except ValueError:
        # Half characters, for one, are no fault; the slower way takes them.
        pass
    if is_nested_deeper(given, MAX_MESSAGE_DEPTH):
        raise RecursionError
    said: Any = BaseModel.model_dump(given, warnings=False)
    return Message.model_validate(json.loads(json.dumps(said, default=to_jsonable_python, allow_nan=False)))
