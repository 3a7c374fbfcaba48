"""Propose rules for a call that is asked about, the narrowest first, and describe a rule in words."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePath
from typing import cast

from desktop_agent.permissions.rule_matching import (
    changes_environment,
    command_patterns,
    commands_to_allow,
    is_command_covered,
    is_transparent_line,
    is_within,
    names_tool,
    path_parts,
    patterns_for_folder,
    reads_outside_workspace,
    run_folder,
)
from desktop_agent.permissions.shell.escalating_options import known_name, program_names, subcommand, words_to_name
from desktop_agent.permissions.shell.parser import Command
from desktop_agent.permissions.shell.safe_options import program_options, subcommand_options
from desktop_agent.permissions.shell.syntax import word_set
from desktop_agent.permissions.shell.wrappers import (
    CLEAR_BY_NAME,
    DO_ANYTHING,
    SHELLS,
    STARTING_SUBCOMMANDS,
    WRAPPERS,
    program_name,
    unwrap,
)
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import new_id
from desktop_agent.types.permissions import (
    WORKSPACE_ROOT,
    ArgumentsPattern,
    CommandPattern,
    CommandsPattern,
    CommandSubject,
    HostPattern,
    HostSubject,
    PathPattern,
    PathSubject,
    Pattern,
    Rule,
    RuleEffect,
    RuleScope,
    Subject,
)
from desktop_agent.types.tool_calls import Effect, ToolClass, tool_title

Beginning = tuple[str, ...]


def _bundle(title: str, *commands: str, folder: str | None = WORKSPACE_ROOT) -> CommandsPattern:
    return CommandsPattern(title=title, beginnings=tuple(tuple(command.split()) for command in commands), folder=folder)


_READ_ONLY = ("git status", "git diff", "git log", "git show", "git blame", "git ls-files")
# A hook runs where the commit runs: in the bounds of a command of the agent.
BUNDLES = (
    _bundle("git, only looking", *_READ_ONLY, folder=None),
    _bundle("git, recording (a commit starts the hooks of the repository)", "git add", "git commit"),
    _bundle("ruff, checking and formatting", "ruff check", "ruff format"),
)


def find_bundle(beginnings: Iterable[Beginning], folder: str = WORKSPACE_ROOT) -> CommandsPattern | None:
    """Return the bundle that has all of these commands, for this folder; None where there is none."""
    commands = set(beginnings)
    matching = next((bundle for bundle in BUNDLES if commands and commands <= set(bundle.beginnings)), None)
    return matching if matching is None or matching.folder is None else matching.model_copy(update={"folder": folder})


# A rule keeps the title that was shown; those that are known can be translated.
_TITLES = {
    "git, only looking": Sentence("git, only looking"),
    "git, recording (a commit starts the hooks of the repository)": Sentence(
        "git, recording (a commit starts the hooks of the repository)"
    ),
    "ruff, checking and formatting": Sentence("ruff, checking and formatting"),
}


def describe_rule(rule: Rule) -> Sentence:
    """Describe what a rule matches, for people; shown before it is granted."""
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
        case ArgumentsPattern(words=""):
            return Sentence("{tool} with exactly these arguments", {"tool": _named(rule)})
        case ArgumentsPattern(words=words):
            values = {"tool": _named(rule), "arguments": words}
            return Sentence("{tool} with exactly these arguments: {arguments}", values)
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
    # Where a tool works in a folder, and the rule is about a part of it, naming the part is enough.
    names = [_without_scope(tool, folder) for tool in rule.tools]
    is_workspace = (
        rule.workspace is not None and is_within(folder, rule.workspace) and is_within(rule.workspace, folder)
    )
    template = "{tool} anywhere in the workspace {folder}" if is_workspace else "{tool} in {folder}"
    return Sentence(template, {"tool": _list_all(names), "folder": folder})


def _without_scope(identity: str, folder: str) -> str | Sentence:
    name, _, scope = identity.partition(" @ ")
    return _tool_in_words(name) if scope and is_within(scope, folder) else _bound_tool(identity, None)


def _named(rule: Rule) -> str | Sentence:
    return _list_all([_bound_tool(tool, rule.workspace) for tool in rule.tools])


def _bound_tool(identity: str, workspace: str | None) -> str | Sentence:
    """Name a tool, and what the rule binds it to, where that is not said beside it."""
    name, _, scope = identity.partition(" @ ")
    if not scope or (workspace is not None and is_within(scope, workspace) and is_within(workspace, scope)):
        return _tool_in_words(name)
    if PurePath(scope).is_absolute():
        return Sentence("{tool} for the workspace {folder}", {"tool": _tool_in_words(name), "folder": scope})
    return Sentence("{tool}, as it is described now,", {"tool": _tool_in_words(name)})


def _tool_in_words(name: str) -> str | Sentence:
    title = tool_title(name)
    return title if isinstance(title, str) else Sentence("“{tool}”", {"tool": title})


def _list_all(names: Sequence[str | Sentence]) -> str | Sentence:
    return _join_names(names, "{some} and {last}")


def _join_names(parts: Sequence[str | Sentence], template: str) -> str | Sentence:
    """Join names to a list in a sentence; the template is for its last two."""
    if len(parts) == 1:
        return parts[0]
    joined = parts[0]
    for part in parts[1:-1]:
        joined = Sentence("{first}, {next}", {"first": joined, "next": part})
    return Sentence(template, {"some": joined, "last": parts[-1]})


# They do nothing but change what the next command finds, or where it runs.
_SETUP_COMMANDS = word_set(
    "export declare typeset local readonly unset set shopt read mapfile readarray getopts hash enable alias unalias cd "
    "pushd popd umask ulimit exec trap"
)
# With these, `run` starts a script that the folder defines, and no program.
_RUN_SCRIPTS = word_set("npm pnpm yarn cargo go dotnet")
# `python -m pytest` says what it does, `python -m timeit` runs anything.
_CLEAR_MODULES = word_set("pytest unittest ruff mypy black isort flake8 pyright basedpyright")

# Both can change a file in any way, so a rule is about both. It holds in the whole workspace: files that start programs
# are asked about wherever they lie, and all that these tools did can be undone.
_CHANGE_A_FILE = ("edit_file", "write_file")
_WRITES = frozenset({Effect.WRITE})
_MAX_ARGUMENTS = 120
"""Characters of the arguments in the words of a rule; of more items than that, the rest would not be in them."""


def propose_rules(
    tool: AnyTool,
    digest: str,
    subjects: Sequence[Subject] | None,
    *,
    workspace: str | None = None,
    allowed: Sequence[Rule] = (),
) -> tuple[Rule, ...]:
    """Return rules that would allow the call of this digest from now on: for the workspace, if there is one, and
    always, unless the tool is one of the workspace.

    `subjects` are what the tool says about the call; None where it failed to. Each rule allows the whole call by
    itself, or with the rules that are `allowed` already, apart from hard denies. A change of a file in the workspace
    has one rule alone, for all files there.
    """
    words = [pattern for rule in allowed if names_tool(rule, tool) for pattern in command_patterns(rule.pattern)]
    patterns: list[Pattern | None] = [*_narrow_patterns(subjects or (), words, workspace)]
    exact = ArgumentsPattern(digest=digest)
    if not patterns:
        patterns = [exact] if Effect.EXECUTE in tool.effects else [exact, None]
    if (rule := _file_rule(tool, patterns, workspace)) is not None:
        return (rule,)
    scopes: list[tuple[RuleScope, str | None]] = []
    if workspace is not None:
        scopes.append((RuleScope.WORKSPACE, workspace))
    # A tool that works in one folder is another one elsewhere: a rule for everywhere would not hold there.
    if workspace is None or not PurePath(tool.scope).is_absolute():
        scopes.append((RuleScope.ALWAYS, None))
    return tuple(
        Rule(effect=RuleEffect.ALLOW, tool=tool.identity, pattern=pattern, scope=scope, workspace=where)
        for pattern in patterns
        for scope, where in scopes
    )


def for_startup_files(rules: Sequence[Rule], digest: str, subjects: Sequence[Subject] | None) -> tuple[Rule, ...]:
    """Narrow rules for a call that is asked about because of startup files: a wider rule would answer no more.

    They hold in the workspace alone. A rule about paths is about the one file, or about the very call.
    """
    in_workspace = tuple(rule for rule in rules if rule.scope is RuleScope.WORKSPACE)
    paths = {subject.path for subject in subjects or () if isinstance(subject, PathSubject)}
    if not paths:
        return in_workspace
    pattern = PathPattern(prefix=paths.pop()) if len(paths) == 1 else ArgumentsPattern(digest=digest)
    return tuple(rule.model_copy(update={"pattern": pattern}) for rule in in_workspace[:1])


def with_words(rules: Sequence[Rule], arguments: JsonObject) -> tuple[Rule, ...]:
    """Return the rules; one that is about exactly these arguments says which: its digest tells nobody."""
    words = _arguments_in_words(arguments)
    return tuple(
        rule.model_copy(update={"pattern": rule.pattern.model_copy(update={"words": words})})
        if isinstance(rule.pattern, ArgumentsPattern)
        else rule
        for rule in rules
    )


def _arguments_in_words(arguments: JsonObject) -> str:
    """Return one line; of objects, and of lists in lists, only that they are there."""
    values = {
        name[:_MAX_ARGUMENTS]: ", ".join(map(_short_value, cast("list[object]", value)[:_MAX_ARGUMENTS]))
        if isinstance(value, list)
        else _short_value(value)
        for name, value in islice(arguments.items(), _MAX_ARGUMENTS)
    }
    parts = values.values() if len(values) == 1 else (f"{name}: {value}" for name, value in values.items())
    line = " ".join(" · ".join(parts).split())
    return line if len(line) <= _MAX_ARGUMENTS else f"{line[:_MAX_ARGUMENTS]}…"


def _short_value(value: object) -> str:
    text = value if isinstance(value, str) else "…" if isinstance(value, list | dict) else json.dumps(value)
    return text[: _MAX_ARGUMENTS + 1]


def with_trust(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules, and each that holds in one workspace again as one that trusts what its calls bring in."""
    in_workspace = (rule for rule in rules if rule.scope is RuleScope.WORKSPACE)
    return (*rules, *(rule.model_copy(update={"id": new_id(), "trusts": True}) for rule in in_workspace))


