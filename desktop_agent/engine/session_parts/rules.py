"""The standing of one conversation, whose rules are kept, and the book of rules that open conversations share."""

from collections.abc import Callable, Iterable
from weakref import WeakSet

from desktop_agent.engine.session_parts.write_behind import closed
from desktop_agent.engine.writer import Keeps
from desktop_agent.permissions.standing import ALL_NAMES, NamePolicy, Standing
from desktop_agent.permissions.taint import CLEAN, Taint
from desktop_agent.storage.records import StoredRules
from desktop_agent.vocabulary.conduct.modes import Mode
from desktop_agent.vocabulary.conduct.rules import Rule, RuleScope
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import now
from desktop_agent.vocabulary.tool_calls import Effect, Outsider


def unread_rules(stored: StoredRules) -> tuple[Sentence, ...]:
    """What to tell the person about rules that this version does not understand."""
    told: list[Sentence] = []
    if stored.stricter:
        what = Sentence(
            "Rules that deny or ask and are understood only in part: {count}. They hold for more calls than they did. "
            "Look through your rules, and lay them down again as you want them.",
            {"count": str(stored.stricter)},
        )
        told.append(what)
    if stored.lost:
        what = Sentence(
            "Rules that cannot be read and do not hold any more: {count}. "
            "Look through your rules, and lay down again what is missing.",
            {"count": str(stored.lost)},
        )
        told.append(what)
    return tuple(told)


class RuleBook:
    """All rules that are kept. What one conversation adds for everywhere holds in the others at once."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = {rule.id: rule for rule in rules}
        self._standings: WeakSet[KeptStanding] = WeakSet()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All, oldest first."""
        return tuple(self._rules.values())

    def for_conversation(self, conversation_id: str) -> tuple[Rule, ...]:
        """Its own, and those that are bound to no conversation; which workspace holds is for the standing to know."""
        return tuple(
            rule
            for rule in self._rules.values()
            if rule.scope is not RuleScope.CONVERSATION or rule.conversation_id == conversation_id
        )

    def join(self, standing: "KeptStanding") -> None:
        """Tell this one, for as long as somebody holds it, what others add and revoke."""
        self._standings.add(standing)

    def leave(self, standing: "KeptStanding") -> None:
        """Tell this one no more."""
        self._standings.discard(standing)

    def add(self, rule: Rule, by: "KeptStanding") -> None:
        """One more, also for the others unless it is bound to one conversation."""
        self._rules[rule.id] = rule
        if rule.scope is not RuleScope.CONVERSATION:
            for standing in self._others(by):
                standing.learn(rule)

    def remove(self, rule_id: str, by: "KeptStanding | None" = None) -> None:
        """One less, everywhere. Harmless where there is none."""
        self._rules.pop(rule_id, None)
        for standing in self._others(by):
            standing.unlearn(rule_id)

    def replace(self, rule: Rule) -> None:
        """The same rule, used since."""
        if rule.id in self._rules:
            self._rules[rule.id] = rule

    def _others(self, by: "KeptStanding | None") -> "list[KeptStanding]":
        return [each for each in self._standings if each is not by]


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

    def mark(self, outsider: Outsider) -> bool:
        """As in Standing, and kept."""
        is_new = super().mark(outsider)
        if is_new:
            self._on_taint()
        return is_new

    def lift(self) -> None:
        """As in Standing, and kept. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()
        super().lift()
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
