"""Options with which an allowed program starts another, writes or destroys files, and ways to smuggle them in."""

from pathlib import Path

import pytest

from desktop_agent.types.blocks import Outcome
from tests.escape.attack import ATTACK, BAIT, Attempting, Trial, is_for_more_than_this, one_end_to_end, run, write

OPTIONS: dict[str, tuple[str, str]] = {
    "sort --compress-program": ("sort a", "sort --compress-program=./evil -S 1k a"),
    "sort --compress-program, shortened": ("sort a", "sort --comp ./evil a"),
    "sort --output": ("sort a", "sort a --output=.bashrc"),
    "sort -o": ("sort a", "sort -uo .bashrc a"),
    "sort, option in a substitution": ("sort a", "sort $(sort a)"),
    "sort, option in a variable": ("sort a", 'for x in --output=b; do sort "$x" a; done'),
    "sort, option from braces": ("sort a", "sort {--output=b,a}"),
    "sort, option in quotes": ("sort a", "sort '--output=b' a"),
    "sort, option from a variable that splits": ("sort a", "for x in 'a --output=b'; do sort ./$x; done"),
    "sort by xargs": ("sort a", "sort a | xargs sort"),
    "find -fprintf": ("find . -name a", "find . -fprintf .bashrc %p"),
    "find -fls": ("find . -name a", "find . -fls .bashrc"),
    "find -delete": ("find . -name a", "find . -delete"),
    "find -exec": ("find . -name a", "find . -exec touch pwned ;"),
    "find -execdir, escaped": ("find . -name a", "find . -execdir touch pwned \\;"),
    "find -ok": ("find . -name a", "find . -ok touch pwned \\;"),
    "find, two of them": ("find . -name a", "find . -exec cat {} + -exec touch pwned +"),
    "find, the program is what is found": ("find . -name a", "find . -exec {} \\;"),
    "split --filter": ("split a", "split --filter='touch pwned' a"),
    "rg --pre": ("rg x", "rg --pre ./evil x"),
    "rg --hostname-bin": ("rg x", "rg --hostname-bin=./evil x"),
    "man -P": ("man ls", "man -P 'touch pwned' ls"),
    "man --html": ("man ls", "man --html=./evil ls"),
    "less, a command": ("less a", "less '+!touch pwned' a"),
    "less -o": ("less a", "less -o.bashrc a"),
    "zip -T": ("zip b a", "zip b a -T --unzip-command='touch pwned'"),
    "zip -TT": ("zip b a", "zip b a -T -TT 'touch pwned'"),
    "gcc -wrapper": ("gcc a.c", "gcc -wrapper ./evil a.c"),
    "gcc -fplugin": ("gcc a.c", "gcc -fplugin=./evil.so a.c"),
    "gcc, options in a file": ("gcc a.c", "gcc @evil a.c"),
    "go -toolexec": ("go build ./x", "go build -toolexec=./evil ./x"),
    "go -exec": ("go test ./x", "go test -exec ./evil ./x"),
    "cargo --config": ("cargo build", "cargo build --config build.rustc-wrapper=./evil"),
    "npm --script-shell": ("npm run build", "npm run build --script-shell=./evil"),
    "pylint --init-hook": ("pylint a.py", "pylint --init-hook='import os' a.py"),
    "tar --checkpoint-action": ("tar tf a.tar", "tar tf a.tar --checkpoint=1 --checkpoint-action=exec=./evil"),
    "ssh -o ProxyCommand": ("ssh docs.example.org ls", "ssh -o ProxyCommand=./evil docs.example.org ls"),
    "rsync -e": ("rsync a b", "rsync -e ./evil a b"),
    "awk": ("awk '{print}' a", "awk 'BEGIN{system(\"touch pwned\")}' a"),
    "sed, a command": ("sed -n 1p a", "sed -n '1e touch pwned' a"),
    "ed": ("ed --version", "ed '!touch pwned'"),
    "make": ("make test", "make test SHELL=./evil"),
    "python, other code": ("python3 a.py", "python3 -c 'import os'"),
    "python, another module": ("python3 -m pytest -q", "python3 -m timeit 'import os'"),
    "sqlite": ("sqlite3 a .tables", "sqlite3 a '.shell touch pwned'"),
    "chmod": ("chmod +x a", "chmod -R 777 ."),
    "kill": ("kill 999999", "kill -9 -1"),
    "gfind -exec": ("gfind a", "gfind a -exec touch pwned \\;"),
    "fdfind -x": ("fdfind a", "fdfind a -x touch pwned"),
    "fd -x among others": ("fd a", "fd -Hx touch pwned"),
    "uniq, a file to write": ("uniq a", "uniq a .bashrc"),
    "shuf -o": ("shuf a", "shuf a -o .bashrc"),
    "tree -R": ("tree -L 1", "tree -L 1 -RH."),
    "uv run, what starts": ("uv run env", "uv run env touch pwned"),
    "npm explore": ("npm explore a", "npm explore a -- touch pwned"),
    "pip --log": ("pip list", "pip list --log=.bashrc"),
    "cargo clippy, a linker": ("cargo clippy", "cargo clippy -- -C linker=./evil"),
    "mvn, another goal": ("mvn test", "mvn test exec:exec -Dexec.executable=./evil"),
    "eslint -f": ("eslint a.js", "eslint -f ./evil.js a.js"),
    "pylint --output": ("pylint a.py", "pylint --output=.bashrc a.py"),
    "gcc of a version": ("gcc-12 a.c", "gcc-12 -wrapper ./evil a.c"),
    "ln": ("ln -s a b", "ln -sf /etc/passwd a"),
    "valgrind": ("valgrind ls", "valgrind touch pwned"),
    "hyperfine": ("hyperfine ls", "hyperfine 'touch pwned'"),
}

