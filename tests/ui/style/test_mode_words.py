"""What happens unasked in a mode, and what its own rules make of that."""

import pytest

from desktop_agent.types.permissions import DEFAULT_MODE, Mode, Rule, RuleEffect
from ui.style.pickers import mode_description

ASKS = "Asks before it changes something"


@pytest.mark.parametrize(
    ("effects", "more"),
    [
        ((), ""),
        ((RuleEffect.ALLOW,), "; its rules allow more"),
        ((RuleEffect.DENY,), "; its rules deny more or ask more often"),
        ((RuleEffect.ASK,), "; its rules deny more or ask more often"),
        ((RuleEffect.ASK, RuleEffect.ALLOW), "; its rules allow some calls, and deny or ask about others"),
    ],
)
def test_its_own_rules_are_part_of_what_it_means(effects, more):
    rules = tuple(Rule(effect=each, tool="fetch_page") for each in effects)
    mode = Mode(name="careful", title="Careful", mutating="ask", rules=rules)
    assert mode_description(mode) == ASKS + more
    assert mode_description(DEFAULT_MODE) == ASKS
