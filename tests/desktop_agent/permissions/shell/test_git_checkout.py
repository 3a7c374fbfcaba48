"""Lines that check out files of a repository may write files that they do not name."""

import pytest

from desktop_agent.permissions.shell.git_checkout import is_checkout

LINES = {
    "git checkout main": True,
    "cd a && git pull": True,
    "A=b /usr/bin/git stash; ls": True,
    "gh pr checkout 5": True,
    "true\n git switch x": True,
    "git -C a -c x.y=z --git-dir b --no-pager reset --hard": True,
    "time hg update": True,
    "sh -c 'jj new'": True,
    'git checkout "$(cat branch)"': True,
    "for each in a b; do git merge $each; done": True,
    "python3 git": False,
    "echo git": False,
    "make digit": False,
    "./git-helper x": False,
    "npm install git": False,
    "gh": False,
    "git -C": False,
    "git status": False,
    "git -c checkout status": False,
    "A=b": False,
    "true $(": False,
    # Commands that only read may stand beside any command that a rule allows.
    "python3 -m unittest; git stash list": False,
    "python3 -m unittest; git worktree list; time git submodule status": False,
    # Texts and comments.
    "python3 -m unittest -q #;git stash": False,
    "python3 -m unittest -k 'x;git checkout y' -k test": False,
    "python3 -m unittest -k 'x\nhg ' -k test": False,
    "python3 -m unittest -k '(hg)' -k '|sl '": False,
    "cat << 'end'\ngit stash\nend": False,
    # Lengths at which a parser that backtracks would not end.
    f"echo 'x;git {'-C ' * 6_000}'": False,
    f"git {'-C ' * 6_000}": False,
    "echo a" + "\n" * 19_000 + "echo b": False,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_which_lines_check_out(line: str) -> None:
    assert is_checkout(line, "/work") is LINES[line]
