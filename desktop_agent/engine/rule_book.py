"""The rules that are kept: one book, which all open conversations share."""

from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

from desktop_agent.storage.records import StoredRules
from desktop_agent.vocabulary.conduct.rules import Rule, RuleScope
from desktop_agent.vocabulary.errors import Sentence


class RuleFollower(Protocol):
    """The standing of an open conversation, which hears what others add and revoke."""

    def add_shared_rule(self, rule: Rule) -> None:
        """Another conversation added this."""
        ...

    def remove_shared_rule(self, rule_id: str) -> None:
        """Somebody else revoked this."""
        ...


def unreadable_rule_notices(stored: StoredRules) -> tuple[Sentence, ...]:
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
        self._followers: WeakSet[RuleFollower] = WeakSet()

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

    def subscribe(self, follower: RuleFollower) -> None:
        """Tell this one, for as long as somebody holds it, what others add and revoke."""
        self._followers.add(follower)

    def unsubscribe(self, follower: RuleFollower) -> None:
        """Tell this one no more."""
        self._followers.discard(follower)

    def add(self, rule: Rule, by: RuleFollower) -> None:
        """One more, also for the others unless it is bound to one conversation."""
        self._rules[rule.id] = rule
        if rule.scope is not RuleScope.CONVERSATION:
            for follower in self._other_followers(by):
                follower.add_shared_rule(rule)

    def remove(self, rule_id: str, by: RuleFollower | None = None) -> None:
        """One less, everywhere. Harmless where there is none."""
        self._rules.pop(rule_id, None)
        for follower in self._other_followers(by):
            follower.remove_shared_rule(rule_id)

    def replace(self, rule: Rule) -> None:
        """The same rule, used since."""
        if rule.id in self._rules:
            self._rules[rule.id] = rule

    def replace_all(self, rules: Iterable[Rule]) -> None:
        """These and no others are kept now."""
        now = {rule.id: rule for rule in rules}
        for rule_id in self._rules.keys() - now.keys():
            self.remove(rule_id)
        added = [rule for rule_id, rule in now.items() if rule_id not in self._rules]
        self._rules = now
        for rule in added:
            if rule.scope is not RuleScope.CONVERSATION:
                for follower in self._other_followers(None):
                    follower.add_shared_rule(rule)

    def _other_followers(self, by: RuleFollower | None) -> list[RuleFollower]:
        return [each for each in self._followers if each is not by]
