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
    ("git", 1, False),
    ("ls *", 1, False),
]


@pytest.mark.parametrize(("line", "seen", "reaches"), LINES)
def test_options_that_do_what_the_first_words_do_not_say(line: str, seen: int, reaches: bool) -> None:
    (command,) = parsed(line).written
    assert reaches_further(command.words, command.sources, seen) is reaches
