"""Approvals: open one for a call, show its preview with the commands explained, and take the answer."""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from typing import Literal

from desktop_agent.data_files import load_table
from desktop_agent.permissions.gate import Allowed, Ask, validate_edited_arguments
from desktop_agent.permissions.shell.parser import Command, parse_line
from desktop_agent.permissions.shell.syntax import Redirection, word_set
from desktop_agent.permissions.shell.wrappers import SHELLS, program_name
from desktop_agent.processes.foreign_code import deep_copy
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import JsonObject, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.lookalikes import Lookalike, ascii_lookalike, find_lookalike
from desktop_agent.types.permissions import ArgumentsPattern, Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    CommandPart,
    CommandPreview,
    Decision,
    Deny,
    DenyAndStop,
    Effect,
    Preview,
    Risk,
    TextPreview,
    is_same_json,
)

_ORDER = tuple(Risk)
_HOST = re.compile(r"(?://|@)([^\s/@:?#]+)")


def explain_line(line: str) -> tuple[tuple[CommandPart, ...], bool]:
    """Return the commands of a line in order, and whether it is sure to run nothing else. Raises nothing."""
    parsed = parse_line(line)
    parts = [part for command in parsed.top_level for part in _command_parts(command, 0)]
    parts += [_redirection_part(redirection) for redirection in parsed.redirections]
    if parsed.sets_variables:
        parts.append(CommandPart(_SETS, (Risk.UNCLEAR,)))
    return tuple(parts), parsed.understood


_SETS = "NAME=…"


def _command_parts(command: Command, depth: int) -> Iterator[CommandPart]:
    risks, lookalikes = _risks(command), tuple(_lookalikes(command))
    yield CommandPart(" ".join(command.sources), (*risks, Risk.LOOKALIKE) if lookalikes else risks, depth, lookalikes)
    for start in command.started:
        yield from _command_parts(start, depth + 1)


def _redirection_part(redirection: Redirection) -> CommandPart:
    sign, risks = (">", (Risk.WRITES,)) if redirection.writes else ("<", ())
    alike = find_lookalike(redirection.target or redirection.source, redirection.source)
    if alike is None:
        return CommandPart(f"{sign} {redirection.source}", risks)
    return CommandPart(f"{sign} {redirection.source}", (*risks, Risk.LOOKALIKE), lookalikes=(alike,))


def _with_lookalikes(part: CommandPart) -> CommandPart:
    words = enumerate(part.text.split())
    alike = (find_lookalike(word, is_name=position == 0 or word.startswith("-")) for position, word in words)
    lookalikes = tuple(filter(None, alike))
    risks = (*part.risks, Risk.LOOKALIKE) if lookalikes else part.risks
    return replace(part, risks=risks, lookalikes=lookalikes)


def _lookalikes(command: Command) -> Iterator[Lookalike]:
    """Yield the lookalikes in the command's own words; those of a command that it starts are reported there."""
    own_words = command.own_word_count if command.started else len(command.words)
    reaches_hosts = Risk.NETWORK in _risks(command)
    for position, (word, source) in enumerate(zip(command.words[:own_words], command.sources[:own_words], strict=True)):
        text = source if word is None else word
        is_name = position == 0 or ascii_lookalike(text[:1]) == "-" or text.startswith("-")
        lookalike = find_lookalike(text, source, is_name=is_name or (reaches_hosts and "." in text))
        in_hosts = (find_lookalike(host, is_name=True) for host in _HOST.findall(text))
        lookalike = lookalike or next(filter(None, in_hosts), None)
        if lookalike is not None:
            yield Lookalike(text, lookalike.char, lookalike.passes_for)


@cache
def _risk_tables() -> tuple[dict[Risk, frozenset[str]], dict[Risk, frozenset[str]]]:
    """Return the names of risky programs, and risky pairs of a program and a word."""
    data = load_table(__name__, "risks.toml")
    return (
        {Risk(risk): word_set(names) for risk, names in data["programs"].items()},
        {Risk(risk): frozenset(pairs) for risk, pairs in data["words"].items()},
    )


def _risks(command: Command) -> tuple[Risk, ...]:
    name = program_name(command.words[0] or "") if command.words else ""
    words = {word for word in command.words[1:] if word is not None}
    risky_names, risky_pairs = _risk_tables()
    risks = {risk for risk, names in risky_names.items() if name in names or _family(name) in names}
    risks |= {risk for risk, pairs in risky_pairs.items() if any(f"{name} {word}" in pairs for word in words)}
    if name in SHELLS:
        risks.add(Risk.RUNS_CODE)
    if any(word is None for word in command.words):
        risks.add(Risk.UNCLEAR)
    return tuple(risk for risk in _ORDER if risk in risks)


def _family(name: str) -> str:
    """Return the family of a program: `mkfs.ext4` is an mkfs, `python3.11` a python3."""
    return name.partition(".")[0]


