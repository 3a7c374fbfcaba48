"""What holds for one agent now: rules, mode, and which tools may be named at all."""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from desktop_agent.permissions.gate import NOTHING_SUSPENDED, Refused, Verdict, admitted, decide, denied, strictest
from desktop_agent.permissions.hard_denies import Grounds, hard_deny, may_write
from desktop_agent.permissions.places.following import followed
from desktop_agent.permissions.places.private_places import private_places_in
from desktop_agent.permissions.places.startup_places import startup_places
from desktop_agent.permissions.proposals import of_startup_files, proposals, with_trust
from desktop_agent.permissions.rule_matching import Case
from desktop_agent.permissions.taint import CLEAN, Taint
from desktop_agent.tools.foreign_code import Fault, contained
from desktop_agent.tools.in_thread import StopSign, by_size, in_thread
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.conduct.modes import DEFAULT_MODE, Mode
from desktop_agent.vocabulary.conduct.rules import PathSubject, Rule, RuleEffect, RuleScope, Subject
from desktop_agent.vocabulary.errors import Sentence, ToolFailed, WrongUse
from desktop_agent.vocabulary.messages import now
from desktop_agent.vocabulary.tool_calls import Effect, UntrustedSource

_log = logging.getLogger(__name__)
Listener = Callable[[], None]


@dataclass(frozen=True, slots=True)
class NamePolicy:
    """Which tools may be named. `allowed` None: all that are not denied."""

    allowed: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()

    def admits(self, name: str) -> bool:
        """Whether this one may."""
        return name not in self.denied and (self.allowed is None or name in self.allowed)


ALL_NAMES = NamePolicy()


class _Heard:
    """Tells who listens here, and below, when rules or mode change."""

    def __init__(self, above: "_Heard | None") -> None:
        self._above = above
        self._changed: list[Listener] = []

    def on_change(self, listener: Listener) -> None:
        """Be told when rules or mode change, here or above."""
        self._changed.append(listener)
        if self._above is not None:
            self._above.on_change(listener)

    def off_change(self, listener: Listener) -> None:
        """No more."""
        if listener in self._changed:
            self._changed.remove(listener)
        if self._above is not None:
            self._above.off_change(listener)

    def _tell(self) -> None:
        for listener in tuple(self._changed):
            listener()


