"""The standing of one conversation, whose rules are kept."""

from collections.abc import Callable, Iterable, Sequence

from desktop_agent.engine.rule_book import RuleBook
from desktop_agent.engine.session_parts.write_behind import closed
from desktop_agent.engine.writer import Keeps
from desktop_agent.permissions.standing import ALL_NAMES, NamePolicy, Standing
from desktop_agent.permissions.taint import CLEAN, Taint
from desktop_agent.vocabulary.conduct.modes import Mode
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import now
from desktop_agent.vocabulary.tool_calls import Effect, UntrustedSource


class KeptStanding(Standing):
    """What holds in one conversation. A rule that is added is kept, one that is revoked is forgotten.

    `given` are rules that hold while the conversation is open and are kept nowhere. `on_taint` keeps what came in from
    outside when that changes.
    """

    def __init__(
        self,
        ledger: Keeps,
        book: RuleBook,
        *,
        given: Iterable[Rule] = (),
        mode: Mode | None = None,
        names: NamePolicy = ALL_NAMES,
        own_folders: tuple[str, ...] = (),
        taint: Taint = CLEAN,
        on_taint: Callable[[], None] = lambda: None,
    ) -> None:
        record = ledger.record
        super().__init__(
            (*given, *book.for_conversation(record.id)),
            mode=mode,
            names=names,
            conversation_id=record.id,
            workspace=record.workspace,
            own_folders=own_folders,
        )
        self._taint = taint
        self._on_taint = on_taint
        self._ledger = ledger
        self._book = book
        self._added: set[str] = set()
        self._is_closed = False
        book.join(self)

    def set_mode(self, mode: Mode) -> None:
        """Change it, at once. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()
        super().set_mode(mode)

    def add(self, rule: Rule) -> None:
        """One more, kept. Raises WrongUse, also when the conversation is closed."""
        self._refuse_when_closed()
        super().add(rule)
        # Who was told of it just now may have added another or revoked this one.
        placed = next((each for each in self._rules if each.id == rule.id), None)
        if placed is None:
            return
        self._ledger.save_rule(placed)
        self._added.add(rule.id)
        self._book.add(placed, self)

    def revoke(self, rule_id: str) -> Rule | None:
        """One less, forgotten; None when there is none of this id. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()
        revoked = super().revoke(rule_id)
        self._added.discard(rule_id)
        if revoked is not None:
            self._ledger.delete_rule(rule_id)
            self._book.remove(rule_id, self)
        return revoked

    def used(self, rule_id: str) -> None:
        """A call ran because of this rule."""
        super().used(rule_id)
        for rule in self._rules:
            if rule.id == rule_id:
                self._book.replace(rule)
                self._ledger.rule_used(rule_id, rule.last_used_at or now())

    def suspend(self, effects: frozenset[Effect], why: Sentence) -> None:
        """As in Standing. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()
        super().suspend(effects, why)

    def mark(self, outsider: UntrustedSource) -> bool:
        """As in Standing, and kept."""
        is_new = super().mark(outsider)
        if is_new:
            self._on_taint()
        return is_new

    def trust(self, outsider: UntrustedSource) -> bool:
        """As in Standing, and kept."""
        is_new = super().trust(outsider)
        if is_new:
            self._on_taint()
        return is_new

    def lift(self, shown: Sequence[str] | None = None) -> None:
        """As in Standing, and kept. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()
        super().lift(shown)
        self._on_taint()

    def learn(self, rule: Rule) -> None:
        """Another conversation added this; it is kept already."""
        super().add(rule)

    def unlearn(self, rule_id: str) -> None:
        """Somebody else revoked this; it is forgotten already, unless this one's writing of it still waits."""
        super().revoke(rule_id)
        if rule_id in self._added:
            self._added.discard(rule_id)
            self._ledger.delete_rule(rule_id)

    def leave(self) -> None:
        """The conversation is closed: others may say what they like, and nothing changes here any more."""
        self._book.leave(self)
        self._is_closed = True

    def move_to(self, workspace: str | None) -> None:
        """The conversation works in this folder now: in another one, other rules hold.

        Raises WrongUse when the conversation is closed.
        """
        self._refuse_when_closed()
        if workspace != self._workspace:
            self._workspace = workspace
            self._tell()

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise closed()
