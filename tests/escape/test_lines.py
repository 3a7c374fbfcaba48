"""After one command is always allowed, every line that hides something behind it is still asked about."""

from pathlib import Path

import pytest

from desktop_agent.types.blocks import Outcome
from tests.escape.attack import ATTACK, BAIT, Attempting, Trial, is_for_more_than_this, one_end_to_end, run

GIT, LS, CAT, GREP, ECHO = "git status", "ls", "cat a", "grep x a", "echo x"

TRICKS: dict[str, tuple[str, str]] = {
    # chaining
    "semicolon": (GIT, "git status; touch pwned"),
    "and": (GIT, "git status && touch pwned"),
    "or, after what fails": (LS, "ls /nowhere || touch pwned"),
    "background": (LS, "ls & touch pwned"),
    "line end": (LS, "ls\ntouch pwned"),
    "pipe": (LS, "ls | tee pwned"),
    "pipe of both streams": (LS, "ls |& tee pwned"),
    "subshell": (LS, "(ls; touch pwned)"),
    "group": (LS, "{ ls; touch pwned; }"),
    "condition": (LS, "if ls; then touch pwned; fi"),
    "case": (LS, "case x in x) touch pwned;; esac; ls"),
    "loop that runs once": (LS, "for i in 1; do touch pwned; done; ls"),
    "until": (LS, "until ls; touch pwned; do ls; done"),
    "select": (LS, "select x in a; do touch pwned; break; done; ls"),
    "coprocess": (LS, "coproc touch pwned; ls"),
    "carriage return": (LS, "ls\r touch pwned"),
    "joined by a continued line": (LS, "ls \\\n; touch pwned"),
    "comment that ends": (LS, "ls # quiet\ntouch pwned"),
    # substitution
    "substitution": (LS, "ls $(touch pwned)"),
    "backticks": (LS, "ls `touch pwned`"),
    "substitution in quotes": (ECHO, 'echo "$(touch pwned)"'),
    "substitution in a substitution": (ECHO, "echo $(echo $(touch pwned))"),
    "process substitution, read": (CAT, "cat <(touch pwned)"),
    "process substitution, written": (LS, "ls > >(touch pwned)"),
    "default of a variable": (ECHO, "echo ${NOT_SET:-$(touch pwned)}"),
    "pattern of a variable": (ECHO, 'echo "${HOME/$(touch pwned)/x}"'),
    "prompt expansion of a variable": (ECHO, "x='$(touch pwned)'; echo ${x@P}"),
    "indirect variable": (ECHO, "x='a[$(touch pwned)]'; echo ${!x}"),
    "arithmetic": (ECHO, "echo $((a[$(touch pwned)]))"),
    "old arithmetic": (ECHO, "echo $[a[$(touch pwned)]]"),
    "arithmetic command": (LS, "((a[$(touch pwned)])); ls"),
    "subscript of a test": (LS, "test -v 'a[$(touch pwned)]'; ls"),
    "length of a subscript": (ECHO, "echo ${#a[$(touch pwned)]}"),
    # here-documents
    "here-document": (CAT, "cat <<END\n$(touch pwned)\nEND"),
    "behind a here-document": (CAT, "cat <<END\ntext\nEND\ntouch pwned"),
    "here-document for a shell": (CAT, "bash <<END\ntouch pwned\nEND"),
    "here-document with a strange end": (CAT, "cat <<'E D'\nE D\ntouch pwned"),
    "two here-documents": (CAT, "cat <<A <<B\nA\ntouch pwned\nB\ntouch pwned"),
    "here-string": (CAT, 'cat <<< "$(touch pwned)"'),
    "here-string of a dollar sign": (CAT, "cat a <<<$\ntouch pwned"),
    "here-string of a dollar sign and a blank": (CAT, "cat a <<< $ \ntouch pwned"),
    "redirection to a dollar sign": (CAT, "cat a 2>$\ntouch pwned"),
    "substitution over a hidden line end": (CAT, 'cat "$\\\n(touch pwned)"'),
    "substitution in backticks, quoted": (CAT, 'cat `cat "\\$(touch pwned)"`'),
    "assignment that touches a command": (ECHO, "x=$x\\echo touch pwned"),
    "joined streams, expanded twice": (ECHO, "echo x >& '$(touch pwned)'"),
    "pattern that goes on": (ECHO, "echo x == .\ntouch pwned>]~"),
    "here-string for a shell": (LS, "bash <<< 'touch pwned'"),
    # redirections
    "redirection": (ECHO, "echo x > pwned"),
    "redirection that appends": (ECHO, "echo x >> pwned"),
    "redirection over what is protected": (ECHO, "echo x >| pwned"),
    "redirection of both": (ECHO, "echo x &> pwned"),
    "redirection before the command": (ECHO, ">pwned echo x"),
    "redirection for reading and writing": (ECHO, "echo x 1<> pwned"),
    "redirection of exec": (ECHO, "exec 3>pwned; echo x >&3"),
    "redirection to a connection": (ECHO, "echo x > /dev/tcp/127.0.0.1/9"),
    # quoting and spelling
    "name in quotes": (LS, "'touch' pwned"),
    "name with a backslash": (LS, "to\\uch pwned"),
    "name in pieces": (LS, "to''uch pwned"),
    "name from a variable": (LS, "x=touch; $x pwned; ls"),
    "name by a pattern": (LS, "/usr/bin/tou?h pwned"),
    "name from braces": (LS, "{touch,pwned}"),
    "name in escapes": (LS, "$'\\x74ouch' pwned"),
    "translated quote": (LS, 'ls $"$(touch pwned)"'),
    "quote that does not end": (ECHO, "echo 'x\ntouch pwned"),
    "quote closed by an escape": (ECHO, "echo $'\\''; touch pwned; echo '"),
    "history": (ECHO, "echo x; !!; touch pwned"),
    "words stuck together": (LS, "ls;touch pwned"),
    # letters that look alike
    "Cyrillic letter": (GIT, "gіt status"),
    "fullwidth letters": (LS, "ｌｓ"),
    "space that is none": (GIT, "git\u00a0status"),
    "ideographic space": (GIT, "git\u3000status"),
    "zero-width space": (LS, "ls\u200b; touch pwned"),
    "right-to-left override": (LS, "ls \u202e;denwp hcuot"),
    "line separator": (LS, "ls\u2028touch pwned"),
    "null": (LS, "ls\x00; touch pwned"),
    "Greek question mark": (LS, "ls\u037e touch pwned"),
    "upper case": (GIT, "GIT status"),
    # names and environment
    "alias": (LS, "shopt -s expand_aliases\nalias ls='touch pwned'\nls"),
    "function": (LS, "ls() { touch pwned; }; ls"),
    "function, the other way": (GIT, "function git { touch pwned; }; git status"),
    "function that is exported": (LS, "export -f ls; ls"),
    "function in the environment": (LS, "env 'BASH_FUNC_ls%%=() { touch pwned; }' bash -c ls"),
    "PATH": (LS, "PATH=.:$PATH ls"),
    "PATH, for good": (LS, "PATH=.; ls"),
    "PATH, exported": (LS, "export PATH=.; ls"),
    "PATH, unset": (LS, "unset PATH; ls"),
    "PATH, by a loop": (LS, "for PATH in .; do ls; done"),
    "PATH, by env": (LS, "env PATH=. ls"),
    "PATH, appended": (LS, "PATH+=:.; ls"),
    "PATH, by read": (LS, "read PATH <<< .; ls"),
    "PATH, by declare": (LS, "declare -x PATH=.; ls"),
    "LD_PRELOAD": (LS, "LD_PRELOAD=./evil.so ls"),
    "GIT_SSH_COMMAND": (GIT, "GIT_SSH_COMMAND='touch pwned' git status"),
    "GIT_CONFIG_COUNT": (
        GIT,
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='touch pwned' git status",
    ),
    "GIT_DIR": (GIT, "GIT_DIR=evil git status"),
    "BASH_ENV": (LS, "BASH_ENV=./evil bash -c ls"),
    "PROMPT_COMMAND": (LS, "PROMPT_COMMAND='touch pwned' ls"),
    "IFS": (LS, "IFS=,; ls"),
    "hash": (LS, "hash -p ./evil ls; ls"),
    "builtin from a file": (LS, "enable -f ./evil.so ls; ls"),
    "trap": (LS, "trap 'touch pwned' EXIT; ls"),
    "source": (LS, ". ./evil; ls"),
    "eval": (LS, "eval 'touch pwned'; ls"),
    "eval of what is put together": (LS, "eval tou ch pwned; ls"),
    # wrappers
    "program of the same name elsewhere": (LS, "./ls"),
    "program by another path": (GIT, "/tmp/git status"),
    "env": (LS, "env touch pwned"),
    "env that splits": (LS, "env -S 'touch pwned'"),
    "xargs": (LS, "ls | xargs touch"),
    "xargs that puts in": (LS, "ls | xargs -I{} {} pwned"),
    "sudo": (LS, "sudo ls"),
    "nice": (LS, "nice touch pwned"),
    "timeout": (LS, "timeout 5 touch pwned"),
    "nohup": (LS, "nohup touch pwned"),
    "sh -c": (LS, "sh -c 'ls; touch pwned'"),
    "sh -c in sh -c": (LS, "sh -c \"sh -c 'touch pwned'\""),
    "sh -c with a name": (LS, "sh -c '$0 pwned' touch"),
    "shell of another kind": (LS, "zsh -c 'touch pwned'"),
    "exec": (LS, "exec touch pwned"),
    "command": (LS, "command touch pwned"),
    "busybox": (LS, "busybox touch pwned"),
    "setsid": (LS, "setsid touch pwned"),
    "stdbuf": (LS, "stdbuf -o0 touch pwned"),
    "linker": (LS, "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch pwned"),
    "strace": (LS, "strace touch pwned"),
    "parallel": (LS, "parallel touch ::: pwned"),
}