def _file_rule(tool: AnyTool, patterns: Sequence[Pattern | None], workspace: str | None) -> Rule | None:
    """Return the rule for both tools that change a file, anywhere in the workspace; None for other calls."""
    only_writes = tool.effects == _WRITES and tool.tool_class is ToolClass.MUTATING
    if tool.name not in _CHANGE_A_FILE or not only_writes or not tool.scope or workspace is None:
        return None
    everywhere = PurePath(workspace).as_posix()
    folders = [pattern.prefix for pattern in patterns if isinstance(pattern, PathPattern)]
    if not folders or not _is_narrow(everywhere) or not all(is_within(everywhere, folder) for folder in folders):
        return None
    return Rule(
        effect=RuleEffect.ALLOW,
        tool=tool.identity,
        # By their whole identities: a server's tool of such a name is another tool.
        also=tuple(f"{name} @ {tool.scope}" for name in _CHANGE_A_FILE if name != tool.name),
        pattern=PathPattern(prefix=everywhere),
        scope=RuleScope.WORKSPACE,
        workspace=workspace,
    )


def _narrow_patterns(
    subjects: Sequence[Subject], allowed: Sequence[CommandPattern], workspace: str | None
) -> list[Pattern]:
    """Return patterns that each cover everything that the call is about; none where one cannot."""
    match [*set(map(_widened, subjects))]:
        case [PathSubject(path=folder)] if _is_narrow(folder):
            return [PathPattern(prefix=folder)]
        case [HostSubject(host=host)]:
            return [HostPattern(host=host)]
        case [CommandSubject() as line]:
            return _line_patterns(line, allowed, workspace)
        case _:
            return []


