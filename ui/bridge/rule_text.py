"""The text of a permission rule. Import it late: it brings the parser of shell commands."""

from dataclasses import replace

from desktop_agent.permissions.rule_proposals import describe_rule
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import Rule

_EVERY_TOOL = Sentence("every tool")


def rule_sentence(rule: Rule) -> Sentence:
    """Return what the rule matches, in the words of the approval dialog."""
    words = describe_rule(rule)
    if rule.tool == "*" and "tool" in words.values:
        return replace(words, values={**words.values, "tool": _EVERY_TOOL})
    return words
