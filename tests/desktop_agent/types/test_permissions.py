"""Modes, as values."""

import pytest

from desktop_agent.types.permissions import CommandsPattern, Mode, Rule, RuleEffect

LOG = CommandsPattern(title="git", beginnings=(("git", "log"),))
MORE = CommandsPattern(title="git", beginnings=(("git", "log"), ("git", "push")))


def mode(rule: Rule, **changes: object) -> Mode:
    return Mode(name="own", title="Own", rules=(rule.model_copy(update=changes),))


@pytest.mark.parametrize(("one", "other"), [({"pattern": MORE}, {"pattern": LOG}), ({"also": ("u",)}, {"also": ()})])
def test_a_rule_that_names_more_under_the_same_id_makes_a_mode_wider(
    one: dict[str, object], other: dict[str, object]
) -> None:
    rule = Rule(effect=RuleEffect.ALLOW, tool="t")
    wider, narrower = mode(rule, **one), mode(rule, **other)
    assert wider.is_wider_than(narrower)
    assert not wider.is_wider_than(wider)
    denying = rule.model_copy(update={"effect": RuleEffect.DENY})
    assert mode(denying, **other).is_wider_than(mode(denying, **one))
    assert not mode(denying, **one).is_wider_than(mode(denying, **one))
