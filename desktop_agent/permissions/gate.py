"""Whether a call may run: pure decisions over the call, its tool, the rules and the mode."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from desktop_agent.permissions.hard_denies import ANYWHERE, Grounds, HardDeny, hard_deny
from desktop_agent.permissions.rule_matching import Case, Match, catches, covering
from desktop_agent.tools.foreign_code import copied, kind_of
from desktop_agent.tools.json_pieces import is_nested_deeper
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, Outcome, ToolUse
from desktop_agent.vocabulary.conduct.modes import Mode
from desktop_agent.vocabulary.conduct.rules import ArgumentsPattern, Rule, RuleEffect
from desktop_agent.vocabulary.errors import Sentence, ToolInputInvalid
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

# What a read-only tool may touch without anybody being asked. Reaching the network tells somebody something.
_HARMLESS = frozenset({Effect.READ})
# A call that only hands work on: everything that is done for it passes the gate by itself.
_HANDS_ON = frozenset({Effect.DELEGATE})
_EDITS = frozenset({Effect.READ, Effect.WRITE})
_CHANGES = frozenset({Effect.WRITE, Effect.EXECUTE})

# Far more than any tool asks for, far less than what upsets a JSON library.
DEEPEST = 200

_TOO_DEEP = "The arguments are nested too deep to be checked."
_NO_OBJECT = "The arguments are not a JSON object, so the call was not run. Write them again."
_UNCLEAR = "The call has no name, or may be a part of the one beside it, so it was not run. Call again, one at a time."
_LONGEST_LOOKED_AT = 64 * 1024

AllowedBy = Literal["default", "rule", "mode", "person"]


@dataclass(frozen=True, slots=True)
class Allowed:
    """It may run with exactly the arguments of `digest`: by the tool's default, a rule, the mode, or a person.

    `trusts`: what it brings in from outside is trusted. By default nobody allowed that it changes anything, so it is
    held to reading (RunningCall.is_read_only).
    """

    digest: str
    by: AllowedBy
    rule_id: str | None = None
    trusts: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must decide about exactly the arguments of `digest`. Without `reasons` it is the tool's default.

    `rules` are the ids of those that ask; the same question is the same, whichever rules put it.
    """

    digest: str
    reasons: tuple[Sentence, ...] = ()
    rules: tuple[str, ...] = field(default=(), compare=False)

    @property
    def reason(self) -> str:
        """All of them, in English."""
        return " ".join(map(str, self.reasons))


@dataclass(frozen=True, slots=True)
class Refused:
    """It never runs; the sentence is for the model and for the person."""

    outcome: Outcome
    sentence: Sentence


Verdict = Allowed | Ask | Refused
_STRICTNESS: tuple[type[Verdict], ...] = (Allowed, Ask, Refused)


def strictness(verdict: Verdict) -> int:
    """The more, the less may happen: 0 allowed, 1 ask, 2 refused."""
    return _STRICTNESS.index(type(verdict))