def _widened(subject: Subject) -> Subject:
    """Return the folder of a file, and a host in lower case: rules are about those."""
    match subject:
        case PathSubject(path=path):
            return PathSubject(path.rpartition("/")[0])
        case HostSubject(host=host):
            return HostSubject(host.lower())
        case CommandSubject():
            return subject


def _is_narrow(folder: str) -> bool:
    parts = path_parts(folder)
    # The root of a disk is everything.
    return bool(parts) and parts != (folder[:2],)


def _line_patterns(subject: CommandSubject, allowed: Sequence[CommandPattern], workspace: str | None) -> list[Pattern]:
    """Return patterns for the one command that is missing; several missing ones only a bundle can allow by one rule."""
    folder = run_folder(subject)
    # A line that may run anywhere is allowed by its exact arguments, or not at all.
    if folder is None or not is_transparent_line(subject, workspace):
        return []
    allowed_here = patterns_for_folder(allowed, folder)
    commands = commands_to_allow(subject, workspace)
    missing = [
        _without_wrappers(command) for command in commands if not is_command_covered(command, allowed_here, workspace)
    ]
    bundle = find_bundle((_first_words(command, workspace) for command in missing), folder)
    several = [bundle] if bundle is not None else []
    return [*_command_patterns(missing[0], several, folder, workspace)] if len(missing) == 1 else [*several]


