"""The gate: decide whether a call may run, from the call, its tool, the rules and the mode."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from desktop_agent.permissions.hard_denies import (
    NO_PROTECTED_PATHS,
    HardAsk,
    HardDeny,
    ProtectedPaths,
    find_hard_verdict,
)
from desktop_agent.permissions.rule_matching import CallFacts, Match, find_allowing_rule, match_restriction
from desktop_agent.processes.worker_threads import is_nested_deeper
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import JsonObject, Outcome, ToolUse
from desktop_agent.types.errors import Sentence, ToolInputInvalid
from desktop_agent.types.permissions import ArgumentsPattern, Mode, Rule, RuleEffect
from desktop_agent.types.tool_calls import Effect, ToolClass

# What a read-only tool may touch without a question. Reaching the network sends something out.
_READ_ONLY = frozenset({Effect.READ})
# A call that only hands work on: everything that is done for it passes the gate by itself.
_DELEGATES = frozenset({Effect.DELEGATE})
_EDITS = frozenset({Effect.READ, Effect.WRITE})
_CHANGES = frozenset({Effect.WRITE, Effect.EXECUTE})

# Levels. Far more than any tool asks for, far less than a JSON library fails at.
MAX_ARGUMENT_DEPTH = 200

_TOO_DEEP = "The arguments are nested too deep to be checked."
_NO_OBJECT = "The arguments are not a JSON object, so the call was not run. Write them again."
_MALFORMED_CALL = (
    "The call has no name, is incomplete, or may be a part of the one beside it, so it was not run. Call again, one at "
    "a time."
)
_MAX_PARSED_LENGTH = 64 * 1024
# The origins that a rule can have; these can be translated.
_ORIGINS = {
    "you": Sentence("you"),
    "a mode": Sentence("a mode"),
    "the program": Sentence("the program"),
}

AllowedBy = Literal["default", "rule", "mode", "person"]


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call may run with exactly the arguments of `digest`: by the tool's default, a rule, the mode, or a person.

    `trusts`: what it brings in from outside is trusted. By default nobody allowed that it changes anything, so it is
    restricted to reading (RunningCall.is_read_only).
    """

    digest: str
    by: AllowedBy
    rule_id: str | None = None
    trusts: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must decide about exactly the arguments of `digest`. Without `reasons` it is the tool's default.

    `rules` are the ids of the rules that ask; two questions are equal whichever rules put them.
    """

    digest: str
    reasons: tuple[Sentence, ...] = ()
    rules: tuple[str, ...] = field(default=(), compare=False)

    @property
    def reason(self) -> str:
        return " ".join(map(str, self.reasons))


@dataclass(frozen=True, slots=True)
class Denied:
    """The call never runs; the sentence is for the model and for the person."""

    outcome: Outcome
    sentence: Sentence


Verdict = Allowed | Ask | Denied
_STRICTNESS: tuple[type[Verdict], ...] = (Allowed, Ask, Denied)


def strictness(verdict: Verdict) -> int:
    """Return how strict a verdict is: 0 allowed, 1 ask, 2 denied."""
    return _STRICTNESS.index(type(verdict))


def stricter(first: Verdict, second: Verdict) -> Verdict:
    """Return the stricter verdict; of two that ask the first, with the rules of both.

    Of two that allow, the one that is restricted to reading; and it trusts only what both do.
    """
    if isinstance(first, Ask) and isinstance(second, Ask):
        return replace(first, rules=tuple(dict.fromkeys((*first.rules, *second.rules))))
    if isinstance(first, Allowed) and isinstance(second, Allowed):
        return replace(second if second.by == "default" else first, trusts=first.trusts and second.trusts)
    return second if strictness(second) > strictness(first) else first


@dataclass(frozen=True, slots=True)
class AdmittedCall:
    """A call that its tool accepts: the checked input, and the digest of its arguments."""

    tool: AnyTool
    input: Any
    digest: str


@dataclass(frozen=True, slots=True)
class Suspension:
    """What rules and modes do not allow for now, and why."""

    effects: frozenset[Effect] = frozenset()
    why: Sentence = field(default_factory=lambda: Sentence("It is not allowed for now."))

    def covers(self, tool: AnyTool) -> bool:
        """Return whether the tool may have one of these effects; a mutating one that declares none may have any."""
        undeclared = tool.tool_class is ToolClass.MUTATING and not tool.effects
        return bool(self.effects) and (undeclared or bool(self.effects & tool.effects))


NOTHING_SUSPENDED = Suspension()


def admit(
    call: ToolUse, tool: AnyTool | None, known_names: Iterable[str] = (), digest: str | None = None
) -> AdmittedCall | Denied:
    """Check that there is such a tool and that it accepts these arguments.

    `known_names` are listed for a model that asked for a tool that does not exist. `digest` is that of the call, if it
    is known already.
    """
    if call.malformed is not None:
        return _fail(_MALFORMED_CALL if _is_object(call.malformed) else _NO_OBJECT)
    if tool is None:
        return _unknown_tool(call.name, known_names)
    if is_nested_deeper(call.input, MAX_ARGUMENT_DEPTH):
        return _fail(_TOO_DEEP)
    try:
        return AdmittedCall(tool, tool.checked(call.input), digest or tool.digest(call.input))
    except ToolInputInvalid as error:
        return Denied(Outcome.FAILED, error.sentence)


def validate_edited_arguments(edited: object, tool: AnyTool | None) -> JsonObject:
    """Copy arguments that a hook or an approver wrote, as JSON, and have the tool check them like a model's.

    Raises ToolInputInvalid.
    """
    try:
        arguments = _as_json_object(edited)
        if tool is not None:
            tool.checked(arguments)
    except ToolInputInvalid:
        raise
    except RecursionError:
        raise ToolInputInvalid(_TOO_DEEP) from None
    except BaseException as error:  # noqa: BLE001 - whatever was written there, and a schema makes of it
        raise ToolInputInvalid(Sentence("They cannot be used ({kind}).", {"kind": type(error).__name__})) from None
    return arguments


def _as_json_object(edited: object) -> JsonObject:
    arguments: object = json.loads(json.dumps(edited, allow_nan=False))
    if not isinstance(arguments, dict):
        raise ToolInputInvalid("They are not a JSON object.")
    if is_nested_deeper(cast("object", arguments), MAX_ARGUMENT_DEPTH):
        raise ToolInputInvalid(_TOO_DEEP)
    return cast("JsonObject", arguments)


def decide(
    facts: CallFacts,
    rules: Iterable[Rule],
    mode: Mode,
    *,
    suspension: Suspension = NOTHING_SUSPENDED,
    protected: ProtectedPaths = NO_PROTECTED_PATHS,
) -> Verdict:
    """Take an admitted call through hard denies, rules and mode. All `rules` hold here and now."""
    hard = find_hard_verdict(facts, protected)
    if isinstance(hard, HardDeny):
        return deny("This is never run: {reason} Find another way.", reason=hard.reason)
    rules_in_force = (*mode.rules, *rules)
    verdict = _restricting_verdict(facts, rules_in_force, mode) or _allowing_verdict(facts, rules_in_force, mode, hard)
    if not suspension.covers(facts.tool) or not isinstance(verdict, Allowed) or verdict.by == "default":
        return verdict
    return Allowed(facts.digest, "default") if _only_reads(facts) else Ask(facts.digest, (suspension.why,))


def deny(template: str, **values: str | Sentence) -> Denied:
    """Return a denial by what the person, or the program, has decided."""
    return Denied(Outcome.DENIED, Sentence(template, values))


def _restricting_verdict(facts: CallFacts, rules: tuple[Rule, ...], mode: Mode) -> Verdict | None:
    """Return what rules that deny or ask decide, and a mode that denies; None when they decide nothing."""
    matches = [(rule, match_restriction(rule, facts)) for rule in rules if rule.effect is not RuleEffect.ALLOW]
    for rule, match in matches:
        if rule.effect is RuleEffect.DENY and match is Match.YES:
            return deny("A rule made by {origin} denies this call. Find another way.", origin=_origin(rule))
    if mode.mutating == "deny" and _changes_something(facts.tool) and not facts.is_read_only:
        return deny("The mode “{mode}” denies calls that change something.", mode=mode.title)
    asking = [
        (rule, match) for rule, match in matches if match is not Match.NO and not _is_answered(rule, rules, facts)
    ]
    if not asking:
        return None
    return Ask(facts.digest, (_ask_reason(*asking[0]),), tuple(rule.id for rule, _ in asking))


def _is_answered(asking_rule: Rule, rules: tuple[Rule, ...], facts: CallFacts) -> bool:
    """Return whether a person allowed calls like this one when they were asked because of this rule."""
    answering = (rule for rule in rules if rule.effect is RuleEffect.ALLOW and asking_rule.id in rule.answers)
    return asking_rule.effect is RuleEffect.ASK and find_allowing_rule(answering, facts) is not None


def _allowing_verdict(facts: CallFacts, rules: tuple[Rule, ...], mode: Mode, hard: HardAsk | None) -> Verdict:
    """Return what rules that allow, the tool's default and a mode that allows decide."""
    if facts.tool.always_asked is not None:
        return Ask(facts.digest, (facts.tool.always_asked, *(() if hard is None else hard.reasons)))
    allowing = (rule for rule in rules if rule.effect is RuleEffect.ALLOW and _answers_hard_ask(rule, hard))
    rule = find_allowing_rule(allowing, facts)
    # A mode that changes nothing lets through what is read-only, and holds it to reading whatever rules allow.
    if rule is not None and not (mode.mutating == "deny" and facts.is_read_only):
        return Allowed(facts.digest, "rule", rule.id, rule.trusts)
    if _only_reads(facts) and not (hard is not None and hard.applies_to_reads):
        return Allowed(facts.digest, "default")
    if hard is not None:
        return Ask(facts.digest, hard.reasons, hard.asked_by)
    if mode.mutating == "accept_edits" and _only_edits(facts.tool):
        return Allowed(facts.digest, "mode")
    return Ask(facts.digest)


