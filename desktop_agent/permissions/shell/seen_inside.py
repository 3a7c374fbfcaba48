"""What a command may start besides what it is known to carry, as far as the words for it stand somewhere in it.

For rules that hold back: `uv run git push` is a git push, `python -c "os.system('git push')"` may be one.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from desktop_agent.permissions.shell.commands import Command, parse_line
from desktop_agent.permissions.shell.program_names import START_AT_ONCE, START_NOTHING, START_WHAT_FOLLOWS
from desktop_agent.permissions.shell.reaching_options import has_escalating_words
from desktop_agent.permissions.shell.wrappers import OPAQUE, WRAPPERS, program_name

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
