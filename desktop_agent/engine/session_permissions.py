"""Stores the rules and marks of the permission policy of one conversation, and shares its rules."""

from collections.abc import Callable, Iterable

from desktop_agent.engine.permission_records import RuleBook
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.permissions.policy import NO_UNTRUSTED_CONTENT, PermissionPolicy, PolicyStore, UntrustedContent
from desktop_agent.storage.write_behind import conversation_closed_error
from desktop_agent.types.messages import now
from desktop_agent.types.permissions import ArgumentsPattern, Mode, Rule, RuleScope


class SessionPolicyStore(PolicyStore):
    """Stores the rules of one conversation, and shares them with the other open ones; `policy` holds them.

    `session_rules` hold while the conversation is open and are not stored. `on_untrusted_change` stores the untrusted
    content marks when they change.
    """

    def __init__(
        self,
        writer: SessionWriter,
        rule_book: RuleBook,
        *,
        session_rules: Iterable[Rule] = (),
        mode: Mode | None = None,
        own_folders: tuple[str, ...] = (),
        untrusted_content: UntrustedContent = NO_UNTRUSTED_CONTENT,
        on_untrusted_change: Callable[[], None] = lambda: None,
    ) -> None:
        record = writer.record
        self.policy = PermissionPolicy(
            (*session_rules, *rule_book.for_conversation(record.id)),
            mode=mode,
            conversation_id=record.id,
            workspace=record.workspace,
            own_folders=own_folders,
        )
        self.policy.set_store(self, untrusted_content)
        self._journal_queue = writer.rule_queue
        self._rule_book = rule_book
        self._on_untrusted_change = on_untrusted_change
        self._added: set[str] = set()
        self._is_in_memory = not writer.journal_queue.is_stored
        # Rules of a conversation in memory for itself alone: they end with it.
        self._unstored: set[str] = set()
        self._is_closed = False
        rule_book.subscribe(self)

    def close(self) -> None:
        """Close: notifications from others change nothing any more."""
        self._rule_book.unsubscribe(self)
        for rule_id in self._unstored:
            self._rule_book.remove(rule_id, self)
        self._is_closed = True

    def refuse_when_closed(self) -> None:
        """Raise WrongUse once the conversation is closed."""
        if self._is_closed:
            raise conversation_closed_error()

    def rule_added(self, rule: Rule) -> None:
        """Store a rule that was added, and share it."""
        if self._is_in_memory and rule.scope is RuleScope.CONVERSATION:
            self._unstored.add(rule.id)
        else:
            self._journal_queue.save_rule(self._shared_rule(rule))
            self._added.add(rule.id)
        self._rule_book.add(self._shared_rule(rule), self)

    def rule_revoked(self, rule_id: str) -> None:
        """Delete a rule that was revoked, everywhere."""
        self._added.discard(rule_id)
        if rule_id not in self._unstored:
            self._journal_queue.delete_rule(rule_id)
        self._rule_book.remove(rule_id, self)

    def rule_used(self, rule: Rule) -> None:
        """Store when the rule was used last."""
        self._rule_book.replace(self._shared_rule(rule))
        if rule.id not in self._unstored:
            self._journal_queue.mark_rule_used(rule.id, rule.last_used_at or now())

    def _shared_rule(self, rule: Rule) -> Rule:
        """Return the rule as it is stored and shared: without arguments of a conversation that is never stored."""
        if not (self._is_in_memory and isinstance(rule.pattern, ArgumentsPattern)):
            return rule
        return rule.model_copy(update={"pattern": ArgumentsPattern(digest=rule.pattern.digest)})

    def untrusted_changed(self) -> None:
        """Store which sources brought content in, and which are trusted."""
        self._on_untrusted_change()

    def add_shared_rule(self, rule: Rule) -> None:
        """Add a rule that another conversation has stored."""
        self.policy.add_shared(rule)

    def remove_shared_rule(self, rule_id: str) -> None:
        """Remove a rule that somebody else deleted, also where its write is still queued here."""
        self.policy.remove_shared(rule_id)
        if rule_id in self._added:
            self._added.discard(rule_id)
            self._journal_queue.delete_rule(rule_id)