def _answers_hard_ask(rule: Rule, hard: HardAsk | None) -> bool:
    """Return whether a person saw, when they made this rule, why they are asked now; a wider rule does not count."""
    if hard is None or isinstance(rule.pattern, ArgumentsPattern):
        return True
    return bool(hard.asked_by) and set(hard.asked_by) <= set(rule.answers)


def _ask_reason(rule: Rule, match: Match) -> Sentence:
    template = "A rule made by {origin} asks about something that this call may do. It is not certain whether it does."
    if match is Match.YES:
        template = "A rule made by {origin} asks about this call."
    elif rule.effect is RuleEffect.DENY:
        template = "A rule made by {origin} denies something that this call may do. It is not certain whether it does."
    return Sentence(template, {"origin": _origin(rule)})


def _origin(rule: Rule) -> Sentence | str:
    return _ORIGINS.get(rule.origin, rule.origin)


def _only_reads(facts: CallFacts) -> bool:
    tool = facts.tool
    only_reads = tool.tool_class is ToolClass.READ_ONLY and (tool.effects <= _READ_ONLY or tool.effects == _DELEGATES)
    return only_reads or facts.is_read_only


def _changes_something(tool: AnyTool) -> bool:
    return tool.tool_class is ToolClass.MUTATING or bool(tool.effects & _CHANGES)


def _only_edits(tool: AnyTool) -> bool:
    return Effect.WRITE in tool.effects and tool.effects <= _EDITS


def _unknown_tool(name: str, known_names: Iterable[str]) -> Denied:
    names = ", ".join(known_names)
    if not names:
        return _fail("There is no tool “{name}”; this conversation has no tools.", name=name[:80])
    return _fail("There is no tool “{name}”. The tools are: {names}.", name=name[:80], names=names)


def _is_object(text: str) -> bool:
    """Return whether a malformed call has sound arguments. Long arguments nearly always are the fault themselves."""
    if len(text) > _MAX_PARSED_LENGTH:
        return False
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not is_nested_deeper(cast("JsonObject", value), MAX_ARGUMENT_DEPTH)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _fail(template: str, **values: str) -> Denied:
    return Denied(Outcome.FAILED, Sentence(template, values))
