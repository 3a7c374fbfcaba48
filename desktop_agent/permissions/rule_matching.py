"""Match rules with a call: by tool, and by the files, hosts and commands that it names."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import takewhile
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
    OPAQUE,
    READ_NO_FILES,
    SAY_ALL,
    START_AT_ONCE,
    START_NOTHING,
    START_WHAT_FOLLOWS,
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
# What stands behind is a shell line to all that start others.
_LINE_FOLLOWS = frozenset({"-c", "--call", "--command"})
# The others start nothing that stands in their words.
_STARTING_IN_GIT = frozenset({"bisect", "rebase", "submodule", "filter-branch", "config", "difftool", "mergetool"})


def find_nested_commands(command: Command, is_meant: Callable[[str], bool]) -> Iterator[tuple[Command, bool]]:
    """Those of which the first word `is_meant`, each with whether it surely is started."""
    name = program_name(command.words[0] or "")
    if command.starts or len(command.words) < 2 or _starts_nothing(name, command):
        return
    sure = _certain_starts(name, command.words)
    for at in range(1, len(command.words)):
        word = command.words[at]
        if word is not None and is_meant(word):
            yield _command_of(command.words[at:]), at in sure
        yield from _commands_in_text(word or command.sources[at], is_meant)
        if word is not None and command.words[at - 1] in _LINE_FOLLOWS and (name in OPAQUE or name in START_AT_ONCE):
            yield from ((each, True) for each in parse_line(word).commands)


def _starts_nothing(name: str, command: Command) -> bool:
    if name == "git":
        said = command.words[1]
        return said is not None and not said.startswith("-") and said not in _STARTING_IN_GIT
    return name in START_NOTHING and not has_escalating_words(command.words, command.sources, 1)


def _certain_starts(name: str, words: Sequence[str | None]) -> Sequence[int]:
    """Where what is started begins, in the words."""
    if name in OPAQUE or name in WRAPPERS:
        return range(1, len(words))
    behind = 1 if name in START_AT_ONCE else 2 if words[1] in START_WHAT_FOLLOWS else len(words)
    if behind < len(words) and words[behind] == "--":
        behind += 1
    return (behind,)


def _commands_in_text(text: str, is_meant: Callable[[str], bool]) -> Iterator[tuple[Command, bool]]:
    words = _SHELL_WORD.findall(text)
    if len(words) > 1:
        yield from ((_command_of(words[at:]), False) for at, word in enumerate(words) if is_meant(word))


def _command_of(words: Sequence[str | None]) -> Command:
    return Command(tuple(words), tuple(each or "…" for each in words))


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
    """Whether a rule that denies or asks is about a call. MAYBE: it cannot be told apart."""

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
        """Whether all that it would do is to run shell lines, sandboxed, that are read-only."""
        subjects = self.subjects or ()
        return bool(subjects) and all(
            isinstance(each, CommandSubject) and is_read_only_line(each, self.workspace) for each in subjects
        )

    @property
    def lines(self) -> tuple[ParsedLine, ...]:
        """The shell lines that it would run, taken apart."""
        return tuple(parse_line(each.line) for each in self.subjects or () if isinstance(each, CommandSubject))

    @property
    def starts_programs(self) -> bool:
        """Whether anything may happen that its subjects do not name."""
        return Effect.EXECUTE in self.tool.effects or any(isinstance(s, CommandSubject) for s in self.subjects or ())


def names_tool(rule: Rule, tool: AnyTool) -> bool:
    """Whether the rule is about this tool at all."""
    return not {"*", tool.name, tool.identity}.isdisjoint(rule.tools)


def command_patterns(pattern: Pattern | None) -> tuple[CommandPattern, ...]:
    """Those that a pattern about commands stands for; none for any other."""
    match pattern:
        case CommandPattern():
            return (pattern,)
        case CommandsPattern(beginnings=beginnings, folder=folder):
            return tuple(CommandPattern(words=words, folder=folder) for words in beginnings)
        case _:
            return ()


def match_restriction(rule: Rule, facts: CallFacts) -> Match:
    """Whether a rule that denies or asks is about the call: one file, host or command of it is enough."""
    if not names_tool(rule, facts.tool):
        return Match.NO
    if rule.pattern is None:
        return Match.YES
    if isinstance(rule.pattern, ArgumentsPattern):
        return Match.YES if rule.pattern.digest == facts.digest else Match.NO
    found = max((_match_subject(rule.pattern, each) for each in facts.subjects or ()), default=Match.NO)
    if found is Match.NO and _may_be_unnamed(rule, rule.pattern, facts):
        return Match.MAYBE
    return found


def find_allowing_rule(rules: Iterable[Rule], facts: CallFacts) -> Rule | None:
    """The first of the rules that together allow the whole call, or None when a part of it is not allowed.

    Exact arguments go first: the person saw all of them. Of several that each allow it, one that trusts what it brings
    in; where it takes several together it trusts only if all of them do.
    """
    named = sorted((rule for rule in rules if names_tool(rule, facts.tool)), key=lambda rule: not rule.trusts)
    for rule in named:
        if isinstance(rule.pattern, ArgumentsPattern) and rule.pattern.digest == facts.digest:
            return rule
    for rule in named:
        if rule.pattern is None:
            return rule
    for rules_together in ([rule] for rule in named), [named]:
        for some in rules_together:
            patterns = [rule.pattern for rule in some if rule.pattern is not None]
            if facts.subjects and all(_is_covered(each, patterns, facts.workspace) for each in facts.subjects):
                helping = [rule for rule in some if _contributes(rule, facts.subjects)]
                return _with_common_trust(helping) if helping else None
    return None


def _with_common_trust(rules: Sequence[Rule]) -> Rule:
    """The first, which trusts only if all of them do."""
    trusts = all(rule.trusts for rule in rules)
    return rules[0] if rules[0].trusts == trusts else rules[0].model_copy(update={"trusts": trusts})


def run_folder(subject: CommandSubject) -> str | None:
    """Where the commands of this line run, relative to the workspace; one that goes elsewhere runs anywhere."""
    line = parse_line(subject.line)
    goes_elsewhere = line.changes_folder or (line.goes_to is not None and not subject.goes_there)
    return None if goes_elsewhere else subject.folder


def commands_to_allow(subject: CommandSubject, workspace: str | None = None) -> tuple[Command, ...]:
    """The commands of this line that rules must allow.

    To go to the folder for which they hold needs none, nor does what is read-only, where the line runs sandboxed.
    """
    commands = parse_line(subject.line).written[1 if subject.goes_there else 0 :]
    if not subject.is_sandboxed or loop_leaves_workspace(subject.line, workspace):
        return commands
    # Of a line that is read-only as a whole, all: rules about it hold as ever.
    return tuple(each for each in commands if not is_read_only_anywhere(each, workspace)) or commands


def is_transparent_line(subject: CommandSubject, workspace: str | None) -> bool:
    """Whether the line says what it does, so that rules can be about its commands.

    Which file a reader is given stands in no line such as `cat list | xargs cat`: only the sandbox bounds these.
    """
    line = parse_line(subject.line)
    told = subject.is_sandboxed or not any(_may_read_files(each) and _has_wildcards(each) for each in line.commands)
    return told and line.is_plain and not loop_leaves_workspace(subject.line, workspace)


def patterns_for_folder(patterns: Iterable[CommandPattern], folder: str | None) -> list[CommandPattern]:
    """Those that allow something where a line runs."""
    return [each for each in patterns if each.folder is None or each.folder == folder]


def matches_words(pattern: CommandPattern, command: Command) -> bool:
    """Whether a command begins with (or is) exactly these words, each of them literal."""
    words = command.words if pattern.exact else command.words[: len(pattern.words)]
    return words == pattern.words


def _may_be_unnamed(rule: Rule, pattern: _SubjectPattern, facts: CallFacts) -> bool:
    """Whether the call may be what the rule means although no subject says so."""
    kind = type(pattern)
    named = any(isinstance(each, _SUBJECT_OF_PATTERN[kind]) for each in facts.subjects or ())
    if facts.starts_programs:
        # A command may touch any file and any host; what it touches stands nowhere.
        return not (named and _SUBJECT_OF_PATTERN[kind] is CommandSubject)
    if not facts.subjects and not {facts.tool.name, facts.tool.identity}.isdisjoint(rule.tools):
        return True
    undeclared = facts.tool.tool_class is ToolClass.MUTATING and not facts.tool.effects
    return not named and bool(undeclared or facts.tool.effects & _EFFECTS_OF_PATTERN[kind])


def _match_subject(pattern: _SubjectPattern, subject: Subject) -> Match:
    match pattern, subject:
        case PathPattern(), PathSubject():
            return _match_path(pattern.prefix, subject.path)
        case HostPattern(), HostSubject():
            return Match.YES if _matches_host(pattern.host, subject.host) else Match.NO
        case ((CommandPattern() | CommandsPattern()), CommandSubject()):
            line, single = parse_line(subject.line), command_patterns(pattern)
            found = max((_match_nested(single, each) for each in line.commands), default=Match.NO)
            return found if line.understood else max(found, Match.MAYBE)
        case _:
            return Match.NO


def _is_covered(subject: Subject, patterns: Sequence[Pattern], workspace: str | None = None) -> bool:
    if isinstance(subject, PathSubject):
        return any(isinstance(each, PathPattern) and is_within(each.prefix, subject.path) for each in patterns)
    if isinstance(subject, HostSubject):
        return any(isinstance(each, HostPattern) and _matches_host(each.host, subject.host) for each in patterns)
    single = (each for pattern in patterns for each in command_patterns(pattern))
    words, commands = patterns_for_folder(single, run_folder(subject)), commands_to_allow(subject, workspace)
    if not commands or not is_transparent_line(subject, workspace):
        return False
    return all(is_command_covered(each, words, workspace) for each in commands)


def _contributes(rule: Rule, subjects: tuple[Subject, ...]) -> bool:
    """Whether the rule has a part in allowing: it is the one to be named."""
    single = command_patterns(rule.pattern)
    if single:
        lines = [each for each in subjects if isinstance(each, CommandSubject)]
        pairs = [(patterns_for_folder(single, run_folder(each)), parse_line(each.line).commands) for each in lines]
        return any(matches_words(pattern, each) for held, found in pairs for pattern in held for each in found)
    return rule.pattern is not None and any(_is_covered(each, [rule.pattern]) for each in subjects)


# -- files


def path_parts(path: str) -> tuple[str, ...] | None:
    """The components of an absolute path, or None for a path that is none or climbs: nothing can be said of it."""
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    absolute = path.startswith("/") or path[1:3] == ":/"
    return parts if absolute and ".." not in parts and "\\" not in path else None


def is_within(prefix: str, path: str) -> bool:
    """Whether a path is this folder, or below it."""
    below, parts = path_parts(prefix), path_parts(path)
    return below is not None and parts is not None and parts[: len(below)] == below


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
    """Whether words behind the first `seen` change what the program that it starts finds: `env LD_PRELOAD=x ls`."""
    wrapper = WRAPPERS.get(program_name(command.words[0] or "")) if command.words else None
    return wrapper is not None and wrapper.assignments and command.starts_at > seen


def is_command_covered(command: Command, patterns: Sequence[CommandPattern], workspace: str | None = None) -> bool:
    """Whether a command may run, and everything that it starts in turn."""
    matching = [each for each in patterns if matches_words(each, command) and _is_conclusive(each, command, workspace)]
    if not command.starts:
        return bool(matching)
    if any(each.exact for each in matching):
        return True
    # Words that go on into what is started allow that with it: `sudo apt` is about apt.
    reaching = [each.words[command.starts_at :] for each in matching if len(each.words) > command.starts_at]
    if reaching:
        patterns = (*patterns, *(CommandPattern(words=each) for each in reaching))
    inside = all(is_command_covered(each, patterns, workspace) for each in command.starts)
    return inside and (command.is_transparent or bool(matching))


def reads_outside_workspace(command: Command, workspace: str | None) -> bool:
    """Whether a program that a rule names for all that it may read is given something outside of the workspace."""
    return _may_read_files(command) and not stays_in_workspace(command, workspace)


def _may_read_files(command: Command) -> bool:
    """Whether it is, or may start, a program that a rule names for all that it may read."""
    starts = not (START_WHAT_FOLLOWS | {"-m"}).isdisjoint(command.words[1:2])
    programs = (*command.words[:1], *(command.words[2:3] if starts else ()))
    return not (SAY_ALL - READ_NO_FILES).isdisjoint(known_name(each or "") for each in programs)


def _has_wildcards(command: Command) -> bool:
    """Whether one of its words may become the name of any file."""
    pairs = zip(command.words, command.sources, strict=True)
    return any(word is None and not is_name_inside(source) for word, source in pairs)


def _is_conclusive(pattern: CommandPattern, command: Command, workspace: str | None) -> bool:
    """Whether the pattern's words say what the command does, whatever stands behind them."""
    if pattern.exact:
        return True
    seen = len(pattern.words)
    if changes_environment(command, seen) or reads_outside_workspace(command, workspace):
        return False
    return not has_escalating_words(command.words, command.sources, seen)


