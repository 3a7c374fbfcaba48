"""The permission policy of one agent: rules, mode, tool names, and the untrusted content of its conversation.

A page, or the answer of an MCP server, may have been written to make the model send something out, or run something.
While such content is in a conversation, what could do either is asked about again, even if it was allowed for good.
"""

import logging
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from desktop_agent.permissions.gate import NOTHING_SUSPENDED, Denied, Suspension, Verdict, admit, decide, deny, stricter
from desktop_agent.permissions.hard_denies import HardAsk, ProtectedPaths, find_hard_verdict, may_write
from desktop_agent.permissions.rule_matching import CallFacts
from desktop_agent.permissions.shell.parser import parse_line
from desktop_agent.processes.foreign_code import Fault, call_foreign
from desktop_agent.processes.worker_threads import CancelToken, run_by_size, run_in_thread
from desktop_agent.tools.tool import AnyTool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import Sentence, ToolFailed, WrongUse
from desktop_agent.types.messages import now
from desktop_agent.types.permissions import (
    DEFAULT_MODE,
    CommandSubject,
    Mode,
    PathSubject,
    Rule,
    RuleEffect,
    RuleScope,
    Subject,
)
from desktop_agent.types.tool_calls import Effect, UntrustedSource, source_in_sentence


async def resolve_line_folders(subjects: tuple[Subject, ...], workspace: str | None) -> tuple[Subject, ...]:
    """Add to each line the folder of the workspace that it goes to, as links lead now.

    A line that goes outside, or to no folder, is left as it is: then nobody knows where it runs.
    """
    if workspace is None or not any(
        isinstance(subject, CommandSubject) and _target_folder(subject) for subject in subjects
    ):
        return subjects
    return await run_in_thread(lambda _token: tuple(_resolve_line_folder(subject, workspace) for subject in subjects))


def _target_folder(subject: CommandSubject) -> str | None:
    return parse_line(subject.line).goes_to


def _resolve_line_folder(subject: Subject, workspace: str) -> Subject:
    if not isinstance(subject, CommandSubject) or subject.folder is None or subject.changes_folder:
        return subject
    path = _target_folder(subject)
    if path is None:
        return subject
    try:
        top = Workspace(Path(workspace))
        parts = top.locate(path if path.startswith("/") else f"{subject.folder}/{path}").parts
        folder = "/".join(parts) or "."
        folder.encode()
    except (ToolFailed, WrongUse, UnicodeEncodeError):
        return subject
    # Going to what is no folder, or may not be entered, fails: then the rest may run where the line began.
    place = top.folder.joinpath(*parts)
    can_be_entered = place.is_dir() and os.access(place, os.X_OK)
    return replace(subject, folder=folder, changes_folder=True) if can_be_entered else subject


SUSPENDED_EFFECTS = frozenset({Effect.NETWORK, Effect.EXECUTE})

_REASON = (
    "Content from {outsider} came into this conversation. It may try to mislead the model, so you are asked about "
    "calls that could send data or run something, even if a rule allows them."
)
_REASON_SEVERAL = (
    "Content from {outsider} and {count} more came into this conversation. It may try to mislead the model, so you "
    "are asked about calls that could send data or run something, even if a rule allows them."
)


@dataclass(frozen=True, slots=True)
class UntrustedContent:
    """The `sources` that brought content in since it was last trusted, and those that the person has `trusted`."""

    sources: tuple[UntrustedSource, ...] = ()
    trusted: tuple[UntrustedSource, ...] = ()

    def with_source(self, source: UntrustedSource, *, is_trusted: bool = False) -> "UntrustedContent":
        """Add content of this source. Returns the same object when the person trusts it, or knows of it."""
        if any(source.is_same(known) for known in (*self.sources, *self.trusted)):
            return self
        if is_trusted:
            return UntrustedContent(self.sources, (*self.trusted, source))
        return UntrustedContent((*self.sources, source), self.trusted)

    def after_trusting(self, shown: Sequence[str] | None = None) -> "UntrustedContent":
        """Trust what came in so far, until another source brings something.

        Where names were `shown`, only those are trusted, and of several of one name as many as were shown.
        """
        remaining = Counter(shown if shown is not None else (source.name for source in self.sources))
        trusted, untrusted = list[UntrustedSource](), list[UntrustedSource]()
        for source in self.sources:
            (trusted if remaining[source.name] > 0 else untrusted).append(source)
            remaining[source.name] -= 1
        return UntrustedContent(tuple(untrusted), (*self.trusted, *trusted))

    @property
    def has_arrived(self) -> bool:
        """Whether anything came in from outside, trusted or not."""
        return bool(self.sources or self.trusted)

    @property
    def suspension(self) -> Suspension:
        """What is asked about because of this content, and why."""
        if not self.sources:
            return NOTHING_SUSPENDED
        last = self.sources[-1]
        values = {"outsider": source_in_sentence(last.kind, last.name), "count": str(len(self.sources) - 1)}
        return Suspension(SUSPENDED_EFFECTS, Sentence(_REASON_SEVERAL if len(self.sources) > 1 else _REASON, values))