def preview_failed(kind: str) -> TextPreview:
    """Return the text in place of a preview that failed with an error of this kind."""
    return TextPreview(Sentence("The effect of this call cannot be shown ({kind}).", {"kind": kind}))


def explain_preview(preview: Preview | None) -> Preview | None:
    """Return the preview with the commands of a command line explained."""
    if not isinstance(preview, CommandPreview):
        return preview
    if preview.language == "powershell":
        # Its tool has the commands from PowerShell itself, which cannot tell all that they run.
        parts = preview.parts or (CommandPart(preview.line),)
        return replace(preview, parts=tuple(map(_with_lookalikes, parts)), understood=False)
    parts, understood = explain_line(preview.line)
    return replace(preview, parts=parts, understood=understood)


# Tools that can do nearly anything: allowing one for a conversation allows only what the call shows.
_FAR_REACHING = frozenset({Effect.EXECUTE, Effect.NETWORK})
_AllowDecision = AllowOnce | AllowForConversation | AllowAlways
# Ended approvals that are remembered, to answer a decision that comes too late.
_MAX_REMEMBERED = 200


@dataclass(frozen=True, slots=True)
class Resolution:
    """How an approval ended. `decision` is None when Stop withdrew it.

    `input` and `digest` are what the decision is about: the edited arguments if there are any. `rule` holds from now
    on, where the person decided about more than this call; whoever asked adds it to the policy.
    """

    decision: Decision | None
    by: Literal["person", "rule", "stop"]
    input: JsonObject
    digest: str
    edited: bool = False
    rule: Rule | None = None

    @property
    def allows(self) -> bool:
        return isinstance(self.decision, _AllowDecision)

    @property
    def verdict(self) -> Allowed | None:
        """The verdict to compare with the one before the start; None when the call may not run."""
        if not self.allows:
            return None
        trusts = self.rule is not None and self.rule.trusts
        return Allowed(self.digest, "person" if self.by == "person" else "rule", trusts=trusts)


class Approval:
    """One question to a person about one call, bound to the digest of its tool and arguments.

    `tool_use` and `input` are copies: whoever is asked may change them. `arguments` are what would run, where a hook
    changed them. `verdict` is that of the gate that asks, about just these arguments; without `reasons` it is the
    tool's default. `proposals` are the rules that the person may create from it, shown with the question.
    """

    def __init__(
        self,
        approval_id: str,
        tool_use: ToolUse,
        tool: AnyTool,
        preview: Preview | None = None,
        *,
        arguments: JsonObject | None = None,
        verdict: Ask | None = None,
        proposals: tuple[Rule, ...] = (),
        agent_path: tuple[str, ...] = (),
    ) -> None:
        self.approval_id = approval_id
        self.tool = tool
        self.preview = preview
        self.reasons = () if verdict is None else verdict.reasons
        self._asked_by = () if verdict is None else verdict.rules
        self.proposals = proposals
        self.agent_path = agent_path
        self._use = tool_use
        self._arguments = tool_use.input if arguments is None else arguments
        self.digest = tool.digest(self._arguments) if verdict is None else verdict.digest
        self._ended: asyncio.Future[Resolution] = asyncio.get_running_loop().create_future()

    @property
    def reason(self) -> str:
        return " ".join(map(str, self.reasons))

    @cached_property
    def tool_use(self) -> ToolUse:
        """The call as the model made it."""
        return deep_copy(self._use)

    @cached_property
    def input(self) -> JsonObject:
        """The arguments that are asked about."""
        return deep_copy(self._arguments)

    async def resolution(self) -> Resolution:
        """Wait for the end. Cancelling the wait leaves the approval open."""
        return await asyncio.shield(self._ended)

    def resolution_of(self, decision: Decision) -> Resolution:
        """Return what a decision about this call means.

        Raises ToolInputInvalid when edited arguments do not fit, and WrongUse for a rule that was not proposed.
        """
        edited = decision.edited_input if isinstance(decision, _AllowDecision) else None
        arguments, digest = self._arguments, self.digest
        if edited is not None:
            arguments = validate_edited_arguments(edited, self.tool)
            digest = self.tool.digest(arguments)
        return Resolution(
            decision, "person", arguments, digest, edited is not None, self._rule(decision, digest, arguments)
        )

    def resolution_by_rule(self, *, allow: bool, why: str = "") -> Resolution:
        """Return the resolution by a rule or a mode that decides now."""
        return Resolution(AllowOnce() if allow else Deny(message=why), "rule", self._arguments, self.digest)

    @property
    def requested_event(self) -> ApprovalRequested:
        """The event that announces it."""
        edited = None if is_same_json(self._arguments, self._use.input) else self._arguments
        return ApprovalRequested(self.approval_id, self._use.id, self.digest, self.agent_path, self.reason, edited)

    def resolution_by_stop(self) -> Resolution:
        """Return the resolution by Stop."""
        return Resolution(None, "stop", self._arguments, self.digest)

    def end(self, resolution: Resolution) -> None:
        """Give the resolution to whoever waits. Call it once only."""
        self._ended.set_result(resolution)

    def _rule(self, decision: Decision, digest: str, arguments: JsonObject) -> Rule | None:
        if isinstance(decision, AllowAlways):
            for proposal in self.proposals:
                if proposal.id == decision.rule_id:
                    return proposal.model_copy(update={"answers": self._asked_by})
            raise WrongUse("This rule was not proposed for this call.", "Choose one of the rules that were shown.")
        if isinstance(decision, AllowForConversation):
            if self.tool.always_asked is not None:
                raise WrongUse("You are asked about every call of this tool.", "Allow it once.")
            return self._conversation_rule(digest, arguments)
        return None

    def _conversation_rule(self, digest: str, arguments: JsonObject) -> Rule:
        """Return a rule for the whole tool; for a far-reaching tool only for what the call showed."""
        # Imported late: most runs ask nothing.
        from desktop_agent.permissions.rule_proposals import with_words

        pattern = None
        if self.tool.effects & _FAR_REACHING:
            as_shown = digest == self.digest and self.proposals
            pattern = self.proposals[0].pattern if as_shown else ArgumentsPattern(digest=digest)
        scope = RuleScope.CONVERSATION
        allow, answers = RuleEffect.ALLOW, self._asked_by
        rule = Rule(effect=allow, tool=self.tool.identity, pattern=pattern, scope=scope, answers=answers)
        return with_words((rule,), arguments)[0]