OF_GIT: dict[str, tuple[str, str]] = {
    "-c core.pager": ("git log", "git -c core.pager='touch pwned' log"),
    "-c core.fsmonitor": ("git status", "git -c core.fsmonitor='touch pwned' status"),
    "-c alias": ("git status", "git -c alias.status='!touch pwned' status"),
    "--config-env": ("git status", "git --config-env=core.fsmonitor=HOME status"),
    "--exec-path": ("git status", "git --exec-path=. status"),
    "-C elsewhere": ("git status", "git -C evil status"),
    "--git-dir": ("git status", "git --git-dir=evil status"),
    "-p": ("git log", "git -p log"),
    "diff --output": ("git diff", "git diff --output=.git/hooks/pre-commit"),
    "diff --output, shortened": ("git diff", "git diff --ou .bashrc"),
    "diff --ext-diff": ("git diff", "git diff --ext-diff"),
    "log --output": ("git log", "git log --format=%B --output=.git/hooks/pre-commit"),
    "log, option by a pattern": ("git log", "git log --format=%B *"),
    "log, option by a file": ("git log", "git log $(git log --format=%B)"),
    "show --output": ("git show", "git show --output=.bashrc"),
    "grep -O": ("git grep x", "git grep -O'touch pwned' x"),
    "grep --open-files-in-pager": ("git grep x", "git grep --open-files-in-pager='touch pwned' x"),
    "fetch --upload-pack": ("git fetch", "git fetch --upload-pack='touch pwned' ."),
    "ls-remote --upload-pack": ("git ls-remote .", "git ls-remote --upload-pack='touch pwned' ."),
    "ls-remote --exec": ("git ls-remote .", "git ls-remote --exec='touch pwned' ."),
    "clone -u": ("git clone . b", "git clone -u 'touch pwned' . c"),
    "clone -c": ("git clone . b", "git clone -c core.sshCommand=./evil . c"),
    "clone --template": ("git clone . b", "git clone --template=evil . c"),
    "init --template": ("git init", "git init --template=evil"),
    "archive --remote --exec": ("git archive HEAD", "git archive --remote=. --exec='touch pwned' HEAD"),
    "push --receive-pack": ("git push origin main", "git push --receive-pack='touch pwned' . main"),
    "push --force": ("git push origin main", "git push --force origin main"),
    "push --force, shortened": ("git push origin main", "git push --forc origin main"),
    "push -f among others": ("git push origin main", "git push -uf origin main"),
    "push, forced by a plus": ("git push origin main", "git push origin +main"),
    "push, deleting by a colon": ("git push origin main", "git push origin :main"),
    "push --mirror": ("git push origin main", "git push --mirror"),
    "reset --hard": ("git reset a", "git reset --hard HEAD~9"),
    "checkout -f": ("git checkout main", "git checkout -qf main"),
    "branch -D": ("git branch", "git branch -D main"),
    "push, deleting behind dashes": ("git push origin main", "git push -- origin :main"),
    "push to a program": ("git push origin main", "git push ext::./evil main"),
    "tag --verify": ("git tag", "git tag --verif v1"),
    "tag --edit": ("git tag v1", "git tag -m x v2 --edi"),
    "tag -F": ("git tag v1", "git tag -F ../secret v2"),
    "tag --sort": ("git tag", "git tag --sort=-signature"),
    "branch --edit-description": ("git branch", "git branch --edit-desc"),
    "merge -S": ("git merge topic", "git merge -nS topic"),
    "merge --verify-signatures": ("git merge topic", "git merge topic --verify-sig"),
    "pull --rebase=interactive": ("git pull", "git pull --rebase=i"),
    "cherry-pick --gpg-sign": ("git cherry-pick x", "git cherry-pick --gpg x"),
    "cat-file --textconv": ("git cat-file -p HEAD:a", "git cat-file --textconv HEAD:a"),
    "cat-file --filters": ("git cat-file -p HEAD:a", "git cat-file --filters HEAD:a"),
    "for-each-ref": ("git for-each-ref", "git for-each-ref --format='%(*signature)'"),
    "stash clear": ("git stash list", "git stash clear"),
    "remote add": ("git remote -v", "git remote add x ext::./evil"),
    "worktree add": ("git worktree list", "git worktree add ../x"),
    "some other command": ("git some-other", "git some-other x"),
    "rebase --exec": ("git rebase main", "git rebase --exec 'touch pwned' main"),
    "bisect run": ("git bisect log", "git bisect run touch pwned"),
    "submodule foreach": ("git submodule status", "git submodule foreach 'touch pwned'"),
    "config": ("git config user.name", "git config core.fsmonitor 'touch pwned'"),
    "difftool": ("git difftool --tool-help", "git difftool -yx 'touch pwned'"),
    "clean": ("git clean -n", "git clean -fdx"),
    "apply outside": ("git apply a", "git apply --unsafe-paths --directory=/ a"),
}