NO_UNTRUSTED_CONTENT = UntrustedContent()


_log = logging.getLogger(__name__)
Listener = Callable[[], None]


class PolicyStore:
    """Stores what is decided about one conversation. This one stores nothing, and is never closed."""

    def refuse_when_closed(self) -> None:
        """Raise WrongUse once the conversation is closed."""

    def rule_added(self, rule: Rule) -> None:
        """Store a rule that was added."""

    def rule_revoked(self, rule_id: str) -> None:
        """Delete a rule that was revoked."""

    def rule_used(self, rule: Rule) -> None:
        """Store when the rule was used last."""

    def untrusted_changed(self) -> None:
        """Store which sources brought content in, and which are trusted."""


class PermissionPolicy:
    """Rules and mode of one agent, and the verdicts that follow from them. Lives on the event loop.

    A nested policy answers to its parent too: the strictest verdict counts, whatever its own rules and mode are. What a
    person decides about one of its calls is added at the root, for the whole conversation. Without a `mode` of its own
    it follows its parent's; without a parent that is the default mode. Rules that do not say for which conversation
    hold in this one. `names` are the tools that may be named at all; None: all.
    `own_folders` are the program's own, as absolute paths with forward slashes: no call writes there. Once its `store`
    is closed, changes raise WrongUse.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        mode: Mode | None = None,
        names: frozenset[str] | None = None,
        conversation_id: str | None = None,
        workspace: str | None = None,
        parent: "PermissionPolicy | None" = None,
        own_folders: tuple[str, ...] = (),
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._rules = tuple(_with_conversation(rule, conversation_id) for rule in rules)
        self._mode = mode
        self._names = names
        self._conversation_id = conversation_id
        self._workspace = workspace
        self._own_folders = own_folders
        self._clock = clock
        self._parent = parent
        self._untrusted_content = NO_UNTRUSTED_CONTENT
        self._store = PolicyStore()
        self._listeners: list[Listener] = []

    def set_store(self, store: PolicyStore, untrusted_content: UntrustedContent) -> None:
        """Store changes from now on. `untrusted_content` was stored before."""
        self._store, self._untrusted_content = store, untrusted_content

    @contextmanager
    def watched(self, listener: Listener) -> Generator[None]:
        """Call `listener`, inside the block, when rules or mode change, here or in a parent."""
        self._listeners.append(listener)
        try:
            with nullcontext() if self._parent is None else self._parent.watched(listener):
                yield
        finally:
            self._listeners.remove(listener)

    def nested(
        self, *, rules: Iterable[Rule] = (), mode: Mode | None = None, names: frozenset[str] | None = None
    ) -> "PermissionPolicy":
        """Return a policy for an agent that this one starts: both must allow, always."""
        return PermissionPolicy(
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
        """The current mode."""
        if self._mode is None and self._parent is not None:
            return self._parent.mode
        return self._mode or DEFAULT_MODE

    def tools_changed(self) -> None:
        """Recheck whatever has not started: tools came, went, or changed their class."""
        self._notify()

    def set_mode(self, mode: Mode) -> None:
        """Change the mode at once, for every call that has not started."""
        self._store.refuse_when_closed()
        self._mode = mode
        self._notify()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules of this policy and its parents, also those that hold elsewhere or have expired."""
        return self._rules if self._parent is None else (*self._rules, *self._parent.rules)

    def add(self, rule: Rule) -> None:
        """Add a rule for the whole conversation; a rule of the same id is replaced.

        A rule for a conversation or a workspace that does not say which gets this one's. Raises WrongUse where there is
        no workspace that it could hold in.
        """
        if self._parent is not None:
            self._parent.add(rule)
            return
        self._store.refuse_when_closed()
        self.add_shared(rule)
        # A listener that was notified just now may have added another or revoked this one.
        placed = next((known for known in self._rules if known.id == rule.id), None)
        if placed is not None:
            self._store.rule_added(placed)

    def add_shared(self, rule: Rule) -> None:
        """Add a rule that is stored already, also by another conversation."""
        self._rules = (
            *(known for known in self._rules if known.id != rule.id),
            _with_workspace(rule, self._conversation_id, self._workspace),
        )
        self._notify()

    def revoke(self, rule_id: str) -> Rule | None:
        """Remove a rule and return it; None when there is none of this id."""
        self._store.refuse_when_closed()
        revoked = self.remove_shared(rule_id)
        if revoked is not None:
            self._store.rule_revoked(rule_id)
            return revoked
        return self._parent.revoke(rule_id) if self._parent is not None else None

    def remove_shared(self, rule_id: str) -> Rule | None:
        """Remove and return a rule without deleting it from the store; None when there is none of this id here."""
        removed = next((rule for rule in self._rules if rule.id == rule_id), None)
        if removed is not None:
            self._rules = tuple(rule for rule in self._rules if rule.id != rule_id)
            self._notify()
        return removed

    def set_workspace(self, workspace: str | None) -> None:
        """Change the folder of the conversation: in another one, other rules hold."""
        self._store.refuse_when_closed()
        if workspace != self._workspace:
            self._workspace = workspace
            self._notify()

    @property
    def untrusted_content(self) -> UntrustedContent:
        """What came in from outside, for the whole conversation."""
        return self._untrusted_content if self._parent is None else self._parent.untrusted_content

    def mark_untrusted(self, source: UntrustedSource, *, is_trusted: bool = False) -> bool:
        """Note content of this source; return whether it is the first since the person trusted the source, or ever.

        `is_trusted`: it came by a call whose rule trusts it.
        """
        if self._parent is not None:
            return self._parent.mark_untrusted(source, is_trusted=is_trusted)
        previous = self._untrusted_content
        self._untrusted_content = previous.with_source(source, is_trusted=is_trusted)
        if self._untrusted_content is previous:
            return False
        if not is_trusted:
            self._notify()
        self._store.untrusted_changed()
        return True

    def lift_suspension(self, shown: Sequence[str] | None = None) -> None:
        """Trust what came in from outside so far, and end what is suspended because of it.

        `shown` are the names that the person saw when they trusted: a source that came since is not trusted. None: all
        are.
        """
        self._store.refuse_when_closed()
        if self._parent is not None:
            self._parent.lift_suspension(shown)
        self._untrusted_content = self._untrusted_content.after_trusting(shown)
        self._notify()
        self._store.untrusted_changed()

    async def verdict(
        self,
        call: ToolUse,
        tool: AnyTool | None,
        known_names: Iterable[str] = (),
        *,
        digest: str | None = None,
        is_unclear: bool = False,
    ) -> Verdict:
        """Take a call through the gates in order. `call.input` is what would run.

        `known_names` are listed for a model that asked for a tool that does not exist. `digest` is that of the call, if
        it is known already. `is_unclear`: neither the tool nor the disk is asked what the call is about.
        """
        if not self.allows_name(call.name):
            return deny("The tool “{name}” may not be used here.", name=call.name)
        entry = await run_by_size(lambda: admit(call, tool, known_names, digest), call.input)
        if isinstance(entry, Denied):
            return entry
        subjects = None if is_unclear else await _call_subjects(entry.tool, entry.input, self._workspace)
        facts = CallFacts(entry.tool, entry.digest, subjects, self._workspace)
        return self._decide(facts, await self._protected_paths(facts))

    async def proposals(self, call: ToolUse, tool: AnyTool, *, digest: str | None = None) -> tuple[Rule, ...]:
        """Return rules that would allow this call from now on, to be shown with a question about it."""
        # Imported late: most runs ask nothing.
        from desktop_agent.permissions.rule_proposals import for_startup_files, propose_rules, with_trust, with_words

        entry = await run_by_size(lambda: admit(call, tool, digest=digest), call.input)
        if isinstance(entry, Denied) or tool.always_asked is not None:
            return ()
        subjects = await _call_subjects(tool, entry.input, self._workspace)
        brings = await call_foreign(lambda: _brings_untrusted(tool, entry.input))
        moment = self._clock()
        allowed = [rule for rule in self.rules if rule.effect is RuleEffect.ALLOW and self._is_in_force(rule, moment)]
        rules = propose_rules(tool, entry.digest, subjects, workspace=self._workspace, allowed=allowed)
        facts = CallFacts(tool, entry.digest, subjects, self._workspace)
        hard = find_hard_verdict(
            facts, replace(await self._protected_paths(facts), has_untrusted_content=self.untrusted_content.has_arrived)
        )
        if isinstance(hard, HardAsk) and hard.asked_by:
            rules = for_startup_files(rules, entry.digest, subjects)
        rules = with_words(rules, call.input)
        return rules if brings is not True else with_trust(rules)

    def allows_name(self, name: str) -> bool:
        """Return whether a tool of this name may be named at all, here and in the parents."""
        is_allowed = self._names is None or name in self._names
        return is_allowed and (self._parent is None or self._parent.allows_name(name))

    def _decide(self, facts: CallFacts, protected: ProtectedPaths) -> Verdict:
        """Return the verdict about an admitted call: the strictest of this policy and its parents."""
        moment = self._clock()
        rules_in_force = tuple(rule for rule in self.rules if self._is_in_force(rule, moment))
        protected = replace(protected, has_untrusted_content=self.untrusted_content.has_arrived)
        mode_rules = (_with_conversation(rule, self._conversation_id) for rule in self.mode.rules)
        mode = self.mode.model_copy(
            update={"rules": tuple(rule for rule in mode_rules if self._is_in_force(rule, moment))}
        )
        suspension = self._untrusted_content.suspension
        verdict = decide(facts, rules_in_force, mode, suspension=suspension, protected=protected)
        return verdict if self._parent is None else stricter(verdict, self._parent._decide(facts, protected))  # noqa: SLF001

    async def _protected_paths(self, facts: CallFacts) -> ProtectedPaths:
        """Read from the disk what is protected about the paths of a call; the same for the parents."""
        paths = [subject.path for subject in facts.subjects or () if isinstance(subject, PathSubject)]
        folder = self._workspace
        if not paths or folder is None:
            return ProtectedPaths(self._own_folders, folder)

        def read_disk(token: CancelToken) -> ProtectedPaths:
            from desktop_agent.tools.commands.workspace_survey import private_paths_in, startup_paths

            # Links are followed, as in the subjects.
            workspace = Path(os.path.realpath(folder)).as_posix()
            places = startup_paths(paths, workspace, token.raise_if_cancelled) if may_write(facts.tool) else ()
            return ProtectedPaths(self._own_folders, workspace, private_paths_in(workspace), places)

        return await run_in_thread(read_disk)

    def mark_used(self, rule_id: str) -> None:
        """Note that a call ran because of this rule."""
        moment = self._clock()
        self._rules = tuple(
            rule.model_copy(update={"last_used_at": moment}) if rule.id == rule_id else rule for rule in self._rules
        )
        for rule in self._rules:
            if rule.id == rule_id:
                self._store.rule_used(rule)
        if self._parent is not None:
            self._parent.mark_used(rule_id)

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _is_in_force(self, rule: Rule, moment: datetime) -> bool:
        if rule.scope is RuleScope.CONVERSATION and rule.conversation_id != self._conversation_id:
            return False
        if rule.scope is RuleScope.WORKSPACE and not self._is_here(rule):
            return False
        return rule.holds_at(moment)

    def _is_here(self, rule: Rule) -> bool:
        # One that does not say for which workspace allows nothing in any, and what it forbids, it forbids everywhere.
        return rule.workspace == self._workspace if rule.workspace is not None else rule.effect is not RuleEffect.ALLOW


