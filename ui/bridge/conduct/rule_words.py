"""What a rule says, for the screens."""

from dataclasses import replace

from desktop_agent.permissions.rule_words import describe_rule
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.errors import Sentence

_EVERY_TOOL = Sentence("every tool")


def rule_sentence(rule: Rule) -> Sentence:
    """Word for word what it matches, as where it is granted."""
    words = describe_rule(rule)
    if rule.tool == "*" and "tool" in words.values:
        return replace(words, values={**words.values, "tool": _EVERY_TOOL})
    return words
