"""Decide whether a line checks out files: git, or another version control, writes over files of the working tree.

Any file that the repository tracks may be written then, whether the line names it or not.
"""

from collections.abc import Sequence

from desktop_agent.permissions.shell.parser import parse_line
from desktop_agent.permissions.shell.read_only_commands import is_read_only_anywhere
from desktop_agent.permissions.shell.syntax import word_set
from desktop_agent.permissions.shell.wrappers import program_name

_GIT_CHECKOUTS = word_set(
    "checkout switch restore reset stash pull merge rebase am apply revert cherry-pick clone worktree submodule bisect "
    "rm mv clean read-tree checkout-index"
)
_HOST_CLI_CHECKOUTS = word_set("checkout clone sync")
# Options of git before its subcommand whose value is the next word.
_OPTIONS_WITH_VALUE = word_set("-C -c --git-dir --work-tree --namespace --config-env")


def is_checkout(line: str, workspace: str) -> bool:
    """Return whether a command of the line, and not of its texts and comments, checks out files.

    Also in a line that is not understood: a person was asked about that, and has seen its commands.
    """
    return any(
        _words_check_out(command.words) and not is_read_only_anywhere(command, workspace)
        for command in parse_line(line).commands
    )


def _words_check_out(words: Sequence[str | None]) -> bool:
    name = program_name(words[0] or "") if words else ""
    if name in {"gh", "glab"}:
        return words[2:3] != () and words[2] in _HOST_CLI_CHECKOUTS
    if name != "git":
        return name in {"jj", "hg", "sl"}
    index = 1
    while index < len(words) and (words[index] or "").startswith("-"):
        index += 2 if words[index] in _OPTIONS_WITH_VALUE else 1
    return index < len(words) and words[index] in _GIT_CHECKOUTS