def _with_workspace(rule: Rule, conversation_id: str | None, workspace: str | None) -> Rule:
    if rule.scope is not RuleScope.WORKSPACE or rule.workspace is not None:
        return _with_conversation(rule, conversation_id)
    if workspace is None:
        raise WrongUse("There is no workspace for this rule to hold in.", "Choose a folder first, or another scope.")
    return rule.model_copy(update={"workspace": workspace})


def _with_conversation(rule: Rule, conversation_id: str | None) -> Rule:
    changes: dict[str, object] = {}
    if rule.scope is RuleScope.CONVERSATION and rule.conversation_id is None:
        changes["conversation_id"] = conversation_id
    if rule.expires_at is not None and rule.expires_at.tzinfo is None:
        # A time without a zone is meant in local time.
        changes["expires_at"] = rule.expires_at.astimezone()
    return rule.model_copy(update=changes) if changes else rule


async def _brings_untrusted(tool: AnyTool, checked: object) -> bool:
    return tool.brings is not None and tool.brings(checked) is not None


async def _call_subjects(tool: AnyTool, checked: object, workspace: str | None) -> tuple[Subject, ...] | None:
    """Return what the call is about; None when the tool fails to say."""
    subjects_of = tool.subjects
    if subjects_of is None:
        return ()
    subjects = await call_foreign(lambda: subjects_of(checked))
    if not isinstance(subjects, Fault):
        return await resolve_line_folders(subjects, workspace)
    # A fault in a tool makes its call doubtful; the gate still decides.
    if not isinstance(subjects.error, ToolFailed):
        _log.warning("tool %s cannot say what a call is about: %s", tool.name, subjects.kind)
    return None