class Standing(_Heard):
    """Rules and mode of one agent, and the verdicts that follow from them. Lives on the event loop.

    A nested one answers to its parent too: the strictest verdict counts, whatever its own rules and mode are. What a
    person decides about one of its calls is added at the root, for the whole conversation. Without a `mode` of its own
    it follows its parent's; without a parent that is the default mode.
    Rules that are given and do not say for which conversation hold in this one.
    `own_folders` are the program's own, as absolute paths with forward slashes: no call writes there.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        mode: Mode | None = None,
        names: NamePolicy = ALL_NAMES,
        conversation_id: str | None = None,
        workspace: str | None = None,
        parent: "Standing | None" = None,
        own_folders: tuple[str, ...] = (),
        clock: Callable[[], datetime] = now,
    ) -> None:
        super().__init__(parent)
        self._rules = tuple(_of_conversation(rule, conversation_id) for rule in rules)
        self._mode = mode
        self._names = names
        self._conversation_id = conversation_id
        self._workspace = workspace
        self._own_folders = own_folders
        self._clock = clock
        self._parent = parent
        self._suspension = NOTHING_SUSPENDED
        self._taint = CLEAN

    def nested(
        self, *, rules: Iterable[Rule] = (), mode: Mode | None = None, names: NamePolicy = ALL_NAMES
    ) -> "Standing":
        """For an agent that this one starts: this AND that, always."""
        return Standing(
            rules,
            mode=mode,
            names=names,
            conversation_id=self._conversation_id,
            workspace=self._workspace,
            parent=self,
            own_folders=self._own_folders,
            clock=self._clock,
        )

    @property
    def mode(self) -> Mode:
        """The mode that holds now."""
        if self._mode is None and self._parent is not None:
            return self._parent.mode
        return self._mode or DEFAULT_MODE

    def tools_changed(self) -> None:
        """Tools came, went, or count as something else: whatever has not started is judged again."""
        self._tell()

    def set_mode(self, mode: Mode) -> None:
        """Change it, at once: for every call that has not started."""
        self._mode = mode
        self._tell()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All that were laid down here and above, also those that hold elsewhere or have expired."""
        return self._rules if self._parent is None else (*self._rules, *self._parent.rules)

    def add(self, rule: Rule) -> None:
        """One more, for the whole conversation. One of the same id is replaced.

        A rule for a conversation or a workspace that does not say which gets this one's. Raises WrongUse where there
        is no workspace that it could hold in.
        """
        if self._parent is not None:
            self._parent.add(rule)
            return
        self._rules = (
            *(each for each in self._rules if each.id != rule.id),
            _placed(rule, self._conversation_id, self._workspace),
        )
        self._tell()

    def revoke(self, rule_id: str) -> Rule | None:
        """One less; None when there is none of this id."""
        revoked = next((each for each in self._rules if each.id == rule_id), None)
        if revoked is None:
            return self._parent.revoke(rule_id) if self._parent is not None else None
        self._rules = tuple(each for each in self._rules if each.id != rule_id)
        self._tell()
        return revoked

    def suspend(self, effects: frozenset[Effect], why: Sentence) -> None:
        """Until it is lifted, ask about tools with any of these effects, whatever rules and mode allow."""
        self._suspension = replace(self._suspension, effects=self._suspension.effects | effects, why=why)
        self._tell()

    @property
    def taint(self) -> Taint:
        """What came in from outside; one for the whole conversation."""
        return self._taint if self._parent is None else self._parent.taint

    def mark(self, outsider: UntrustedSource) -> bool:
        """Content of theirs came in; whether it is the first since the person trusted them, or ever."""
        if self._parent is not None:
            return self._parent.mark(outsider)
        before, self._taint = self._taint, self._taint.marked(outsider)
        if self._taint is before:
            return False
        self._tell()
        return True

    def trust(self, outsider: UntrustedSource) -> bool:
        """Note content of theirs that came in by a call whose rule trusts it; whether it is new."""
        if self._parent is not None:
            return self._parent.trust(outsider)
        before, self._taint = self._taint, self._taint.trusting(outsider)
        return self._taint is not before

    def lift(self, shown: Sequence[str] | None = None) -> None:
        """End what was suspended here, and trust what came in from outside so far.

        `shown` are the names that the person saw when they said so: who came since is not trusted. None: all of them.
        """
        if self._parent is not None:
            self._parent.lift(shown)
        self._suspension, self._taint = NOTHING_SUSPENDED, self._taint.lifted(shown)
        self._tell()

    async def verdict(
        self, call: ToolUse, tool: AnyTool | None, known_names: Iterable[str] = (), *, digest: str | None = None
    ) -> Verdict:
        """Take a call through the gates, in the order in which they stand. `call.input` is what would run.

        `known_names` are told to a model that asked for a tool that is not there. `digest` is that of the call, where
        it is known already.
        """
        if not self.admits(call.name):
            return denied("The tool “{name}” may not be used here.", name=call.name)
        entry = await by_size(lambda: admitted(call, tool, known_names, digest), call.input)
        if isinstance(entry, Refused):
            return entry
        subjects = await _subjects(entry.tool, entry.input, self._workspace)
        case = Case(entry.tool, entry.digest, subjects, self._workspace)
        return self._decided(case, await self._grounds(case))

    async def proposals(self, call: ToolUse, tool: AnyTool, *, digest: str | None = None) -> tuple[Rule, ...]:
        """Rules that would allow this call from now on, to be shown with a question about it."""
        entry = await by_size(lambda: admitted(call, tool, digest=digest), call.input)
        if isinstance(entry, Refused):
            return ()
        subjects = await _subjects(tool, entry.input, self._workspace)
        brings = await contained(lambda: _brings(tool, entry.input))
        moment = self._clock()
        allowed = [each for each in self.rules if each.effect is RuleEffect.ALLOW and self._holds(each, moment)]
        found = proposals(tool, entry.digest, subjects, workspace=self._workspace, allowed=allowed)
        case = Case(tool, entry.digest, subjects, self._workspace)
        hard = hard_deny(case, replace(await self._grounds(case), outside_came=self.taint.has_come))
        if hard is not None and hard.asked_by:
            found = of_startup_files(found, entry.digest, subjects)
        return found if brings is not True else with_trust(found)

    def admits(self, name: str) -> bool:
        """Whether a tool of this name may be named at all, here and above."""
        return self._names.admits(name) and (self._parent is None or self._parent.admits(name))

    def _decided(self, case: Case, grounds: Grounds) -> Verdict:
        """The verdict about an admitted call: the strictest of what is laid down here and above."""
        moment = self._clock()
        held = tuple(rule for rule in self.rules if self._holds(rule, moment))
        grounds = replace(grounds, outside_came=self.taint.has_come)
        own = (_of_conversation(rule, self._conversation_id) for rule in self.mode.rules)
        mode = self.mode.model_copy(update={"rules": tuple(rule for rule in own if self._holds(rule, moment))})
        suspension = self._taint.suspension.joined(self._suspension)
        verdict = decide(case, held, mode, suspension=suspension, grounds=grounds)
        return verdict if self._parent is None else strictest(verdict, self._parent._decided(case, grounds))  # noqa: SLF001

    async def _grounds(self, case: Case) -> Grounds:
        """What the disk says about the paths of a call; the same here and above."""
        paths = [each.path for each in case.subjects or () if isinstance(each, PathSubject)]
        given = self._workspace
        if not paths or given is None:
            return Grounds(self._own_folders, given)

        def look(sign: StopSign) -> Grounds:
            # As subjects are: links followed.
            workspace = Path(os.path.realpath(given)).as_posix()
            places = startup_places(paths, workspace, sign.check) if may_write(case.tool) else ()
            return Grounds(self._own_folders, workspace, private_places_in(workspace), places)

        return await in_thread(look)

    def used(self, rule_id: str) -> None:
        """A call ran because of this rule."""
        moment = self._clock()
        self._rules = tuple(
            each.model_copy(update={"last_used_at": moment}) if each.id == rule_id else each for each in self._rules
        )
        if self._parent is not None:
            self._parent.used(rule_id)

    def _holds(self, rule: Rule, moment: datetime) -> bool:
        if rule.scope is RuleScope.CONVERSATION and rule.conversation_id != self._conversation_id:
            return False
        if rule.scope is RuleScope.WORKSPACE and not self._is_here(rule):
            return False
        return rule.holds_at(moment)

    def _is_here(self, rule: Rule) -> bool:
        # One that does not say for which workspace allows nothing in any, and what it forbids, it forbids everywhere.
        return rule.workspace == self._workspace if rule.workspace is not None else rule.effect is not RuleEffect.ALLOW


