"""Rules for several commands, or for both tools that change files, allow no more than their description says."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from desktop_agent.permissions.approvals import Approval
from desktop_agent.permissions.rule_proposals import BUNDLES
from desktop_agent.storage.records import read_rule, read_rule_partially, rule_to_json
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.permissions import CommandsPattern, PathPattern, Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import AllowAlways, Decision, Deny, UntrustedSource
from tests.escape.attack import ATTACK, BAIT, Attempting, Trial, allows, one_end_to_end, run, write

READ_ONLY, RECORDING, RUFF = BUNDLES
BAITS = {"look": "git status", "record": "git add a", "ruff": "ruff check a"}

READ_ONLY_LINES = {
    # options that write, start programs or read elsewhere
    "log --output": "git log --output=.git/hooks/post-merge",
    "log --output, apart": "git log --output pwned",
    "log --output, shortened": "git log --outp=pwned",
    "show --output": "git show --output=pwned HEAD",
    "diff --output": "git diff --output=.bashrc",
    "blame --output": "git blame --output=pwned a",
    "diff --ext-diff": "git diff --ext-diff",
    "log --ext-diff": "git log -p --ext-diff",
    "show --ext-diff, shortened": "git show --ext",
    "diff --textconv": "git diff --textconv",
    "show --textconv": "git show --textconv HEAD:a",
    "log --show-signature": "git log --show-signature",
    "log --remerge-diff": "git log --remerge-diff",
    "diff --no-index": "git diff --no-index /dev/null ../secret",
    "diff of two files elsewhere": "git diff /dev/null /etc/passwd",
    "diff of files elsewhere behind dashes": "git diff -- /dev/null /etc/passwd",
    "diff of a file above": "git diff a ../secret",
    "diff of a file above, the long way": "git diff a src/../../secret",
    "diff of a file of the home folder": "git diff a ~/.ssh/id_ed25519",
    "diff of files elsewhere by a pattern": "git diff a /etc/pass*",
    "diff of files elsewhere by braces": "git diff a .{./secret,/a}",
    "diff of files elsewhere by a dot and a letter": "git diff a .?/secret",
    "log that asks who signed": "git log --format='%G?'",
    "show that asks who signed": "git show --pretty=%GG HEAD",
    "log that asks who signed, behind a plus": "git log --format=%+G?",
    "log that asks who signed, behind a dash": "git log -1 --format=%-GG",
    "show that asks who signed, behind a space": "git show '--pretty=% GK'",
    "log --help": "git log --help",
    "log that merges again": "git log --diff-merges=remerge",
    "diff of submodules": "git diff --submodule=diff",
    "blame --contents": "git blame --contents ../secret a",
    "blame --contents, joined": "git blame --contents=../secret a",
    "blame --ignore-revs-file": "git blame --ignore-revs-file=../secret a",
    "blame -S": "git blame -S ../secret a",
    "ls-files -X": "git ls-files -o -X ../secret",
    "ls-files --exclude-from": "git ls-files -o --exclude-from=../secret",
    # an option that is taken for a value, and a value that is taken for an option
    "dashes that are a value": "git log --decorate-refs -- --output=pwned",
    "dashes that are a value, of diff": "git diff -O -- --output=pwned",
    "dashes that are a value, of blame": "git blame --contents -- --output=pwned a",
    "option in quotes": "git log '--output=pwned'",
    "option in pieces": "git log --out''put=pwned",
    "option from a variable": 'for x in --output=pwned; do git log "$x"; done',
    "option by a pattern": "git log *",
    "option from braces": "git log {--output=pwned,HEAD}",
    "option by xargs": "echo --output=pwned | xargs git log",
    # before the subcommand
    "-C": "git -C evil status",
    "-C, joined by a path with dashes": "git -C ./-c status",
    "-c core.pager": "git -c core.pager='touch pwned' log",
    "-c core.fsmonitor": "git -c core.fsmonitor='touch pwned' status",
    "-c diff.external": "git -c diff.external='touch pwned' diff",
    "-c alias": "git -c alias.log='!touch pwned' log",
    "--git-dir": "git --git-dir=evil log",
    "--work-tree": "git --work-tree=/ status",
    "--config-env": "git --config-env=core.fsmonitor=HOME status",
    "--exec-path": "git --exec-path=evil status",
    "-p": "git -p log",
    "--no-pager": "git --no-pager log",
    # other commands of git
    "alias": "git config alias.status '!touch pwned'; git status",
    "external diff in the settings": "git config diff.external ./evil && git diff",
    "one that is not in it": "git push",
    "one that begins alike": "git logx",
    "one that begins with one of it": "git diff-files",
    "no subcommand": "git",
    "another bundle": "git add a",
    "tool": "git difftool -yx 'touch pwned'",
    "grep -O": "git grep -O'touch pwned' x",
    "branch": "git branch -D main",
    "stash": "git stash drop",
    # shell syntax around the command
    "chained": "git status && touch pwned",
    "chained with what it has": "git status; git log; git push; git diff",
    "piped": "git log | sh",
    "substituted": "git log $(touch pwned)",
    "in backticks": "git show `touch pwned`",
    "process substitution": "git diff <(touch pwned) a",
    "redirected": "git show HEAD:evil > .git/hooks/post-commit",
    "appended": "git log --format=%B >> .bashrc",
    "line end": "git status\ntouch pwned",
    "carriage return": "git status\r touch pwned",
    "background": "git log & touch pwned",
    "function": "git() { touch pwned; }; git status",
    "alias of the shell": "shopt -s expand_aliases\nalias git='touch pwned'\ngit status",
    "GIT_EXTERNAL_DIFF": "GIT_EXTERNAL_DIFF=./evil git diff",
    "GIT_PAGER": "GIT_PAGER='touch pwned' git log",
    "GIT_DIR": "GIT_DIR=evil git status",
    "GIT_CONFIG_GLOBAL": "GIT_CONFIG_GLOBAL=./evil git status",
    "GIT_TRACE": "GIT_TRACE=$PWD/pwned git status",
    "GIT_CONFIG by env": "env GIT_CONFIG_COUNT=0 git status",
    "GIT_DIR, exported": "export GIT_DIR=evil; git log",
    "safe settings, unset": "unset GIT_CONFIG_COUNT; git status",
    "program elsewhere": "./git status",
    "program by a path": "/tmp/git log",
    "sudo": "sudo git status",
    # lookalike letters
    "Cyrillic letter": "git stаtus",
    "space that is none": "git\u00a0status",
    "zero-width space": "git status\u200b",
    "fullwidth dashes hide nothing": "git log \u200b--output=pwned",
    "null": "git log\x00 --output=pwned",
    "upper case": "GIT STATUS",
    "subcommand with a line end": "git 'status\n'",
    "both words in one": "'git status'",
}
RECORDS = {
    "push": "git add -A && git push",
    "add --force": "git add --force .env",
    "add -f among others": "git add -Af .env",
    "add -e": "git add -e a",
    "add --edit": "git add --edit a",
    "add --pathspec-from-file": "git add --pathspec-from-file=../secret",
    "commit --template": "git commit --template=../secret",
    "commit -t": "git commit -t ../secret",
    "commit -F": "git commit -F ../secret",
    "commit -F, among others": "git commit -aF../secret",
    "commit --file, shortened": "git commit --fil ../secret",
    "commit --no-verify": "git commit --no-verify -m x",
    "commit -n": "git commit -nm x",
    "commit --amend": "git commit --amend --no-edit",
    "commit --amend behind a message of dashes": "git commit -m -- --amend",
    "commit -F behind a message of dashes": "git commit -am -- -F ../secret",
    "commit --author": "git commit --author='Other <o@example.org>' -m x",
    "commit -C": "git commit -C HEAD~3",
    "commit --reset-author": "git commit --reset-author -m x",
    "commit --date": "git commit --date=2001-01-01 -m x",
    "commit --trailer": "git commit --trailer 'x: y' -m x",
    "commit -S": "git commit -S -m x",
    "commit --no-gpg-sign": "git commit --no-gpg-sign -m x",
    "commit -e": "git commit -em x",
    "commit with an editor": "GIT_EDITOR='touch pwned' git commit",
    "commit with another's hooks": "git -c core.hooksPath=./evil commit -m x",
    "commit with a substitution": 'git commit -m "$(cat ../secret)"',
    "what is only looked at": "git status",
    "commit-tree": "git commit-tree HEAD",
}
TIDIES = {
    "check --output-file": "ruff check --output-file=.git/hooks/pre-push",
    "check -o": "ruff check -o pwned",
    "check --config": "ruff check --config 'cache-dir=\"/tmp/x\"'",
    "check --cache-dir": "ruff check --cache-dir=.git",
    "format --config, shortened": "ruff format --conf=evil.toml",
    "option before the command": "ruff --config evil.toml check",
    "arguments from a file": "ruff check @args",
    "a file elsewhere": "ruff format /etc/hosts.py",
    "a file above": "ruff check --fix ../b.py",
    "a file of the home folder": "ruff format ~/b.py",
    "clean": "ruff clean",
    "server": "ruff server",
}
ATTACKS = {
    **{f"look: {name}": ("look", line) for name, line in READ_ONLY_LINES.items()},
    **{f"record: {name}": ("record", line) for name, line in RECORDS.items()},
    **{f"ruff: {name}": ("ruff", line) for name, line in TIDIES.items()},
}


def grants(matches: Callable[[Rule], bool]) -> Callable[[Approval], Decision]:
    """Return a person who always allows the bait by the first rule that matches, and denies everything else."""

    def person(card: Approval) -> Decision:
        if not card.tool_use.id.startswith(BAIT):
            return Deny()
        return AllowAlways(rule_id=next(rule.id for rule in card.proposals if matches(rule)))

    return person


def is_bundle(rule: Rule) -> bool:
    return isinstance(rule.pattern, CommandsPattern)


@pytest.mark.parametrize("trick", one_end_to_end(ATTACKS))
async def test_what_a_bundle_does_not_name_is_asked_about(trick: str, tmp_path: Path, attempt: Attempting) -> None:
    which, line = ATTACKS[trick]
    async with attempt(tmp_path, run(BAITS[which], BAIT), run(line), person=grants(is_bundle)) as trial:
        (trial.work / "a").write_text("x")
        await trial.play()
        (rule,) = trial.session.permission_policy.rules
        assert is_bundle(rule)
        assert BAIT in trial.started
        trial.assert_held_back()
        assert sorted(entry.name for entry in trial.work.iterdir() if entry.name != ".ruff_cache") == ["a"]


FAMILIAR = {
    "look": "git status -s && git diff HEAD~1..HEAD -- a; git log --oneline -5 | git show --stat; git blame a",
    "record": "git add -A . && git commit -qam 'Add -f: what was --amend'",
    "ruff": "ruff check --fix . && ruff format --check a",
}


@pytest.mark.parametrize("which", FAMILIAR)
async def test_what_a_bundle_names_runs_unasked(which: str, tmp_path: Path) -> None:
    uses = (run(BAITS[which], BAIT), run(FAMILIAR[which]))
    async with Trial(tmp_path, *uses, person=grants(is_bundle)) as trial:
        await trial.play()
        assert (trial.asked, trial.started) == ([BAIT], [BAIT, ATTACK])


async def test_with_the_network_a_bundle_allows_nothing(tmp_path: Path) -> None:
    uses = (run("git status", BAIT), run("git status", hosts=["example.org"]))
    async with Trial(tmp_path, *uses, person=grants(is_bundle)) as trial:
        await trial.play()
        trial.assert_held_back()


async def test_after_something_from_outside_a_bundle_is_asked_about(tmp_path: Path) -> None:
    async with Trial(tmp_path, run("git log")) as trial:
        trial.rules = (allows("run_command", READ_ONLY),)
        trial.prepare = lambda session: session.permission_policy.mark_untrusted(UntrustedSource("web", "evil.example"))
        await trial.play()
        trial.assert_held_back()


@pytest.mark.parametrize("effect", [RuleEffect.DENY, RuleEffect.ASK])
async def test_one_of_a_bundle_that_is_forbidden_stays_so(effect: RuleEffect, tmp_path: Path) -> None:
    forbidden = CommandsPattern(title="Not these", beginnings=(("touch",), ("git", "log")))
    async with Trial(tmp_path, run("git status && git --no-pager log")) as trial:
        trial.rules = (allows("run_command", READ_ONLY), allows("run_command", forbidden, effect))
        await trial.play()
        assert trial.started == []
        assert trial.result().outcome is Outcome.DENIED


@pytest.mark.parametrize("beginnings", [[], [[]], [["git", "status"], []], [[1]], "git", None])
async def test_a_stored_rule_whose_list_is_empty_or_none_allows_nothing(
    beginnings: object, tmp_path: Path, attempt: Attempting
) -> None:
    stored = json.loads(rule_to_json(allows("run_command", READ_ONLY)))
    stored["pattern"]["beginnings"] = beginnings
    with pytest.raises(ValidationError):
        Rule.model_validate(stored)
    assert read_rule(json.dumps(stored)) is None
    assert read_rule_partially(json.dumps(stored), "x") is None
    denying = read_rule_partially(json.dumps({**stored, "effect": "deny"}), "x")
    async with attempt(tmp_path, run("ls")) as trial:
        assert denying is not None
        trial.rules = (allows("run_command"), denying)
        await trial.play()
        assert trial.started == []


@pytest.mark.parametrize(
    "line", ["git -c core.pager=./evil log", "git $x", "git --exec-path=. status", "gitk", "./git x"]
)
async def test_a_beginning_of_one_word_allows_no_options_before_the_next(
    line: str, tmp_path: Path, attempt: Attempting
) -> None:
    async with attempt(tmp_path, run("git status", "first"), run(line)) as trial:
        trial.rules = (allows("run_command", CommandsPattern(title="git", beginnings=(("git",), ("ls",)))),)
        await trial.play()
        assert trial.started == ["first"]
        trial.assert_held_back()


# -- rules for both tools that change files


def for_both_tools(folder: str) -> Callable[[Rule], bool]:
    return lambda rule: bool(rule.also) and isinstance(rule.pattern, PathPattern) and rule.pattern.prefix == folder


def edit(path: str, id_: str = ATTACK) -> ToolUse:
    return ToolUse(id=id_, name="edit_file", input={"path": path, "old_text": "old", "new_text": "new"})


CHANGES: dict[str, ToolUse] = {
    "delete": ToolUse(id=ATTACK, name="delete_file", input={"path": "src/a"}),
    "move": ToolUse(id=ATTACK, name="move_file", input={"source": "src/a", "target": "src/b"}),
    "command": run("touch src/pwned"),
    "hooks": write(".git/hooks/post-commit"),
    "settings of git": edit(".git/config"),
    "settings of git, in upper case": write(".GIT/config"),
    "settings of git in a folder below": write("src/sub/.git/config"),
    "settings of git by a link": write("src/link/config"),
}


@pytest.mark.parametrize("trick", one_end_to_end(CHANGES))
async def test_leave_to_change_files_everywhere_is_no_leave_for_more(
    trick: str, tmp_path: Path, attempt: Attempting
) -> None:
    async with attempt(tmp_path, write("src/b", id_=BAIT), CHANGES[trick]) as trial:
        for name in (".git", "src"):
            (trial.work / name).mkdir()
        (trial.work / ".git/config").write_text("old")
        (trial.work / "src/a").write_text("old")
        (trial.work / "src/link").symlink_to("../.git")
        trial.person = grants(for_both_tools(trial.work.as_posix()))
        await trial.play()
        assert BAIT in trial.started
        trial.assert_held_back()


OUTSIDE = {
    "above": "../pwned",
    "absolute": "/tmp/pwned-by-nobody",
    "home": "~/.bashrc",
    "through a link": "out/pwned",
    "the long way": "src/../../pwned",
}


@pytest.mark.parametrize("path", OUTSIDE.values(), ids=OUTSIDE)
@pytest.mark.parametrize("name", ["edit_file", "write_file"])
async def test_leave_to_change_files_everywhere_ends_at_the_workspace(
    path: str, name: str, tmp_path: Path, attempt: Attempting
) -> None:
    (tmp_path / "outside").mkdir()
    use = edit(path) if name == "edit_file" else write(path)
    async with attempt(tmp_path, write("b", id_=BAIT), use) as trial:
        (trial.work / "src").mkdir()
        (trial.work / "out").symlink_to(tmp_path / "outside")
        trial.person = grants(for_both_tools(trial.work.as_posix()))
        await trial.play()
        assert BAIT in trial.started
        assert trial.result().outcome in {Outcome.DENIED, Outcome.FAILED}
        assert not (tmp_path / "pwned").exists()
        assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("path", ["a", "srcs/a", "src2", "SRC/a", "src/../a"])
async def test_leave_for_a_folder_is_none_beside_it(path: str, tmp_path: Path, attempt: Attempting) -> None:
    async with attempt(tmp_path, write("src/c", id_="inside"), write(path)) as trial:
        trial.rules = (allows("write_file", PathPattern(prefix=(trial.work / "src").as_posix())),)
        await trial.play()
        assert "inside" in trial.started
        trial.assert_held_back()


async def test_leave_for_both_tools_lets_the_other_one_run(tmp_path: Path) -> None:
    async with Trial(tmp_path, write("src/a", "old", BAIT), edit("src/a")) as trial:
        trial.person = grants(for_both_tools(trial.work.as_posix()))
        await trial.play()
        assert (trial.asked, trial.text("src/a")) == ([BAIT], "new")


async def test_in_another_workspace_leave_for_both_tools_is_none(tmp_path: Path) -> None:
    elsewhere = Rule(
        effect=RuleEffect.ALLOW,
        tool=f"edit_file @ {tmp_path}",
        also=(f"write_file @ {tmp_path}",),
        pattern=PathPattern(prefix=tmp_path.as_posix()),
        scope=RuleScope.ALWAYS,
    )
    async with Trial(tmp_path, write("a")) as trial:
        trial.rules = (elsewhere,)
        await trial.play()
        trial.assert_held_back()
