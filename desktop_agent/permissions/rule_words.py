"""What a rule matches, in words for people: all of it, before it is granted and as long as it stands."""

from collections.abc import Sequence
from pathlib import PurePath

from desktop_agent.permissions.rule_matching import is_within
from desktop_agent.vocabulary.conduct.rules import (
    WORKSPACE_ROOT,
    ArgumentsPattern,
    CommandPattern,
    CommandsPattern,
    HostPattern,
    PathPattern,
    Rule,
    RuleEffect,
)
from desktop_agent.vocabulary.errors import Sentence

# A rule keeps the title that was shown; those that are known can be translated.
_TITLES = {
    "git, only looking": Sentence("git, only looking"),
    "git, recording (a commit starts the hooks of the repository)": Sentence(
        "git, recording (a commit starts the hooks of the repository)"
    ),
    "ruff, checking and formatting": Sentence("ruff, checking and formatting"),
}


def describe_rule(rule: Rule) -> Sentence:
    """What a rule matches, for people; shown before it is granted."""
    words = _describe_pattern(rule)
    return Sentence("{rule}; what comes from there is trusted", {"rule": words}) if rule.trusts else words


def _describe_pattern(rule: Rule) -> Sentence:
    match rule.pattern:
        case PathPattern(prefix=prefix):
            return _in_folder(rule, prefix)
        case HostPattern(host=host):
            return Sentence("{tool} with {host}", {"tool": _named(rule), "host": host})
        case CommandPattern(words=words, exact=exact):
            template = "exactly the command “{command}”" if exact else "commands that begin with “{command}”"
            return _where(rule, Sentence(template, {"command": " ".join(words)}), rule.pattern.folder)
        case CommandsPattern(title=title, beginnings=beginnings):
            commands = [Sentence("“{command}”", {"command": " ".join(words)}) for words in beginnings]
            values = {"title": _TITLES.get(title, title), "commands": _join_names(commands, "{some} or {last}")}
            return _where(rule, Sentence("{title}: commands that begin with {commands}", values), rule.pattern.folder)
        case ArgumentsPattern():
            return Sentence("{tool} with exactly these arguments", {"tool": _named(rule)})
        case None:
            return Sentence("{tool} with any arguments", {"tool": _named(rule)})


def _where(rule: Rule, commands: Sentence, folder: str | None) -> Sentence:
    # What denies or asks does so in every folder.
    if rule.effect is not RuleEffect.ALLOW:
        return commands
    if folder is None:
        return Sentence("{commands}, in every folder of the workspace", {"commands": commands})
    if folder == WORKSPACE_ROOT:
        return Sentence("{commands}, in the top folder of the workspace", {"commands": commands})
    return Sentence("{commands}, in the folder {folder} of the workspace", {"commands": commands, "folder": folder})


def _in_folder(rule: Rule, folder: str) -> Sentence:
    # Where a tool works in a folder, and the rule says in which part of it, the part says both.
    names = [_without_scope(each, folder) for each in rule.tools]
    whole = rule.workspace is not None and is_within(folder, rule.workspace) and is_within(rule.workspace, folder)
    template = "{tool} anywhere in the workspace {folder}" if whole else "{tool} in {folder}"
    return Sentence(template, {"tool": _list_all(names), "folder": folder})


def _without_scope(identity: str, folder: str) -> str:
    name, _, scope = identity.partition(" @ ")
    return name if scope and is_within(scope, folder) else identity


def _named(rule: Rule) -> str | Sentence:
    return _list_all([_bound_tool(each, rule.workspace) for each in rule.tools])


def _bound_tool(identity: str, workspace: str | None) -> str | Sentence:
    """A tool by its name; and to what the rule holds it, where that is not said beside it."""
    name, _, scope = identity.partition(" @ ")
    if not scope or (workspace is not None and is_within(scope, workspace) and is_within(workspace, scope)):
        return name
    if PurePath(scope).is_absolute():
        return Sentence("{tool} for the workspace {folder}", {"tool": name, "folder": scope})
    return Sentence("{tool}, as it is described now,", {"tool": name})


def _list_all(names: Sequence[str | Sentence]) -> str | Sentence:
    return _join_names(names, "{some} and {last}")


def _join_names(parts: Sequence[str | Sentence], template: str) -> str | Sentence:
    """As a list in a sentence; the template is for its last two."""
    if len(parts) == 1:
        return parts[0]
    some = parts[0]
    for each in parts[1:-1]:
        some = Sentence("{first}, {next}", {"first": some, "next": each})
    return Sentence(template, {"some": some, "last": parts[-1]})
