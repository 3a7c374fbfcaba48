"""A rule that denies a command also catches it inside of other commands."""

import pytest

from desktop_agent.permissions.rule_matching import CallFacts, Match, match_restriction
from desktop_agent.types.permissions import CommandPattern, CommandSubject, Rule, RuleEffect
from desktop_agent.types.tool_calls import Effect
from tests.desktop_agent.permissions.conftest import open_tool

NO, MAYBE, YES = Match.NO, Match.MAYBE, Match.YES


def match_of(line: str, *words: str) -> Match:
    rule = Rule(effect=RuleEffect.DENY, tool="*", pattern=CommandPattern(words=words or ("git", "push")))
    return match_restriction(rule, CallFacts(open_tool([Effect.EXECUTE]), "", (CommandSubject(line),)))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Programs that are known to start another one.
        ("env A=1 git push", YES),
        ("env -u A nice -n 5 git push", YES),
        ("timeout --signal=KILL 5 git push", YES),
        ("nice -19 git push", YES),
        ("nohup git push", YES),
        ("stdbuf -oL git push", YES),
        ("time -p git push", YES),
        ("sudo -u me git push", YES),
        ("xargs git push", YES),
        ("echo push | xargs git", MAYBE),
        ("find . -exec git push ';'", YES),
        ("sh -c 'git push'", YES),
        ("watch git push", YES),
        # Programs whose own arguments are not all known.
        ("env -S 'git push'", MAYBE),
        ("env --split-string='git push'", MAYBE),
        ("timeout --unknown=1 5 git push", YES),
        ("xargs -I% git push %", YES),
        ("xargs --unknown git push", YES),
        ("flock /tmp/lock git push", YES),
        ("flock /tmp/lock -c 'git push'", YES),
        ("strace git push", YES),
        ("strace -f git push", YES),
        ("su me -c 'cd x; git push'", YES),
        ("setarch x86_64 git push", YES),
        ("zsh -c 'git push'", YES),
        # Programs that start what follows a subcommand.
        ("uv run git push", YES),
        ("uv run -- git push", YES),
        ("uv run nice git push", MAYBE),
        ("uv run --with x git push", MAYBE),
        ("poetry run git -C x push", MAYBE),
        ("npm exec git push", YES),
        ("bundle exec git push", YES),
        ("npx git push", YES),
        ("npx -c 'git push'", YES),
        ("npx --call 'ls && git push'", YES),
        ("npx -p x git push", MAYBE),
        # Programs of which it is unknown what they do with their arguments.
        ("ssh host git push", MAYBE),
        ("ssh host 'git push'", MAYBE),
        ("docker run --rm image git push", MAYBE),
        ("conda run -n x git push", MAYBE),
        ("strange git push", MAYBE),
        ('strange "git push $x"', MAYBE),
        ("strange -c 'git push'", MAYBE),
        ("npx x 'git push'", MAYBE),
        ("flock /tmp/lock 'git push'", MAYBE),
        ("tmux new -d 'git push'", MAYBE),
        ("python3 -c \"import os; os.system('git push')\"", MAYBE),
        ("python3 -c \"import subprocess as s; s.run(['git', 'push'])\"", MAYBE),
        ("awk 'BEGIN { system(\"git push\") }'", MAYBE),
        ("git -c alias.x='!git push' x", MAYBE),
        ("git submodule foreach git push", MAYBE),
        ("git rebase --exec 'git push' main", MAYBE),
        ("git bisect run git push", MAYBE),
        ("rg --pre 'git push' x", MAYBE),
        # Words that are only printed or searched for.
        ("echo git push", NO),
        ("grep -r 'git push' docs", NO),
        ("rg 'git push'", NO),
        ("git commit -m 'Say when to git push'", NO),
        ("uv run", NO),
        ("find . -exec ';'", MAYBE),
        ("git log --grep 'git push'", NO),
        ("git status", NO),
        ("uv run pytest", NO),
        ("make push", NO),
    ],
)
def test_a_command_is_found_in_the_words_of_another(line: str, expected: Match) -> None:
    assert match_of(line) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("uv run curl x", YES),
        ("npx curl", YES),
        ("docker exec c curl x", MAYBE),
        ("ssh host 'cd x; curl'", MAYBE),
        ("man curl", NO),
        ('strange "$curl"', NO),
    ],
)
def test_a_command_of_a_single_word_is_found_in_the_words_of_another(line: str, expected: Match) -> None:
    assert match_of(line, "curl") is expected


def test_many_words_before_it_and_in_it_hide_nothing() -> None:
    assert match_of(f"strange {'x ' * 5000} git push") is MAYBE
    assert match_of(f"strange git {'-x ' * 5000} push") is MAYBE
    assert match_of(f"strange {'git ' * 4000} push") is MAYBE
