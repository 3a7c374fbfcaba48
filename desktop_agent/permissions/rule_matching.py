"""Match rules with a call: by tool, and by the files, hosts and commands that it names."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import product, takewhile
from operator import attrgetter
from unicodedata import normalize

from desktop_agent.permissions.shell.escalating_options import has_escalating_words, is_name_inside, known_name
from desktop_agent.permissions.shell.parser import Command, ParsedLine, parse_line
from desktop_agent.permissions.shell.read_only_commands import (
    is_read_only_anywhere,
    is_read_only_line,
    loop_leaves_workspace,
    stays_in_workspace,
)
from desktop_agent.permissions.shell.wrappers import (
    CLEAR_BY_NAME,
    OPAQUE,
    PACKAGE_RUNNERS,
    READ_NO_FILES,
    START_NOTHING,
    STARTING_SUBCOMMANDS,
    WRAPPERS,
    program_name,
)
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.permissions import (
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
    Subject,
)
from desktop_agent.types.tool_calls import Effect, ToolClass

_SHELL_WORD = re.compile(r"[\w./+-]+")
# All programs that start others take what follows these for a shell line.
_LINE_FOLLOWS = frozenset({"-c", "--call", "--command"})
# Other subcommands start nothing that their words name.
_STARTING_IN_GIT = frozenset({"bisect", "rebase", "submodule", "filter-branch", "config", "difftool", "mergetool"})


_Words = Sequence[str | None]


def find_nested_commands(command: Command, is_candidate: Callable[[str], bool]) -> Iterator[tuple[_Words, bool]]:
    """Yield the words of commands in the words of another, and whether each is surely started.

    In the text of `sh -c` and its like these are all commands, elsewhere those whose first word `is_candidate`.
    """
    name = program_name(command.words[0] or "")
    if command.started or len(command.words) < 2 or _starts_nothing(name, command):
        return
    sure = _certain_starts(name, command.words)
    for index in range(1, len(command.words)):
        word = command.words[index]
        if word is not None and is_candidate(word):
            yield command.words[index:], index in sure
        yield from _commands_in_text(word or command.sources[index], is_candidate)
        if (
            word is not None
            and command.words[index - 1] in _LINE_FOLLOWS
            and (name in OPAQUE or name in PACKAGE_RUNNERS)
        ):
            yield from ((nested.words, True) for nested in parse_line(word).commands)


def _starts_nothing(name: str, command: Command) -> bool:
    if name == "git":
        first_word = command.words[1]
        return first_word is not None and not first_word.startswith("-") and first_word not in _STARTING_IN_GIT
    return name in START_NOTHING and not has_escalating_words(command.words, command.sources, 1)


def _certain_starts(name: str, words: _Words) -> Sequence[int]:
    """Return the indexes of words at which a started command surely begins."""
    if name in OPAQUE or name in WRAPPERS:
        return range(1, len(words))
    start = 1 if name in PACKAGE_RUNNERS else 2 if words[1] in STARTING_SUBCOMMANDS else len(words)
    if start < len(words) and words[start] == "--":
        start += 1
    return (start,)


def _commands_in_text(text: str, is_candidate: Callable[[str], bool]) -> Iterator[tuple[_Words, bool]]:
    words: list[str] = _SHELL_WORD.findall(text)
    if len(words) > 1:
        yield from ((words[index:], False) for index, word in enumerate(words) if is_candidate(word))


_SubjectPattern = PathPattern | HostPattern | CommandPattern | CommandsPattern
# Which tools a rule about every tool can be about, when they do not say what they touch.
_EFFECTS_OF_PATTERN: dict[type[_SubjectPattern], frozenset[Effect]] = {
    PathPattern: frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE}),
    HostPattern: frozenset({Effect.NETWORK, Effect.EXECUTE}),
    CommandPattern: frozenset({Effect.EXECUTE}),
    CommandsPattern: frozenset({Effect.EXECUTE}),
}
_SUBJECT_OF_PATTERN: dict[type[_SubjectPattern], type[Subject]] = {
    PathPattern: PathSubject,
    HostPattern: HostSubject,
    CommandPattern: CommandSubject,
    CommandsPattern: CommandSubject,
}


class Match(IntEnum):
    """Whether a rule that denies or asks is about a call. MAYBE: it cannot be told."""

    NO = 0
    MAYBE = 1
    YES = 2


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call as rules see it. `subjects` is None when the tool failed to say what the call is about."""

    tool: AnyTool
    digest: str
    subjects: tuple[Subject, ...] | None = ()
    workspace: str | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether the call does nothing but run sandboxed shell lines that are read-only."""
        subjects = self.subjects or ()
        return bool(subjects) and all(
            isinstance(subject, CommandSubject) and is_read_only_line(subject, self.workspace) for subject in subjects
        )

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(subject.path for subject in self.subjects or () if isinstance(subject, PathSubject))

    @property
    def lines(self) -> tuple[tuple[ParsedLine, CommandSubject], ...]:
        """The shell lines that the call runs, as they are parsed and as they are given."""
        lines = (subject for subject in self.subjects or () if isinstance(subject, CommandSubject))
        return tuple((parse_line(subject.line), subject) for subject in lines)

    @property
    def starts_programs(self) -> bool:
        """Whether the call may do anything that its subjects do not name."""
        return Effect.EXECUTE in self.tool.effects or any(isinstance(s, CommandSubject) for s in self.subjects or ())


def names_tool(rule: Rule, tool: AnyTool) -> bool:
    """Return whether the rule is about this tool at all."""
    return not {"*", tool.name, tool.identity}.isdisjoint(rule.tools)


def command_patterns(pattern: Pattern | None) -> tuple[CommandPattern, ...]:
    """Return the command patterns that a pattern stands for; none for other patterns."""
    match pattern:
        case CommandPattern():
            return (pattern,)
        case CommandsPattern(beginnings=beginnings, folder=folder):
            return tuple(CommandPattern(words=words, folder=folder) for words in beginnings)
        case _:
            return ()


def match_restriction(rule: Rule, facts: CallFacts) -> Match:
    """Match a rule that denies or asks with the call: one file, host or command of it is enough."""
    if not names_tool(rule, facts.tool):
        return Match.NO
    if rule.pattern is None:
        return Match.YES
    if isinstance(rule.pattern, ArgumentsPattern):
        return Match.YES if rule.pattern.digest == facts.digest else Match.NO
    match = max((_match_subject(rule.pattern, subject) for subject in facts.subjects or ()), default=Match.NO)
    if match is Match.NO and _may_be_unnamed(rule, rule.pattern, facts):
        return Match.MAYBE
    return match


def find_allowing_rule(rules: Iterable[Rule], facts: CallFacts) -> Rule | None:
    """Return the first of the rules that together allow the whole call; None when a part of it is not allowed.

    Exact arguments go first: the person saw all of them. Of several that each allow it, a rule that trusts what the
    call brings in; where several are needed, they trust only if all of them do.
    """
    about_tool = [rule for rule in rules if names_tool(rule, facts.tool)]
    about_tool.sort(key=attrgetter("trusts"), reverse=True)
    for rule in about_tool:
        if isinstance(rule.pattern, ArgumentsPattern) and rule.pattern.digest == facts.digest:
            return rule
    for rule in about_tool:
        if rule.pattern is None:
            return rule
    return _first_covering(about_tool, facts)


def _first_covering(rules: list[Rule], facts: CallFacts) -> Rule | None:
    """Return the first rule that covers the call alone, or the first that helps where all cover it together."""
    if not facts.subjects:
        return None
    for group in (*([rule] for rule in rules), rules):
        patterns = [rule.pattern for rule in group]
        if all(_is_covered(subject, patterns, facts.workspace) for subject in facts.subjects):
            return _first_contributing(group, facts.subjects)
    return None


def _first_contributing(rules: Sequence[Rule], subjects: tuple[Subject, ...]) -> Rule | None:
    """Return the first of the rules that help to allow the call; it trusts only if all of them do."""
    contributing = [rule for rule in rules if _contributes(rule, subjects)]
    if not contributing:
        return None
    first, trusts = contributing[0], all(rule.trusts for rule in contributing)
    return first if first.trusts == trusts else first.model_copy(update={"trusts": trusts})


def run_folder(subject: CommandSubject) -> str | None:
    """Return where the commands of this line run, relative to the workspace; None if they may run anywhere."""
    line = parse_line(subject.line)
    goes_elsewhere = line.changes_folder or (line.goes_to is not None and not subject.changes_folder)
    return None if goes_elsewhere else subject.folder


def commands_to_allow(subject: CommandSubject, workspace: str | None = None) -> tuple[Command, ...]:
    """Return the commands of this line that rules must allow.

    Going to the folder that they run in needs no rule, nor does a read-only command of a sandboxed line.
    """
    commands = parse_line(subject.line).top_level[1 if subject.changes_folder else 0 :]
    if not subject.is_sandboxed or loop_leaves_workspace(subject.line, workspace):
        return commands
    # If the whole line is read-only, return all commands: rules about them still hold.
    return tuple(command for command in commands if not is_read_only_anywhere(command, workspace)) or commands


def is_transparent_line(subject: CommandSubject, workspace: str | None) -> bool:
    """Return whether the line says what it does, so that rules can be about its commands.

    A line such as `cat list | xargs cat` does not show which files are read: only the sandbox bounds that.
    """
    line = parse_line(subject.line)
    names_files = subject.is_sandboxed or not any(
        _may_read_files(command) and _has_wildcards(command) for command in line.commands
    )
    return names_files and line.is_plain and not loop_leaves_workspace(subject.line, workspace)


def patterns_for_folder(patterns: Iterable[CommandPattern], folder: str | None) -> list[CommandPattern]:
    """Return the patterns that hold in the folder where a line runs."""
    return [pattern for pattern in patterns if pattern.folder is None or pattern.folder == folder]


def matches_words(pattern: CommandPattern, command: Command) -> bool:
    """Return whether a command begins with (or is) exactly these words, each of them literal."""
    words = command.words if pattern.exact else command.words[: len(pattern.words)]
    return words == pattern.words


def _may_be_unnamed(rule: Rule, pattern: _SubjectPattern, facts: CallFacts) -> bool:
    """Return whether the rule may apply to the call although no subject says so."""
    kind = type(pattern)
    is_named = any(isinstance(subject, _SUBJECT_OF_PATTERN[kind]) for subject in facts.subjects or ())
    if facts.starts_programs:
        # A command may touch any file and any host without naming it.
        return not (is_named and _SUBJECT_OF_PATTERN[kind] is CommandSubject)
    if not facts.subjects and not {facts.tool.name, facts.tool.identity}.isdisjoint(rule.tools):
        return True
    undeclared = facts.tool.tool_class is ToolClass.MUTATING and not facts.tool.effects
    return not is_named and bool(undeclared or facts.tool.effects & _EFFECTS_OF_PATTERN[kind])


def _match_subject(pattern: _SubjectPattern, subject: Subject) -> Match:
    match pattern, subject:
        case PathPattern(), PathSubject():
            return _match_path(pattern.prefix, subject.path)
        case HostPattern(), HostSubject():
            return Match.YES if _matches_host(pattern.host, subject.host) else Match.NO
        case ((CommandPattern() | CommandsPattern()), CommandSubject()):
            line, single = parse_line(subject.line), command_patterns(pattern)
            match = max((_match_nested(single, command) for command in line.commands), default=Match.NO)
            return match if line.understood else max(match, Match.MAYBE)
        case _:
            return Match.NO


def _is_covered(subject: Subject, patterns: Sequence[Pattern | None], workspace: str | None = None) -> bool:
    if isinstance(subject, PathSubject):
        return any(isinstance(pattern, PathPattern) and is_within(pattern.prefix, subject.path) for pattern in patterns)
    if isinstance(subject, HostSubject):
        return any(
            isinstance(pattern, HostPattern) and _matches_host(pattern.host, subject.host) for pattern in patterns
        )
    single = (command_pattern for pattern in patterns for command_pattern in command_patterns(pattern))
    words, commands = patterns_for_folder(single, run_folder(subject)), commands_to_allow(subject, workspace)
    if not commands or not is_transparent_line(subject, workspace):
        return False
    return all(is_command_covered(command, words, workspace) for command in commands)


def _contributes(rule: Rule, subjects: tuple[Subject, ...]) -> bool:
    """Return whether the rule helps to allow the call, so that it can be named as the reason."""
    single = command_patterns(rule.pattern)
    if single:
        return any(isinstance(subject, CommandSubject) and _allows_some(single, subject) for subject in subjects)
    return any(_is_covered(subject, [rule.pattern]) for subject in subjects)


def _allows_some(patterns: Sequence[CommandPattern], subject: CommandSubject) -> bool:
    applicable = patterns_for_folder(patterns, run_folder(subject))
    return any(matches_words(*pair) for pair in product(applicable, parse_line(subject.line).commands))


# -- files


def path_parts(path: str) -> tuple[str, ...] | None:
    """Return the components of an absolute path; None for a relative or climbing path, of which nothing can be said."""
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    absolute = path.startswith("/") or path[1:3] == ":/"
    return parts if absolute and ".." not in parts and "\\" not in path else None


def is_within(prefix: str, path: str) -> bool:
    """Return whether a path is this folder, or below it."""
    prefix_parts, parts = path_parts(prefix), path_parts(path)
    return prefix_parts is not None and parts is not None and parts[: len(prefix_parts)] == prefix_parts


def _match_path(prefix: str, path: str) -> Match:
    if is_within(prefix, path):
        return Match.YES
    if path_parts(prefix) is None or path_parts(path) is None:
        return Match.MAYBE
    # Where upper and lower case, or two ways to write an accent, are the same file, spelling is no way around a rule.
    return Match.MAYBE if is_within(_loose_path(prefix), _loose_path(path)) else Match.NO


def _loose_path(path: str) -> str:
    return normalize("NFKC", normalize("NFKC", path).casefold())


# -- hosts


def _matches_host(pattern: str, host: str) -> bool:
    pattern, host = pattern.lower().rstrip("."), host.lower().rstrip(".")
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return bool(host) and host == pattern


# -- commands


def changes_environment(command: Command, seen: int) -> bool:
    """Return whether words after the first `seen` change what a started program finds: `env LD_PRELOAD=x ls`."""
    wrapper = WRAPPERS.get(program_name(command.words[0] or ""))
    return wrapper is not None and wrapper.assignments and command.own_word_count > seen


def is_command_covered(command: Command, patterns: Sequence[CommandPattern], workspace: str | None = None) -> bool:
    """Return whether a command may run, and everything that it starts in turn."""
    matching = [
        pattern
        for pattern in patterns
        if matches_words(pattern, command) and _is_conclusive(pattern, command, workspace)
    ]
    if not command.started:
        return bool(matching)
    if any(match.exact for match in matching):
        return True
    # Words of a rule that go on into the started command allow that too: `sudo apt` is about apt.
    inner_words = (match.words[command.own_word_count :] for match in matching)
    patterns = (*patterns, *(CommandPattern(words=words) for words in inner_words if words))
    is_rest_covered = all(is_command_covered(start, patterns, workspace) for start in command.started)
    return is_rest_covered and (command.is_transparent or bool(matching))


def reads_outside_workspace(command: Command, workspace: str | None) -> bool:
    """Return whether a reader of files, as rules name them, is given something outside of the workspace."""
    return _may_read_files(command) and not stays_in_workspace(command, workspace)


def _may_read_files(command: Command) -> bool:
    """Return whether the command is, or may start, a program that rules name for all that it may read."""
    starts = not (STARTING_SUBCOMMANDS | {"-m"}).isdisjoint(command.words[1:2])
    programs = (*command.words[:1], *(command.words[2:3] if starts else ()))
    return not (CLEAR_BY_NAME - READ_NO_FILES).isdisjoint(known_name(program or "") for program in programs)


def _has_wildcards(command: Command) -> bool:
    """Return whether one of its words may become the name of any file."""
    pairs = zip(command.words, command.sources, strict=True)
    return any(word is None and not is_name_inside(source) for word, source in pairs)


def _is_conclusive(pattern: CommandPattern, command: Command, workspace: str | None) -> bool:
    """Return whether the pattern's words say what the command does, whatever stands behind them."""
    if pattern.exact:
        return True
    seen = len(pattern.words)
    if changes_environment(command, seen) or reads_outside_workspace(command, workspace):
        return False
    return not has_escalating_words(command.words, command.sources, seen)