def _match_nested(patterns: Sequence[CommandPattern], command: Command) -> Match:
    """Also by what its words name as something to start."""
    names = {_program(each.words[0]) for each in patterns}
    found = max(_match_command(each, command) for each in patterns)
    for inside, is_sure in find_nested_commands(command, lambda word: _program(word) in names):
        if found is Match.YES:
            break
        caught = max(_match_command(each, inside) for each in patterns)
        found = max(found, caught if is_sure else min(caught, Match.MAYBE))
    return found


def _match_command(pattern: CommandPattern, command: Command) -> Match:
    """Stricter than what allows: a path to the program, and options before the words, hide nothing."""
    if not command.words or command.words[0] is None:
        return Match.MAYBE
    if _program(command.words[0]) != _program(pattern.words[0]):
        return Match.NO
    if pattern.exact:
        return _match_words(pattern.words[1:], command.words[1:], exact=True)
    return max(_match_words(pattern.words[1:], command.words[1:]), _match_behind_options(pattern, command))


def _program(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2].casefold().removesuffix(".exe")


def _match_words(wanted: Sequence[str], words: Sequence[str | None], *, exact: bool = False) -> Match:
    # A word that is not literal may become any words, or none.
    literal = list(takewhile(lambda each: each is not None, words))
    if len(literal) < len(words) and list(wanted[: len(literal)]) == literal[: len(wanted)]:
        return Match.YES if len(wanted) <= len(literal) and not exact else Match.MAYBE
    fits = literal == list(wanted) if exact else literal[: len(wanted)] == list(wanted)
    return Match.YES if fits else Match.NO


def _match_behind_options(pattern: CommandPattern, command: Command) -> Match:
    """Whether the pattern's words stand behind options: `git -C elsewhere push` is a `git push`."""
    wanted, found, after_option = list(pattern.words[1:]), Match.YES, False
    for word in command.words[1:]:
        if not wanted:
            break
        if word is None:
            return Match.MAYBE
        if word == wanted[0]:
            wanted.pop(0)
            after_option = False
        elif word.startswith("-"):
            after_option = "=" not in word
        elif after_option:
            # Whether this is the option's value or a word of its own, only the program knows.
            found, after_option = Match.MAYBE, False
        else:
            return Match.NO
    return found if not wanted else Match.NO