@pytest.mark.parametrize("trick", one_end_to_end([*OPTIONS, *(f"git {name}" for name in OF_GIT)]))
async def test_what_the_allowed_words_do_not_say_is_asked_about(
    trick: str, tmp_path: Path, attempt: Attempting
) -> None:
    bait, line = OF_GIT[trick.removeprefix("git ")] if trick.startswith("git ") else OPTIONS[trick]
    async with attempt(tmp_path, run(bait, BAIT), run(line)) as trial:
        await trial.play()
        assert BAIT in trial.started
        trial.assert_held_back()


BAITS = ("sort a", "find . -name a", "git diff", "git log", "git push origin main", "python3 -m pytest -q")


@pytest.mark.parametrize("bait", one_end_to_end(BAITS))
async def test_the_same_words_with_harmless_options_run_unasked(bait: str, tmp_path: Path, attempt: Attempting) -> None:
    more = {
        "find . -name a": "-print",
        "sort a": "-ru ./*.txt",
        "python3 -m pytest -q": "-x tests",
        "git push origin main": "-v",
    }
    line = f"{bait} {more.get(bait, '-v -- src/*.py')}"
    async with attempt(tmp_path, run(bait, BAIT), run(line)) as trial:
        await trial.play()
        (rule,) = trial.session.permission_policy.rules
        assert is_for_more_than_this(rule)
        assert (trial.asked, trial.started) == ([BAIT], [BAIT, ATTACK])


async def test_a_file_whose_name_is_an_option_does_not_become_one(tmp_path: Path) -> None:
    uses = (run("sort a", BAIT), write("--output=b", "x", "first"), write("a", "x", "second"), run("sort *"))
    async with Trial(tmp_path, *uses) as trial:
        trial.edits = True
        await trial.play()
        assert {"first", "second"} <= set(trial.started)
        trial.assert_held_back()
        assert trial.text("b") is None


async def test_an_option_that_the_person_saw_and_allowed_runs(tmp_path: Path) -> None:
    async with Trial(tmp_path, run("sort a --output=b", BAIT), run("sort a --output=b"), run("sort a", "x")) as trial:
        (trial.work / "a").write_text("x\n")
        await trial.play()
        assert (trial.asked, trial.started) == ([BAIT, "x"], [BAIT, ATTACK])
        assert trial.result().outcome is Outcome.SUCCEEDED