def strictest(first: Verdict, second: Verdict) -> Verdict:
    """The one that lets less happen; among equals the first, which asks for both where both ask.

    Of two that allow, the one that is held to reading; and it trusts only what both do.
    """
    if isinstance(first, Ask) and isinstance(second, Ask):
        return replace(first, rules=tuple(dict.fromkeys((*first.rules, *second.rules))))
    if isinstance(first, Allowed) and isinstance(second, Allowed):
        return replace(second if second.by == "default" else first, trusts=first.trusts and second.trusts)
    return second if strictness(second) > strictness(first) else first


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that its tool takes: the checked input, and the digest of its arguments."""

    tool: AnyTool
    input: Any
    digest: str


@dataclass(frozen=True, slots=True)
class Suspension:
    """What rules and modes do not allow for now, and why."""

    effects: frozenset[Effect] = frozenset()
    why: Sentence = field(default_factory=lambda: Sentence("It is not let through for now."))

    def joined(self, other: "Suspension") -> "Suspension":
        """Both; the other one says why where it suspends anything."""
        return Suspension(self.effects | other.effects, other.why if other.effects else self.why)

    def covers(self, tool: AnyTool) -> bool:
        """Whether the tool may have one of these effects; one that changes something unnamed may have any."""
        undeclared = tool.tool_class is ToolClass.MUTATING and not tool.effects
        return bool(self.effects) and (undeclared or bool(self.effects & tool.effects))


NOTHING_SUSPENDED = Suspension()


def admitted(
    call: ToolUse, tool: AnyTool | None, known_names: Iterable[str] = (), digest: str | None = None
) -> Admitted | Refused:
    """The registry's gate: whether there is such a tool, and whether it takes these arguments.

    `known_names` are told to a model that asked for a tool that is not there. `digest` is that of the call, where it
    is known already.
    """
    if call.malformed is not None:
        return _failed(_UNCLEAR if _is_object(call.malformed) else _NO_OBJECT)
    if tool is None:
        return _unknown(call.name, known_names)
    if is_nested_deeper(call.input, DEEPEST):
        return _failed(_TOO_DEEP)
    # Before the check, which is the tool's own code and may change what it is given.
    digest = digest or tool.digest(call.input)
    try:
        return Admitted(tool, tool.checked(call.input), digest)
    except ToolInputInvalid as error:
        return Refused(Outcome.FAILED, error.sentence)


def fitting(wanted: object, tool: AnyTool | None) -> JsonObject:
    """Arguments that a hook or an approver wrote, as they would come from a model: copied, and checked by the tool.

    Raises ToolInputInvalid, whatever they are and whatever the tool's own code makes of them.
    """
    try:
        arguments = _written(wanted)
        if tool is not None:
            tool.checked(copied(arguments))
    except ToolInputInvalid:
        raise
    except RecursionError:
        raise ToolInputInvalid(_TOO_DEEP) from None
    except BaseException as error:  # noqa: BLE001 - whatever was written there, and a schema makes of it
        raise ToolInputInvalid(f"They cannot be used ({kind_of(error)}).") from None
    return arguments


def _written(wanted: object) -> JsonObject:
    arguments: object = json.loads(json.dumps(wanted, allow_nan=False))
    if not isinstance(arguments, dict):
        raise ToolInputInvalid("They are no JSON object.")
    if is_nested_deeper(cast("object", arguments), DEEPEST):
        raise ToolInputInvalid(_TOO_DEEP)
    return cast("JsonObject", arguments)


def decide(
    case: Case,
    rules: Iterable[Rule],
    mode: Mode,
    *,
    suspension: Suspension = NOTHING_SUSPENDED,
    grounds: Grounds = ANYWHERE,
) -> Verdict:
    """Take an admitted call through hard denies, rules and mode. All `rules` hold here and now."""
    hard = hard_deny(case, grounds)
    if hard is not None and hard.is_certain:
        return denied("This is never run: {reason} Find another way.", reason=hard.reason)
    held = (*mode.rules, *rules)
    verdict = _held_back(case, held, mode) or _let_through(case, held, mode, hard)
    if not suspension.covers(case.tool) or not isinstance(verdict, Allowed) or verdict.by == "default":
        return verdict
    return Allowed(case.digest, "default") if _is_harmless(case) else Ask(case.digest, (suspension.why,))


def denied(template: str, **values: str) -> Refused:
    """Refused by what the person, or the program, has laid down."""
    return Refused(Outcome.DENIED, Sentence(template, values))


def _held_back(case: Case, rules: tuple[Rule, ...], mode: Mode) -> Verdict | None:
    """What rules that deny or ask say, and a mode that denies; None when they say nothing."""
    caught = [(rule, catches(rule, case)) for rule in rules if rule.effect is not RuleEffect.ALLOW]
    for rule, match in caught:
        if rule.effect is RuleEffect.DENY and match is Match.YES:
            return denied("A rule made by {origin} denies this call. Find another way.", origin=rule.origin)
    if mode.mutating == "deny" and _changes_something(case.tool) and not case.is_read_only:
        return denied("The mode “{mode}” denies calls that change something.", mode=mode.title)
    asking = [(rule, match) for rule, match in caught if match is not Match.NO and not _is_answered(rule, rules, case)]
    if not asking:
        return None
    return Ask(case.digest, (_why_asked(*asking[0]),), tuple(rule.id for rule, _ in asking))


def _is_answered(asks: Rule, rules: tuple[Rule, ...], case: Case) -> bool:
    """Whether a person allowed calls like this one when they were asked because of this rule."""
    answering = (rule for rule in rules if rule.effect is RuleEffect.ALLOW and asks.id in rule.answers)
    return asks.effect is RuleEffect.ASK and covering(answering, case) is not None


def _let_through(case: Case, rules: tuple[Rule, ...], mode: Mode, hard: HardDeny | None) -> Verdict:
    """What rules that allow, the tool's default and a mode that allows say."""
    rule = covering((each for each in rules if each.effect is RuleEffect.ALLOW and _saw(each, hard)), case)
    # A mode that changes nothing lets through what is read-only, and holds it to reading whatever rules allow.
    if rule is not None and not (mode.mutating == "deny" and case.is_read_only):
        return Allowed(case.digest, "rule", rule.id, rule.trusts)
    if _is_harmless(case) and not (hard is not None and hard.even_at_reading):
        return Allowed(case.digest, "default")
    if hard is not None:
        return Ask(case.digest, hard.sentences, hard.asked_by)
    if mode.mutating == "accept_edits" and _only_edits(case.tool):
        return Allowed(case.digest, "mode")
    return Ask(case.digest)


