"""A tool: its description, what it may touch and its function; and the registry of one conversation."""

import asyncio
import copy
import hashlib
import json
from collections.abc import Awaitable, Callable, Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from desktop_agent.processes.foreign_code import deep_copy
from desktop_agent.processes.worker_threads import CancelToken, is_large, iter_json, run_in_thread
from desktop_agent.types.blocks import Json, JsonObject, Outcome, ResultPart, Text, ToolResult
from desktop_agent.types.errors import Sentence, ToolFailed, ToolInputInvalid, WrongUse
from desktop_agent.types.permissions import Subject
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.tool_calls import (
    Effect,
    FileChanges,
    Preview,
    ToolClass,
    ToolSpec,
    UntrustedSource,
    call_digest,
)

Input = TypeVar("Input")
_Validated_co = TypeVar("_Validated_co", covariant=True)
_Model = TypeVar("_Model", bound=BaseModel)
_Word = TypeVar("_Word", bound=StrEnum)


class ArgumentSchema(Protocol[_Validated_co]):
    """The arguments of a tool, and what it makes of them."""

    @property
    def json_schema(self) -> JsonObject:
        """JSON Schema of type object, for the model."""
        ...

    def checked(self, arguments: JsonObject) -> _Validated_co:
        """Return the arguments as the tool wants them. Raises ToolInputInvalid with one sentence per field."""
        ...


@lru_cache(maxsize=256)
def _model_json_schema(model: type[BaseModel]) -> JsonObject:
    """Cache the schema: it takes pydantic a millisecond, and every request to a model lists every tool."""
    return model.model_json_schema()


class ModelSchema(Generic[_Model]):
    """Arguments that are a pydantic model."""

    def __init__(self, model: type[_Model]) -> None:
        self._model = model

    @property
    def json_schema(self) -> JsonObject:
        return copy.deepcopy(_model_json_schema(self._model))

    def checked(self, arguments: JsonObject) -> _Model:
        """Return the arguments as the model. Raises ToolInputInvalid."""
        try:
            return self._model.model_validate(arguments)
        except ValidationError as error:
            problems = [
                f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg']}"
                for problem in error.errors(include_input=False, include_url=False)
            ]
            raise ToolInputInvalid(
                Sentence("The arguments do not fit. {problems}", {"problems": "; ".join(problems)})
            ) from None


