"""Rules that a person may make of a question: the narrowest that is useful comes first."""

from collections.abc import Sequence

from desktop_agent.permissions.rule_matching import is_command_covered, names_tool, path_parts
from desktop_agent.permissions.shell.commands import Command, parsed
from desktop_agent.permissions.shell.nodes import listed
from desktop_agent.permissions.shell.reaching_options import reaches_further
from desktop_agent.permissions.shell.wrappers import SHELLS, program_name, unwrapped
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.conduct.rules import (
    ArgumentsPattern,
    CommandPattern,
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
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.tool_calls import Effect

# Allowed by their first words they would do anything: of these only the whole command is proposed.
_DO_ANYTHING = listed(
    "awk gawk mawk sed perl ruby node deno bun php lua make ssh scp rsync docker podman kubectl rm dd mv cp tee curl "
    "wget vim vi tar npx uvx ln install chmod chown chgrp truncate shred unlink patch kill killall pkill sqlite3 psql "
    "mysql ed ex emacs nano tmux screen ftp sftp nc ncat socat telnet m4 gnuplot tclsh julia Rscript java osascript "
    "pypy tsx ts-node cmake ninja rake just ant bazel tox nox pipx pipenv hatch pdm conda coverage valgrind hyperfine "
    "watchexec nodemon run-parts start-stop-daemon setarch linux32 linux64 prlimit chrt numactl xvfb-run "
    "dbus-run-session ansible vagrant wine ldd"
)
# `git log` says what it does, `git` does not.
_WITH_SUBCOMMANDS = listed(
    "git npm pnpm yarn cargo go pip uv apt apt-get brew dotnet gradle mvn poetry systemctl rustup helm terraform"
)
_START_WHAT_FOLLOWS = listed("run exec x dlx")
_START_ANYTHING = listed(
    "tool config alias submodule bisect rebase filter-branch difftool mergetool hook for-each-repo instaweb "
    "send-email clean gc update-index update-ref filter-repo"
)
# `python -m pytest` says what it does, `python -m timeit` runs anything.
_MODULES_THAT_SAY = listed("pytest unittest ruff mypy black isort flake8 pyright basedpyright")


def proposals(
    tool: AnyTool,
    digest: str,
    subjects: Sequence[Subject] | None,
    *,
    workspace: str | None = None,
    allowed: Sequence[Rule] = (),
) -> tuple[Rule, ...]:
    """Rules that would allow the call of this digest from now on: each in the workspace, if there is one, and always.

    `subjects` are what the tool says about the call; None where it failed to. Each rule allows the whole call by
    itself, or with the rules that are `allowed` already, apart from what is never allowed.
    """
    words = [each.pattern for each in allowed if isinstance(each.pattern, CommandPattern) and names_tool(each, tool)]
    patterns: list[Pattern | None] = [*_narrow(subjects or (), words)]
    if not patterns:
        patterns.append(ArgumentsPattern(digest=digest))
        if Effect.EXECUTE not in tool.effects:
            patterns.append(None)
    scopes = [(RuleScope.WORKSPACE, workspace)] if workspace is not None else []
    return tuple(
        Rule(effect=RuleEffect.ALLOW, tool=tool.identity, pattern=pattern, scope=scope, workspace=where)
        for pattern in patterns
        for scope, where in (*scopes, (RuleScope.ALWAYS, None))
    )


def in_words(rule: Rule) -> Sentence:
    """What a rule matches, for people; shown before it is granted."""
    match rule.pattern:
        case PathPattern(prefix=prefix):
            return Sentence("{tool} in {folder}", {"tool": rule.tool, "folder": prefix})
        case HostPattern(host=host):
            return Sentence("{tool} with {host}", {"tool": rule.tool, "host": host})
        case CommandPattern(words=words, exact=exact):
            template = "exactly the command “{command}”" if exact else "commands that begin with “{command}”"
            return Sentence(template, {"command": " ".join(words)})
        case ArgumentsPattern():
            return Sentence("{tool} with exactly these arguments", {"tool": rule.tool})
        case None:
            return Sentence("{tool} with any arguments", {"tool": rule.tool})


def _narrow(subjects: Sequence[Subject], allowed: Sequence[CommandPattern]) -> list[Pattern]:
    """One pattern that covers everything that the call is about; none where one cannot."""
    paths = [each.path for each in subjects if isinstance(each, PathSubject)]
    hosts = {each.host.lower() for each in subjects if isinstance(each, HostSubject)}
    lines = {each.line for each in subjects if isinstance(each, CommandSubject)}
    kinds = sum(map(bool, (paths, hosts, lines)))
    if kinds != 1:
        return []
    if paths:
        folders = {path.rpartition("/")[0] for path in paths}
        return [PathPattern(prefix=each) for each in folders if _is_narrow(each)] if len(folders) == 1 else []
    if hosts:
        return [HostPattern(host=each) for each in hosts] if len(hosts) == 1 else []
    return _of_line(lines.pop(), allowed) if len(lines) == 1 else []


def _is_narrow(folder: str) -> bool:
    parts = path_parts(folder)
    # The root of a disk is everything.
    return bool(parts) and parts != (folder[:2],)


def _of_line(text: str, allowed: Sequence[CommandPattern]) -> list[Pattern]:
    """About the one command that is missing; of several that are, none can be allowed by one rule."""
    line = parsed(text)
    if not line.is_plain:
        return []
    missing = [each for each in line.written if not is_command_covered(each, allowed)]
    return _of_command(missing[0]) if len(missing) == 1 else []


def _of_command(command: Command) -> list[Pattern]:
    while command.is_transparent and len(command.carries) == 1:
        command = command.carries[0]
    literal = tuple(each for each in command.words if each is not None)
    exact = [CommandPattern(words=literal, exact=True)] if len(literal) == len(command.words) else []
    first = _first_words(command)
    return [*([CommandPattern(words=first)] if first else []), *exact]


def _first_words(command: Command) -> tuple[str, ...]:
    """As many words as say what it does; none where they do not."""
    first = _saying_words(command)
    return () if reaches_further(command.words, command.sources, len(first)) else first


def _saying_words(command: Command) -> tuple[str, ...]:
    name = command.words[0]
    if name is None or command.carries or unwrapped(command.words) is not None:
        return ()
    if _is_python(name) and command.words[1:2] == ("-m",) and (command.words[2:3] or ("",))[0] in _MODULES_THAT_SAY:
        return tuple(each for each in command.words[:3] if each is not None)
    if _does_anything(name):
        return ()
    if program_name(name) not in _WITH_SUBCOMMANDS:
        return (name,)
    wanted = 3 if command.words[1:2] and command.words[1] in _START_WHAT_FOLLOWS else 2
    first = tuple(each for each in command.words[:wanted] if each is not None and not each.startswith("-"))
    says = len(first) == wanted and first[1] not in _START_ANYTHING and not _does_anything(first[-1])
    return first if says else ()


def _does_anything(word: str) -> bool:
    return program_name(word) in _DO_ANYTHING | SHELLS or _is_python(word)


def _is_python(word: str) -> bool:
    return program_name(word).startswith("python")