def _match_nested(patterns: Sequence[CommandPattern], command: Command) -> Match:
    """Match the command, and what its words name as something to start."""
    names = {_program(pattern.words[0]) for pattern in patterns}
    match = max(_match_command(pattern, command.words) for pattern in patterns)
    for nested, is_sure in find_nested_commands(command, lambda word: _program(word) in names):
        if match is Match.YES:
            break
        nested_match = max(_match_command(pattern, nested) for pattern in patterns)
        match = max(match, nested_match if is_sure else min(nested_match, Match.MAYBE))
    return match


def _match_command(pattern: CommandPattern, words: _Words) -> Match:
    """Match more than a rule that allows does: a path to the program, or options before the words, hide nothing."""
    if words[0] is None:
        return Match.MAYBE
    if _program(words[0]) != _program(pattern.words[0]):
        return Match.NO
    match_rest = _match_exactly if pattern.exact else _match_beginning
    return match_rest(pattern.words[1:], words[1:])


def _program(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2].casefold().removesuffix(".exe")


def _match_exactly(pattern_words: Sequence[str], words: _Words) -> Match:
    literal = list(takewhile(lambda word: word is not None, words))
    if len(literal) == len(words):
        return Match.YES if literal == list(pattern_words) else Match.NO
    # A word that is not literal may become any words, or none.
    return Match.MAYBE if literal == list(pattern_words[: len(literal)]) else Match.NO


def _match_beginning(pattern_words: Sequence[str], words: _Words) -> Match:
    """Match words that a command begins with, also behind options: `git -C elsewhere push` is a `git push`."""
    missing, match, after_option = list(pattern_words), Match.YES, False
    for word in words:
        if not missing:
            break
        if word is None:
            return Match.MAYBE
        if word == missing[0]:
            missing.pop(0)
            after_option = False
        elif word.startswith("-"):
            after_option = "=" not in word
        elif after_option:
            # Whether this is the option's value or a word of its own, only the program knows.
            match, after_option = Match.MAYBE, False
        else:
            return Match.NO
    return match if not missing else Match.NO