@pytest.mark.parametrize("trick", one_end_to_end(TRICKS))
async def test_a_line_behind_an_allowed_command_is_asked_about(trick: str, tmp_path: Path, attempt: Attempting) -> None:
    bait, line = TRICKS[trick]
    async with attempt(tmp_path, run(bait, BAIT), run(line)) as trial:
        (trial.work / "a").write_text("x")
        await trial.play()
        (rule,) = trial.session.permission_policy.rules
        assert is_for_more_than_this(rule)
        trial.assert_held_back()
        assert trial.asked == [BAIT, ATTACK]
        assert sorted(entry.name for entry in trial.work.iterdir()) == ["a"]


@pytest.mark.parametrize("bait", [GIT, LS, CAT, GREP, ECHO])
async def test_what_the_bait_allows_does_run_unasked(bait: str, tmp_path: Path) -> None:
    async with Trial(tmp_path, run(bait, BAIT), run(f"{bait} && {bait}")) as trial:
        await trial.play()
        assert (trial.asked, trial.started) == ([BAIT], [BAIT, ATTACK])
        assert trial.result().outcome is Outcome.SUCCEEDED


SETTING = {
    "printf -v": ("printf x", "printf -v PATH .; printf x"),
    "printf -v, stuck together": ("printf x", "printf -vPATH .; printf x"),
    "printf of what is not known": ("printf x", 'for x in -vPATH; do printf "$x" .; done'),
    "read": ("read x", "read PATH; read x"),
    "mapfile": ("mapfile lines", "mapfile PATH; mapfile lines"),
    "getopts": ("getopts a x", "getopts a LD_PRELOAD; getopts a x"),
}


@pytest.mark.parametrize("trick", one_end_to_end(SETTING))
async def test_a_command_of_the_shell_that_sets_what_programs_look_for_is_asked_about(
    trick: str, tmp_path: Path, attempt: Attempting
) -> None:
    bait, line = SETTING[trick]
    async with attempt(tmp_path, run(bait, BAIT), run(line)) as trial:
        await trial.play()
        trial.assert_held_back()
