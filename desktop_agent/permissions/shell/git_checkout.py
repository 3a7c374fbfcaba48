"""Whether a line checks out files: git, or another version control, writes over files of the working tree.

Any file that the repository tracks may be written then, whether the line names it or not.
"""

from collections.abc import Sequence

from desktop_agent.permissions.shell.commands import parsed
from desktop_agent.permissions.shell.nodes import listed
from desktop_agent.permissions.shell.read_only_commands import is_read_only_beside_others
from desktop_agent.permissions.shell.wrappers import program_name

_OF_GIT = listed(
    "checkout switch restore reset stash pull merge rebase am apply revert cherry-pick clone worktree submodule bisect "
    "rm mv clean read-tree checkout-index"
)
_OF_HOSTS = listed("checkout clone sync")
# Options of git before its subcommand whose value is the next word.
_VALUED = listed("-C -c --git-dir --work-tree --namespace --config-env")


def is_checkout(line: str, workspace: str) -> bool:
    """Whether a command that stands in the line, and not in its texts and comments, checks out files.

    So too in a line that is not understood: of that a person was asked, and has seen its commands.
    """
    return any(
        _is_checkout(each.words) and not is_read_only_beside_others(each, workspace) for each in parsed(line).commands
    )


def _is_checkout(words: Sequence[str | None]) -> bool:
    name = program_name(words[0] or "") if words else ""
    if name in {"gh", "glab"}:
        return words[2:3] != () and words[2] in _OF_HOSTS
    if name != "git":
        return name in {"jj", "hg", "sl"}
    at = 1
    while at < len(words) and (words[at] or "").startswith("-"):
        at += 2 if words[at] in _VALUED else 1
    return at < len(words) and words[at] in _OF_GIT
