"""What a line did, against what its parsed form says that it does."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from desktop_agent.data_files import load_table
from desktop_agent.permissions.shell.parser import ParsedLine
from desktop_agent.permissions.shell.syntax import is_private_variable, word_set
from desktop_agent.permissions.shell.wrappers import program_name
from tests.shell_differential.box import WORKING_FOLDER, Ran, Started
from tests.shell_differential.xtrace import Traced

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*\])?\+?=", re.DOTALL)
_LOOP = re.compile(r"(?:for|select) ([A-Za-z_][A-Za-z0-9_]*)(?= |$)")
_CASE = re.compile(r"case .* in$", re.DOTALL)
# Files that are opened by what these do, and not by a redirection.
_OPEN_FILES = frozenset({"find", "xargs", "history"})
# Those that are there: where going fails, what stands behind `;` runs where the line began.
_FOLDERS = frozenset({None, "sub", "sub/deep", "a dir", "."})
_AT_A_TIME = frozenset("|&")
# Those of which some or all values change no program.
_SAFE_VARIABLES = word_set(
    " ".join(load_table("desktop_agent.permissions.shell.syntax", "safe_variables.toml").values())
)
_HERE_DOCUMENT = re.compile(r"/tmp/sh-thd\..*")


def differences(line: ParsedLine, ran: Ran, usual: str, source: str) -> tuple[str, ...]:
    """What the line did although its parsed form does not say so. `usual` is the environment that a line finds."""
    if not line.understood:
        return ()
    return tuple(_differences(line, ran, usual, source))


def _differences(line: ParsedLine, ran: Ran, usual: str, source: str) -> Iterator[str]:
    # What several processes of the plain shell tell at a time is mixed letter by letter.
    is_traced = not ran.traced or ran.traced[0].words is not None or _AT_A_TIME.isdisjoint(source)
    names = {program_name(each.words[0] or "") for each in line.commands if each.words}
    for each in ran.started:
        renamed = [(name, *each.words[1:]) for name in (each.file, program_name(each.file))]
        # `exec -a` gives a program another name.
        if not _is_named(line, each.words) and not (
            "exec" in names and any(_is_named(line, words) for words in renamed)
        ):
            yield f"started {each.words}"
        elif not line.changes_folder and each.folder != _folder(line) and line.goes_to in _FOLDERS:
            yield f"started {each.words} in {each.folder}"
        elif not _may_set(line, source) and each.environment != usual and names.isdisjoint({"env", "exec"}):
            yield f"started {each.words} with other variables"
    for each in ran.traced if is_traced else ():
        if (fault := _untold(line, each)) is not None:
            yield fault
    for path in sorted(ran.opened):
        is_written = path in ran.written
        if not names & _OPEN_FILES and not _HERE_DOCUMENT.fullmatch(path) and not _is_target(line, path, is_written):
            yield f"{'wrote' if is_written else 'opened'} {path}"


def _is_named(line: ParsedLine, words: Sequence[str]) -> bool:
    return any(fits(each.words, words) for each in line.commands)


def fits(said: Sequence[str | None], words: Sequence[str]) -> bool:
    """Whether these words are what was said: a word that was not told may be any number of them, but for the first."""
    if not said:
        return not words
    if said[0] is not None:
        return bool(words) and words[0] == said[0] and _rest_fits(said[1:], words[1:])
    return False


def _rest_fits(said: Sequence[str | None], words: Sequence[str]) -> bool:
    # Which numbers of words may be used up so far.
    used = {0}
    for each in said:
        if each is None:
            used = set(range(min(used), len(words) + 1))
        else:
            used = {at + 1 for at in used if at < len(words) and words[at] == each}
        if not used:
            return False
    return len(words) in used


def _folder(line: ParsedLine) -> str:
    return posixpath.normpath(posixpath.join(WORKING_FOLDER, line.goes_to or ""))


def _untold(line: ParsedLine, traced: Traced) -> str | None:
    """What a shell told about a command, in case that nothing is said of it."""
    text = traced.text
    if traced.words is None:
        # `$(<f)` is a command of no words; what the shell complains about may follow.
        is_named = not text.partition("\n")[0].strip() or any(_is_text_of(each.words, text) for each in line.commands)
    else:
        is_named = not traced.words or _is_named(line, traced.words)
    if is_named or _CASE.match(text):
        return None
    if text.startswith("[[ ") and any(each.words[0] == "[[" for each in line.commands):
        return None
    if (loop := _LOOP.match(text)) is not None:
        return None if line.sets_variables or is_private_variable(loop[1]) else f"set {loop[1]}"
    if _ASSIGNMENT.match(text) is not None:
        return None if line.sets_variables or _is_harmless(text) else f"set {text!r}"
    return f"ran {text!r}"


def _may_set(line: ParsedLine, source: str) -> bool:
    """Whether programs may find other variables: the line says so, or sets one that changes no program."""
    return line.sets_variables or any(f"{name}=" in source for name in _SAFE_VARIABLES)


def _is_harmless(text: str) -> bool:
    return text.partition("=")[0] in _SAFE_VARIABLES


def _is_text_of(said: Sequence[str | None], text: str) -> bool:
    """The same where words are told apart by spaces alone; complaints may follow on further lines."""
    pattern = r"(?:\ |^)".join(".*" if each is None else re.escape(each) for each in said)
    # Words that expand to none leave no space.
    pattern = pattern.replace(r"(?:\ |^).*", r"(?:\ .*)?").replace(r"(?:\ |^)", r"\ ")
    return re.match(rf"\ ?{pattern}\n", text, re.DOTALL) is not None


def _is_target(line: ParsedLine, path: str, is_written: bool) -> bool:
    for each in line.redirections:
        if is_written and not each.writes:
            continue
        if each.target is None or posixpath.basename(path) == posixpath.basename(each.target):
            return True
    return False


def usual_environment(started: Sequence[Started]) -> str:
    """The environment that the only program of a plain line found."""
    (only,) = started
    return only.environment