def _placed(rule: Rule, conversation_id: str | None, workspace: str | None) -> Rule:
    if rule.scope is not RuleScope.WORKSPACE or rule.workspace is not None:
        return _of_conversation(rule, conversation_id)
    if workspace is None:
        raise WrongUse("There is no workspace for this rule to hold in.", "Choose a folder first, or another scope.")
    return rule.model_copy(update={"workspace": workspace})


def _of_conversation(rule: Rule, conversation_id: str | None) -> Rule:
    changes: dict[str, object] = {}
    if rule.scope is RuleScope.CONVERSATION and rule.conversation_id is None:
        changes["conversation_id"] = conversation_id
    if rule.expires_at is not None and rule.expires_at.tzinfo is None:
        # Who writes a time without its zone means the clock on the wall.
        changes["expires_at"] = rule.expires_at.astimezone()
    return rule.model_copy(update=changes) if changes else rule


async def _brings(tool: AnyTool, checked: object) -> bool:
    return tool.brings is not None and tool.brings(checked) is not None


async def _subjects(tool: AnyTool, checked: object, workspace: str | None) -> tuple[Subject, ...] | None:
    """What the call is about; None when the tool fails to say, for whatever reason."""
    say = tool.subjects
    if say is None:
        return ()
    said = await contained(lambda: say(checked))
    if not isinstance(said, Fault):
        return await followed(said, workspace)
    # A fault in a tool makes its call doubtful; the gate still decides.
    if not isinstance(said.error, ToolFailed):
        _log.warning("tool %s cannot say what a call is about: %s", tool.name, said.kind)
    return None
