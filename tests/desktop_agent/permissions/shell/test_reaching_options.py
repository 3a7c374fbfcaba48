import pytest

from desktop_agent.permissions.shell.commands import parsed
from desktop_agent.permissions.shell.reaching_options import reaches_further

LINES = [
    ("sort -u a", 1, False),
    ("sort -uo b a", 1, True),
    ("sort --comp=x a", 1, True),
    ("sort -- -o", 1, False),
    ("sort *", 1, True),
    ("sort ./*", 1, False),
    ("sort src/$x", 1, True),
    ("/usr/bin/sort -o b", 1, True),
    ("sort -o b", 3, False),
    ("find . -name x", 1, False),
    ("find . -delete", 1, True),
    ("git push origin main", 2, False),
    ("git push -u origin main", 2, False),
    ("git push -fu origin main", 2, True),
    ("git push origin +main", 2, True),
    ("git push --follow-tags", 2, False),
    ("git log --oneline", 2, False),
    ("git log --output=x", 2, True),
    ("git log --textconv", 2, True),
    ("git log --decorate-refs -- --output=x", 2, True),
    ("git log -- --output=x", 2, False),
    ("git log --stat -- src/*.py", 2, False),
    ("git log --stat -- *.py", 2, True),
    ("sort -T -- -o b", 1, True),
    ("sort a -- -o b", 1, False),
    ("git diff HEAD~1..HEAD -- src/a", 2, False),
    ("git diff main...topic", 2, False),
    ("git diff --stat=80 --word-diff", 2, False),
    ("git diff -- a ../b", 2, True),
    ("git diff /a b", 2, True),
    ("git diff ~/a b", 2, True),
    ("git diff a/../../b c", 2, True),
    ("git show HEAD:../b", 2, False),
    ("git blame -L 1,5 a", 2, False),
    ("git blame -S b a", 2, True),
    ("git add -A .", 2, False),
    ("git add -fA .", 2, True),
    ("git commit -am 'Mend -F'", 2, False),
    ("git commit -am x -- a", 2, False),
    ("git commit -m -- --amend", 2, True),
    ("git commit -m --amend", 2, True),
    ("git commit --no-edit -m x", 2, False),
    ("git -C x log", 1, True),
    ("git $x", 1, True),
    ("git log", 1, False),
    ("git push --force", 1, True),
    ("ruff check --fix src", 2, False),
    ("ruff check -o x", 2, True),
    ("python3 -m ruff check --output-file=x", 3, True),
    ("python3 -m pytest -o a=b", 3, False),
    ("git", 1, False),
    ("ls *", 1, False),
]


@pytest.mark.parametrize(("line", "seen", "reaches"), LINES)
def test_options_that_do_what_the_first_words_do_not_say(line: str, seen: int, reaches: bool) -> None:
    (command,) = parsed(line).written
    assert reaches_further(command.words, command.sources, seen) is reaches
