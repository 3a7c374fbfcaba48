"""Whether a call may run: a pure decision over the call, its tool, and what the person allowed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

from desktop_agent.permissions.allowances import Allowances
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, Outcome, ToolUse
from desktop_agent.vocabulary.errors import Sentence, ToolInputInvalid
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

# What a read-only tool may touch without anybody being asked. Reaching the network tells somebody something.
_HARMLESS = frozenset({Effect.READ})

# Far more than any tool asks for, far less than what upsets a JSON library.
DEEPEST = 200

AllowedBy = Literal["default", "conversation", "person"]


@dataclass(frozen=True, slots=True)
class Allowed:
    """It may run with exactly the arguments of `digest`: by the tool's default, a standing allowance, or a person."""

    digest: str
    by: AllowedBy


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must decide about exactly the arguments of `digest`."""

    digest: str


@dataclass(frozen=True, slots=True)
class Refused:
    """It never runs; the sentence is for the model and for the person."""

    outcome: Outcome
    sentence: Sentence


Verdict = Allowed | Ask | Refused


def decide(call: ToolUse, tool: AnyTool | None, allowances: Allowances, known_names: Iterable[str] = ()) -> Verdict:
    """Take a call through the gates, in the order in which they stand.

    `known_names` are told to a model that asked for a tool that is not there.
    """
    if call.malformed is not None:
        return _failed("The arguments are not a JSON object, so the call was not run. Write them again.")
    if tool is None:
        return _unknown(call.name, known_names)
    if _is_nested_deeper(call.input, DEEPEST):
        return _failed("The arguments are nested too deep to be checked.")
    try:
        tool.checked(call.input)
        digest = tool.digest(call.input)
    except ToolInputInvalid as error:
        return Refused(Outcome.FAILED, error.sentence)
    if tool.tool_class is ToolClass.READ_ONLY and tool.effects <= _HARMLESS:
        return Allowed(digest, "default")
    if allowances.covers(tool):
        return Allowed(digest, "conversation")
    return Ask(digest)


def still_allowed(verdict: Verdict, tool: AnyTool, arguments: JsonObject) -> bool:
    """The last look before the start: the tool and the arguments are those that were allowed, and no others."""
    return isinstance(verdict, Allowed) and verdict.digest == tool.digest(arguments)


def _is_nested_deeper(value: Any, levels: int) -> bool:
    """Level by level, so that no depth is too deep to be looked at; how deep Python recurses differs by version."""
    level: list[Any] = [value]
    for _ in range(levels):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in cast("Iterable[Any]", each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def _unknown(name: str, known_names: Iterable[str]) -> Refused:
    names = ", ".join(known_names)
    if not names:
        return _failed("There is no tool “{name}”; this conversation has no tools.", name=name)
    return _failed("There is no tool “{name}”. The tools are: {names}.", name=name, names=names)


def _failed(template: str, **values: str) -> Refused:
    return Refused(Outcome.FAILED, Sentence(template, values))