def _ignore(_news: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class RunningCall:
    """What a tool knows about the call that it works on.

    `progress` shows live output. `report_partial_result` takes, in sentences, what the call has done until now; the
    last one is in the result of an interrupted call. `report_file_changes` takes what it did to files, for the person.
    All may be called from any thread. `report_usage` takes the usage of a model that was asked for the call, from the
    loop's thread alone: the run counts it. `is_read_only`: nobody allowed that it changes anything, so a tool that can
    is restricted to reading. `conversation_id`: for a specialist's call too, that in which the person asked.
    """

    tool_use_id: str
    progress: Callable[[str], None]
    agent_path: tuple[str, ...] = ()
    report_partial_result: Callable[[str], None] = _ignore
    report_file_changes: Callable[[FileChanges], None] = _ignore
    report_usage: Callable[[Usage], None] = _ignore
    is_read_only: bool = False
    conversation_id: str | None = None


def run_tool_in_thread(
    work: Callable[[Input, CancelToken], tuple[ResultPart, ...]],
) -> Callable[[Input, RunningCall], Awaitable[tuple[ResultPart, ...]]]:
    """Return a function that runs a tool's blocking work in a thread."""
    return lambda params, _call: run_in_thread(lambda token: work(params, token))


def _member(kind: type[_Word], word: object, tool: str) -> _Word:
    """Return the member of the enumeration with this value. Raises WrongUse for an unknown one."""
    try:
        return kind(word)
    except ValueError:
        what = f"The tool “{tool}” cannot be or do “{str(word)[:80]}”."
        raise WrongUse(what, f"Choose among: {', '.join(kind)}.") from None


@dataclass(frozen=True)
class Tool(Generic[Input]):
    """One tool. Raises WrongUse for an unknown class or effect.

    `timeout` is in seconds; `preview` shows the effect before it happens and changes nothing.

    `scope` is what the tool works on, for example its folder: the same tool elsewhere is another one to approvals.
    `concurrency` is how many calls of it may run at once; None: as many as the scheduler allows. `subjects` are the
    files, hosts and commands that a call is about, for rules to match. `changes` are the files that a call will change,
    relative to the workspace: they are saved before it starts. `undo` reverts what a call did, where files alone do not
    tell it, and returns in words what it did. It runs at most once for a call, and only for one that succeeded, when
    the person restores the call's checkpoint; in the tool's own time. Conversations that keep nothing have no
    checkpoints, so there it never runs. `brings` says from where outside a call's result comes; without it, or where it
    returns None, the result is of this machine and this conversation. `always_asked` says to the person why each call
    is asked about, whatever rules and modes allow; what they deny stays denied.
    """

    name: str
    description: str
    schema: ArgumentSchema[Input]
    run: Callable[[Input, RunningCall], Awaitable[tuple[ResultPart, ...]]]
    tool_class: ToolClass = ToolClass.MUTATING
    effects: frozenset[Effect] = frozenset()
    preview: Callable[[Input], Awaitable[Preview | None]] | None = None
    subjects: Callable[[Input], Awaitable[tuple[Subject, ...]]] | None = None
    changes: Callable[[Input], Awaitable[tuple[str, ...]]] | None = None
    undo: Callable[[Input], Awaitable[str]] | None = None
    brings: Callable[[Input], UntrustedSource | None] | None = None
    always_asked: Sentence | None = None
    timeout: float = 120.0
    concurrency: int | None = None
    scope: str = ""

    def __post_init__(self) -> None:
        # A caller may give their words, which no gate would know.
        object.__setattr__(self, "tool_class", _member(ToolClass, self.tool_class, self.name))
        effects = (self.effects,) if isinstance(self.effects, str) else self.effects
        object.__setattr__(self, "effects", frozenset([_member(Effect, effect, self.name) for effect in effects]))

    @property
    def identity(self) -> str:
        """The name by which approvals and rules know it."""
        return f"{self.name} @ {self.scope}" if self.scope else self.name

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return ToolSpec(self.name, self.description, self.schema.json_schema)

    def checked(self, arguments: JsonObject) -> Input:
        """Return the arguments as the tool wants them. Raises ToolInputInvalid with one sentence per field."""
        # A copy: validators and tools may change what they are given.
        return self.schema.checked(deep_copy(arguments))

    async def execute(self, arguments: JsonObject, *, tool_use_id: str = "") -> ToolResult:
        """Run it by itself, without a model and without gates; return the result as a model would get it.

        Arguments that do not fit, a tool that fails and one that exceeds its `timeout` give results too.
        """
        call = RunningCall(tool_use_id, _ignore)
        outcome = Outcome.SUCCEEDED
        try:
            async with asyncio.timeout(self.timeout):
                parts = await self.run(self.checked(arguments), call)
        except TimeoutError:
            outcome, parts = Outcome.TIMED_OUT, (Text(text=f"The tool did not end within {self.timeout:g} s."),)
        except ToolFailed as error:
            outcome, parts = Outcome.FAILED, (Text(text=str(error.whole)),)
        except Exception as error:  # noqa: BLE001 - whatever it raises; the model learns only the type
            outcome, parts = Outcome.FAILED, (Text(text=f"The tool failed ({type(error).__name__})."),)
        return ToolResult(tool_use_id=tool_use_id, content=parts, outcome=outcome)

    async def __call__(self, /, **arguments: Any) -> Any:
        """Run it like the function that it is; return text, JSON, an image, or several of them.

        None where it answers nothing. Raises ToolInputInvalid, ToolFailed, and what its function raises.
        """
        return await self.answer(arguments, RunningCall("", _ignore))

    async def answer(self, arguments: JsonObject, call: RunningCall) -> Any:
        """Run it for this call; see `__call__`."""
        parts = await self.run(self.checked(arguments), call)
        values = tuple(_part_value(part) for part in parts)
        return values if len(values) > 1 else next(iter(values), None)

    def digest(self, arguments: JsonObject) -> str:
        """Return the digest that an approval of this call is bound to."""
        if not is_large(arguments):
            return call_digest(self.identity, arguments)
        # The same digest, in pieces: other threads can run meanwhile.
        pieces = chain((f"[{json.dumps(self.identity, ensure_ascii=False)},",), iter_json(arguments, sort_keys=True))
        digest = hashlib.sha256()
        for piece in chain(pieces, "]"):
            digest.update(piece.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def _part_value(part: ResultPart) -> Any:
    match part:
        case Text():
            return part.text
        case Json():
            return part.value
        case _:
            return part


AnyTool = Tool[Any]


class ToolRegistry:
    """Tools in the order they were given. Raises WrongUse for two of one name."""

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            _require_unused_name(tool, self._tools)
            self._tools[tool.name] = tool

    def __len__(self) -> int:
        return len(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def with_tools(self, *tools: AnyTool) -> "ToolRegistry":
        """Return a registry with more tools. Raises WrongUse for two of one name."""
        return ToolRegistry((*self._tools.values(), *tools)) if tools else self

    def get(self, name: str) -> AnyTool | None:
        """Return the tool of exactly this name, upper and lower case distinguished, or None."""
        return self._tools.get(name)

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """Return what the model is told about all tools, or about these. Raises WrongUse for an unknown name."""
        return tuple(self._require(name).spec for name in (self.names if names is None else names))

    def class_of(self, name: str) -> ToolClass:
        """Return a tool's class; an unknown one counts as mutating."""
        tool = self.get(name)
        return tool.tool_class if tool else ToolClass.MUTATING

    def _require(self, name: str) -> AnyTool:
        tool = self.get(name)
        if tool is None:
            raise WrongUse(Sentence("There is no tool named “{name}”.", {"name": name}))
        return tool


class ToolSubset(ToolRegistry):
    """The tools of another registry that have certain names, as they are at the moment; and some more."""

    def __init__(self, registry: ToolRegistry, names: Iterable[str], more: Iterable[AnyTool] = ()) -> None:
        super().__init__(more)
        self._whole = registry
        self._subset_names = tuple(names)

    @property
    def names(self) -> tuple[str, ...]:
        return (*(name for name in self._subset_names if self._whole.get(name) is not None), *self._tools)

    def with_tools(self, *tools: AnyTool) -> ToolRegistry:
        """Return a subset with more tools. Raises WrongUse for two of one name."""
        for tool in tools:
            _require_unused_name(tool, self._subset_names)
        return ToolSubset(self._whole, self._subset_names, (*self._tools.values(), *tools)) if tools else self

    def get(self, name: str) -> AnyTool | None:
        """Return the tool of exactly this name, or None."""
        return self._whole.get(name) if name in self._subset_names else self._tools.get(name)


class DynamicToolRegistry(ToolRegistry):
    """Fixed tools, and those that servers offer at the moment of asking."""

    def __init__(self, fixed: ToolRegistry, offered: Callable[[], tuple[AnyTool, ...]]) -> None:
        super().__init__()
        self._fixed = fixed
        self._offered = offered
        self._cached: tuple[tuple[AnyTool, ...], ToolRegistry] = ((), fixed)

    @property
    def names(self) -> tuple[str, ...]:
        return self._current.names

    def with_tools(self, *tools: AnyTool) -> ToolRegistry:
        """Return a registry with more tools. Raises WrongUse for two of one name."""
        return DynamicToolRegistry(self._fixed.with_tools(*tools), self._offered) if tools else self

    def get(self, name: str) -> AnyTool | None:
        """Return the tool of exactly this name, or None."""
        return self._current.get(name)

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """Return the specs of all tools, or of these. Raises WrongUse for an unknown name."""
        return self._current.specs(names)

    @property
    def _current(self) -> ToolRegistry:
        offered = self._offered()
        if self._cached[0] != offered:
            new_tools = (tool for tool in offered if self._fixed.get(tool.name) is None)
            self._cached = (offered, self._fixed.with_tools(*new_tools))
        return self._cached[1]


def _require_unused_name(tool: AnyTool, names: Container[str]) -> None:
    if tool.name in names:
        raise WrongUse(Sentence("There are two tools named “{name}”.", {"name": tool.name}))
