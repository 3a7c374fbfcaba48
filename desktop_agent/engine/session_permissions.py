"""The permission policy of one conversation, with the stored rules."""

from collections.abc import Callable, Iterable, Sequence

from desktop_agent.engine.permission_records import RuleBook
from desktop_agent.permissions.policy import (
    ALL_NAMES,
    NO_UNTRUSTED_CONTENT,
    PermissionPolicy,
    ToolNamePolicy,
    UntrustedContent,
)
from desktop_agent.storage.journal_queue import Journal
from desktop_agent.storage.write_behind import conversation_closed_error
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import now
from desktop_agent.types.permissions import Mode, Rule
from desktop_agent.types.tool_calls import Effect, UntrustedSource


class SessionPermissionPolicy(PermissionPolicy):
    """The policy of one conversation. Added rules are stored, revoked ones deleted.

    `given` are rules that hold while the conversation is open and are not stored. `on_untrusted_change` stores the
    untrusted content marks when they change.
    """

    def __init__(
        self,
        journal_queue: Journal,
        rule_book: RuleBook,
        *,
        session_rules: Iterable[Rule] = (),
        mode: Mode | None = None,
        names: ToolNamePolicy = ALL_NAMES,
        own_folders: tuple[str, ...] = (),
        untrusted_content: UntrustedContent = NO_UNTRUSTED_CONTENT,
        on_untrusted_change: Callable[[], None] = lambda: None,
    ) -> None:
        record = journal_queue.record
        super().__init__(
            (*session_rules, *rule_book.for_conversation(record.id)),
            mode=mode,
            names=names,
            conversation_id=record.id,
            workspace=record.workspace,
            own_folders=own_folders,
        )
        self._untrusted_content = untrusted_content
        self._on_untrusted_change = on_untrusted_change
        self._journal_queue = journal_queue
        self._rule_book = rule_book
        self._added: set[str] = set()
        self._is_closed = False
        rule_book.subscribe(self)

    def set_mode(self, mode: Mode) -> None:
        """Change the mode at once. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()
        super().set_mode(mode)

    def add(self, rule: Rule) -> None:
        """Add and store a rule. Raises WrongUse, also when the conversation is closed."""
        self._refuse_when_closed()
        super().add(rule)
        # A listener that was notified just now may have added another or revoked this one.
        placed = next((stored for stored in self._rules if stored.id == rule.id), None)
        if placed is None:
            return
        self._journal_queue.save_rule(placed)
        self._added.add(rule.id)
        self._rule_book.add(placed, self)

    def revoke(self, rule_id: str) -> Rule | None:
        """Remove and delete a rule; None when there is none of this id. Raises WrongUse when closed."""
        self._refuse_when_closed()
        revoked = super().revoke(rule_id)
        self._added.discard(rule_id)
        if revoked is not None:
            self._journal_queue.delete_rule(rule_id)
            self._rule_book.remove(rule_id, self)
        return revoked

    def mark_used(self, rule_id: str) -> None:
        """Note that a call ran because of this rule."""
        super().mark_used(rule_id)
        for rule in self._rules:
            if rule.id == rule_id:
                self._rule_book.replace(rule)
                self._journal_queue.mark_rule_used(rule_id, rule.last_used_at or now())

    def suspend(self, effects: frozenset[Effect], why: Sentence) -> None:
        """As in PermissionPolicy. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()
        super().suspend(effects, why)

    def mark_untrusted(self, source: UntrustedSource) -> bool:
        """As in PermissionPolicy, and stored."""
        is_new = super().mark_untrusted(source)
        if is_new:
            self._on_untrusted_change()
        return is_new

    def trust_source(self, source: UntrustedSource) -> bool:
        """As in PermissionPolicy, and stored."""
        is_new = super().trust_source(source)
        if is_new:
            self._on_untrusted_change()
        return is_new

    def lift_suspension(self, shown: Sequence[str] | None = None) -> None:
        """As in PermissionPolicy, and stored. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()
        super().lift_suspension(shown)
        self._on_untrusted_change()

    def add_shared_rule(self, rule: Rule) -> None:
        """Add a rule that another conversation has stored."""
        super().add(rule)

    def remove_shared_rule(self, rule_id: str) -> None:
        """Remove a rule that somebody else deleted, unless this one's write of it still waits."""
        super().revoke(rule_id)
        if rule_id in self._added:
            self._added.discard(rule_id)
            self._journal_queue.delete_rule(rule_id)

    def close(self) -> None:
        """Close: notifications from others change nothing any more."""
        self._rule_book.unsubscribe(self)
        self._is_closed = True

    def set_workspace(self, workspace: str | None) -> None:
        """Change the folder of the conversation: in another one, other rules hold.

        Raises WrongUse when the conversation is closed.
        """
        self._refuse_when_closed()
        if workspace != self._workspace:
            self._workspace = workspace
            self._notify()

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise conversation_closed_error()
