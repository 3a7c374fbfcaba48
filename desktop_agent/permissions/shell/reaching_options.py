"""Options with which a program does what its first words do not say: start another, write a file, or destroy.

Who allows `sort`, or `git push`, for good, has not seen `--compress-program`, or `--force`. Such a command is covered
by what allows all of its words, or the option among them. The list knows common programs; what it does not know, the
confinement of commands has to bear.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from desktop_agent.permissions.shell.nodes import listed
from desktop_agent.permissions.shell.wrappers import program_name


@dataclass(frozen=True, slots=True)
class _Reaching:
    """`letters` are short options, `long` those with two dashes, also shortened; `starts` begin a word as it stands."""

    letters: str = ""
    long: frozenset[str] = frozenset()
    starts: tuple[str, ...] = ()


_COMPILER = _Reaching(starts=("-wrapper", "-fplugin", "-B", "-specs", "--specs", "-Wl,-plugin", "@"))
_PROGRAMS: Mapping[str, _Reaching] = {
    "sort": _Reaching("o", listed("compress-program output")),
    "find": _Reaching(starts=("-fprint", "-fls", "-delete")),
    "split": _Reaching(long=listed("filter")),
    "rg": _Reaching(long=listed("pre hostname-bin")),
    "ag": _Reaching(long=listed("pager")),
    "tree": _Reaching("o"),
    "man": _Reaching("PHCX", listed("pager html config-file")),
    "less": _Reaching("oOk", listed("log-file lesskey-file lesskey-src lesskey-content"), ("+",)),
    "zip": _Reaching("T", listed("test unzip-command")),
    "cpio": _Reaching(long=listed("rsh-command to-command")),
    "sdiff": _Reaching("o", listed("diff-program output")),
    "diff3": _Reaching(long=listed("diff-program")),
    "pylint": _Reaching(long=listed("init-hook load-plugins rcfile")),
    "mypy": _Reaching(long=listed("python-executable config-file install-types")),
    "eslint": _Reaching("c", listed("config rulesdir parser plugin resolve-plugins-relative-to output-file")),
    "prettier": _Reaching(long=listed("plugin config")),
    "npm": _Reaching(long=listed("script-shell node-options prefix userconfig globalconfig")),
    "pip": _Reaching(long=listed("python")),
    "cargo": _Reaching(long=listed("config manifest-path")),
    "go": _Reaching(starts=("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-overlay")),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _COMPILER),
}

_SHOWS = _Reaching(long=listed("output ext-diff"))
_TALKS = _Reaching(long=listed("upload-pack receive-pack exec"))
_OF_GIT: Mapping[str, _Reaching] = {
    **dict.fromkeys(("diff", "log", "show", "whatchanged", "reflog", "stash", "diff-tree", "diff-files"), _SHOWS),
    "format-patch": _Reaching("o", listed("output output-directory ext-diff")),
    "grep": _Reaching("O", listed("open-files-in-pager")),
    "archive": _Reaching("o", listed("output exec remote")),
    "init": _Reaching(long=listed("template separate-git-dir")),
    "clone": _Reaching("uc", listed("upload-pack config template separate-git-dir")),
    "fetch": _Reaching("f", listed("upload-pack force prune"), ("+",)),
    "pull": _Reaching("f", listed("upload-pack force"), ("+",)),
    "ls-remote": _TALKS,
    "remote": _TALKS,
    "push": _Reaching("fd", listed("receive-pack exec force force-with-lease delete mirror prune"), ("+", ":")),
    "reset": _Reaching(long=listed("hard merge keep")),
    "checkout": _Reaching("fB", listed("force")),
    "switch": _Reaching("fC", listed("force force-create discard-changes")),
    "branch": _Reaching("DMCf", listed("force delete")),
    "apply": _Reaching(long=listed("unsafe-paths directory")),
}
# What it may become when it is expanded begins as it is written, and is one word.
_NO_OPTION = re.compile(r"[\w./~][^$`]*")


def reaches_further(words: Sequence[str | None], sources: Sequence[str], seen: int) -> bool:
    """Whether one of the words behind the first `seen`, or what it may expand to, is such an option."""
    known = _known(words)
    if known is None:
        return False
    for word, source in list(zip(words, sources, strict=True))[seen:]:
        if word == "--":
            return False
        if _reaches(known, word) if word is not None else _NO_OPTION.fullmatch(source) is None:
            return True
    return False


def _known(words: Sequence[str | None]) -> _Reaching | None:
    name = program_name(words[0] or "") if words else ""
    if name != "git":
        return _PROGRAMS.get(name)
    # Before its subcommand git takes options with which it does anything; no first words have them behind.
    return _OF_GIT.get(words[1] or "") if len(words) > 1 else None


def _reaches(known: _Reaching, word: str) -> bool:
    if known.starts and word.startswith(known.starts):
        return True
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return any(each.startswith(name) for each in known.long)
    return word.startswith("-") and any(letter in known.letters for letter in word[1:])