def _command_patterns(
    command: Command, bundles: Sequence[Pattern], folder: str, workspace: str | None
) -> Iterator[Pattern]:
    literal = tuple(word for word in command.words if word is not None)
    first = _first_words(command, workspace)
    if first:
        yield CommandPattern(words=first, folder=folder)
    yield from bundles
    # Only where there is no other pattern: it does not cover the next line that is like this one.
    if not first and not bundles and len(literal) == len(command.words) and not _has_changed_environment(command):
        yield CommandPattern(words=literal, exact=True, folder=folder)


def _has_changed_environment(command: Command) -> bool:
    """Return whether it changes the environment of what it starts, as `env X=1 ls` does."""
    return changes_environment(command, 1) or any(map(_has_changed_environment, command.started))


def _without_wrappers(command: Command) -> Command:
    while command.is_transparent and len(command.started) == 1:
        command = command.started[0]
    return command


def _first_words(command: Command, workspace: str | None) -> tuple[str, ...]:
    """Return the first words that say what the command does; none where no words do."""
    first = () if reads_outside_workspace(command, workspace) else _naming_words(command)
    count = words_to_name(command.words, command.sources, len(first)) if first else None
    words = tuple(word for word in command.words[: count or 0] if word is not None)
    return words if len(words) == count else ()


def _naming_words(command: Command) -> tuple[str, ...]:
    name = command.words[0]
    if name is None or command.started or unwrap(command.words) is not None:
        return ()
    module = (command.words[2:3] or ("",))[0] or ""
    if _is_python(name) and command.words[1:2] == ("-m",) and module in _CLEAR_MODULES:
        words_of_subcommand = subcommand(command.words[2:])
        return () if words_of_subcommand == () else (name, "-m", module, *(words_of_subcommand or ()))
    if _may_do_anything(name) or name in _SETUP_COMMANDS or program_name(name) in WRAPPERS:
        return ()
    words_of_subcommand = subcommand(command.words)
    if words_of_subcommand is None:
        # No beginning says what an unknown program does.
        return (name,) if known_name(name) in CLEAR_BY_NAME else ()
    if not words_of_subcommand or words_of_subcommand[0] not in STARTING_SUBCOMMANDS:
        return (name, *words_of_subcommand) if words_of_subcommand else ()
    started = command.words[1 + len(words_of_subcommand)] if len(command.words) > 1 + len(words_of_subcommand) else None
    is_script = words_of_subcommand[0] == "run" and known_name(name) in _RUN_SCRIPTS
    return (
        (name, *words_of_subcommand, started)
        if started and not started.startswith("-") and _is_clear_by_name(started, is_script=is_script)
        else ()
    )


def _is_clear_by_name(program: str, *, is_script: bool) -> bool:
    """Return whether what is started is known by its name alone."""
    name = known_name(program)
    starts = unwrap((program, "x")) is not None or name in program_options() or name in subcommand_options()
    says = name in _CLEAR_MODULES - subcommand_options().keys()
    return not _may_do_anything(program) and (is_script or says or not starts)


def _may_do_anything(word: str) -> bool:
    names = {*program_names(word), program_name(word).partition(".")[0]}
    return not names.isdisjoint(DO_ANYTHING | SHELLS) or _is_python(word)


def _is_python(word: str) -> bool:
    return program_name(word).startswith("python")
