"""The rules that are kept: one book, which all open conversations share."""

from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

from desktop_agent.storage.records import StoredRules
from desktop_agent.vocabulary.conduct.rules import Rule, RuleScope
from desktop_agent.vocabulary.errors import Sentence


class Follows(Protocol):
    """The standing of an open conversation, which hears what others add and revoke."""

    def learn(self, rule: Rule) -> None:
        """Another conversation added this."""
        ...

    def unlearn(self, rule_id: str) -> None:
        """Somebody else revoked this."""
        ...


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
        self._standings: WeakSet[Follows] = WeakSet()

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

    def join(self, standing: Follows) -> None:
        """Tell this one, for as long as somebody holds it, what others add and revoke."""
        self._standings.add(standing)

    def leave(self, standing: Follows) -> None:
        """Tell this one no more."""
        self._standings.discard(standing)

    def add(self, rule: Rule, by: Follows) -> None:
        """One more, also for the others unless it is bound to one conversation."""
        self._rules[rule.id] = rule
        if rule.scope is not RuleScope.CONVERSATION:
            for standing in self._others(by):
                standing.learn(rule)

    def remove(self, rule_id: str, by: Follows | None = None) -> None:
        """One less, everywhere. Harmless where there is none."""
        self._rules.pop(rule_id, None)
        for standing in self._others(by):
            standing.unlearn(rule_id)

    def replace(self, rule: Rule) -> None:
        """The same rule, used since."""
        if rule.id in self._rules:
            self._rules[rule.id] = rule

    def follow(self, rules: Iterable[Rule]) -> None:
        """These and no others are kept now."""
        now = {rule.id: rule for rule in rules}
        for rule_id in self._rules.keys() - now.keys():
            self.remove(rule_id)
        added = [rule for rule_id, rule in now.items() if rule_id not in self._rules]
        self._rules = now
        for rule in added:
            if rule.scope is not RuleScope.CONVERSATION:
                for standing in self._others(None):
                    standing.learn(rule)

    def _others(self, by: Follows | None) -> list[Follows]:
        return [each for each in self._standings if each is not by]