class AnswerStatus(StrEnum):
    """What became of an answer."""

    TAKEN = "taken"
    ALREADY_DECIDED = "already_decided"
    WITHDRAWN = "withdrawn"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """What became of an answer; `resolution` is how the approval ended, if it has."""

    approval_id: str
    status: AnswerStatus
    resolution: Resolution | None = None

    @property
    def accepted(self) -> bool:
        return self.status is AnswerStatus.TAKEN


class ApprovalBroker:
    """The approvals of one conversation. Lives on the event loop; not for other threads.

    `on_reopened` is called with a question from before a restart that is asked again.
    """

    def __init__(self, on_reopened: Callable[[Approval], None] = lambda _approval: None) -> None:
        self._on_reopened = on_reopened
        self._open: dict[str, Approval] = {}
        self._ended: dict[str, Resolution] = {}

    @property
    def open_approvals(self) -> tuple[Approval, ...]:
        """The approvals that wait, in the order in which they were opened."""
        return tuple(self._open.values())

    def open(self, approval: Approval, *, is_reopened: bool = False) -> Approval:
        """Open an approval; `is_reopened`: a question from before a restart. Raises WrongUse for an id in use."""
        if approval.approval_id in self._open or approval.approval_id in self._ended:
            raise WrongUse("This approval was opened before.")
        self._open[approval.approval_id] = approval
        if is_reopened:
            self._on_reopened(approval)
        return approval

    def answer(self, approval_id: str, decision: Decision) -> AnswerReport:
        """Decide. The first decision counts; a later one changes nothing, and the report says how the approval ended.

        Raises ToolInputInvalid when edited arguments do not fit the tool, and WrongUse for a rule that was not proposed
        and for anything that is no decision; the approval stays open then.
        """
        if not isinstance(decision, _AllowDecision | Deny | DenyAndStop):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongUse("This is not a decision.", "Answer with one that allows or denies.")
        approval = self._open.get(approval_id)
        if approval is None:
            return self.report(approval_id)
        return self._close(approval, approval.resolution_of(decision))

    def resolve_by_rule(self, approval_id: str, *, allow: bool, why: str = "") -> AnswerReport:
        """Let a changed rule or mode decide instead of the person, never over a decision that was made."""
        approval = self._open.get(approval_id)
        if approval is None:
            return self.report(approval_id)
        return self._close(approval, approval.resolution_by_rule(allow=allow, why=why))

    def withdraw(self, approval_id: str) -> Approval | None:
        """Withdraw an approval, for Stop; None when it does not wait."""
        approval = self._open.get(approval_id)
        if approval is not None:
            self._close(approval, approval.resolution_by_stop())
        return approval

    def report(self, approval_id: str) -> AnswerReport:
        """Report on an approval that does not wait: an answer to it comes too late."""
        resolution = self._ended.get(approval_id)
        if resolution is None:
            return AnswerReport(approval_id, AnswerStatus.UNKNOWN)
        status = AnswerStatus.WITHDRAWN if resolution.by == "stop" else AnswerStatus.ALREADY_DECIDED
        return AnswerReport(approval_id, status, resolution)

    def _close(self, approval: Approval, resolution: Resolution) -> AnswerReport:
        del self._open[approval.approval_id]
        self._ended[approval.approval_id] = resolution
        if len(self._ended) > _MAX_REMEMBERED:
            del self._ended[next(iter(self._ended))]
        approval.end(resolution)
        return AnswerReport(approval.approval_id, AnswerStatus.TAKEN, resolution)