def _saw(rule: Rule, hard: HardDeny | None) -> bool:
    """Whether a person made this rule in sight of why they are asked; a wider one says nothing about that."""
    if hard is None or isinstance(rule.pattern, ArgumentsPattern):
        return True
    return bool(hard.asked_by) and set(hard.asked_by) <= set(rule.answers)


def _why_asked(rule: Rule, match: Match) -> Sentence:
    template = "A rule made by {origin} asks about something that this call may be doing; it cannot be told for sure."
    if match is Match.YES:
        template = "A rule made by {origin} wants this to be asked."
    elif rule.effect is RuleEffect.DENY:
        template = "A rule made by {origin} denies something that this call may be doing; it cannot be told for sure."
    return Sentence(template, {"origin": rule.origin})


def _is_harmless(case: Case) -> bool:
    tool = case.tool
    only_reads = tool.tool_class is ToolClass.READ_ONLY and (tool.effects <= _HARMLESS or tool.effects == _HANDS_ON)
    return only_reads or case.is_read_only


def _changes_something(tool: AnyTool) -> bool:
    return tool.tool_class is ToolClass.MUTATING or bool(tool.effects & _CHANGES)


def _only_edits(tool: AnyTool) -> bool:
    return Effect.WRITE in tool.effects and tool.effects <= _EDITS


def _unknown(name: str, known_names: Iterable[str]) -> Refused:
    names = ", ".join(known_names)
    if not names:
        return _failed("There is no tool “{name}”; this conversation has no tools.", name=name[:80])
    return _failed("There is no tool “{name}”. The tools are: {names}.", name=name[:80], names=names)


def _is_object(text: str) -> bool:
    """Whether what a call is malformed for is not its arguments; long ones are what they are nearly always."""
    if len(text) > _LONGEST_LOOKED_AT:
        return False
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not is_nested_deeper(cast("JsonObject", value), DEEPEST)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _failed(template: str, **values: str) -> Refused:
    return Refused(Outcome.FAILED, Sentence(template, values))
