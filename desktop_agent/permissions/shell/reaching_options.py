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
    """`letters` are short options, `long` those with two dashes, also shortened; `starts` begin a word as it stands.

    It `stays_inside` if a path that leads out of the folder lets it do what it does not do otherwise.
    """

    letters: str = ""
    long: frozenset[str] = frozenset()
    starts: tuple[str, ...] = ()
    stays_inside: bool = False
    holds: tuple[str, ...] = ()


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
    # Behind @ it reads arguments from a file.
    "ruff": _Reaching("o", listed("output-file config cache-dir"), ("@",), stays_inside=True),
    "eslint": _Reaching("c", listed("config rulesdir parser plugin resolve-plugins-relative-to output-file")),
    "prettier": _Reaching(long=listed("plugin config")),
    "npm": _Reaching(long=listed("script-shell node-options prefix userconfig globalconfig")),
    "pip": _Reaching(long=listed("python")),
    "cargo": _Reaching(long=listed("config manifest-path")),
    "go": _Reaching(starts=("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-overlay")),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _COMPILER),
}

# git-diff(1) and git-rev-list(1). Whatever walks through commits takes them, also where its own page does not say so.
_OF_SHOWING = "output ext-diff textconv show-signature remerge-diff"
# To show who signed, git starts the program for it that is named in its settings.
_SIGNED = ("%G", "%(signature")
_SHOWS = _Reaching(long=listed(_OF_SHOWING), holds=_SIGNED)
_TALKS = _Reaching(long=listed("upload-pack receive-pack exec"))
_OF_GIT: Mapping[str, _Reaching] = {
    **dict.fromkeys(listed("log show whatchanged reflog stash shortlog rev-list range-diff"), _SHOWS),
    **dict.fromkeys(listed("diff-tree diff-files diff-index"), _SHOWS),
    # Of two paths of which one leads out it compares any two files, like `diff`.
    "diff": _Reaching(long=listed(f"{_OF_SHOWING} no-index"), stays_inside=True),
    **dict.fromkeys(("blame", "annotate"), _Reaching("S", listed(f"{_OF_SHOWING} contents ignore-revs-file"))),
    "ls-files": _Reaching("X", listed("exclude-from exclude-per-directory")),
    "add": _Reaching("ef", listed("edit force pathspec-from-file")),
    "commit": _Reaching(
        "FtecCnS",
        listed(
            "file template edit reedit-message reuse-message no-verify gpg-sign no-gpg-sign amend author reset-author "
            "date trailer pathspec-from-file"
        ),
    ),
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
    "branch": _Reaching("DMCf", listed("force delete"), holds=_SIGNED),
    **dict.fromkeys(("tag", "for-each-ref"), _Reaching("dfsuv", listed("force delete sign local-user"), holds=_SIGNED)),
    "apply": _Reaching(long=listed("unsafe-paths directory")),
}
_ANYTHING = _Reaching(starts=("",))
# What it may become when it is expanded begins as it is written, and is one word.
_NO_OPTION = re.compile(r"[\w./~][^$`]*")
# Names of which some letters are left open, and no part of which may become `..`.
_STAYS_INSIDE = re.compile(r"(?!.*/\.)(?:\./)?\w[\w./*?-]*|[*?][\w.*?-]*")


def reaches_further(words: Sequence[str | None], sources: Sequence[str], seen: int) -> bool:
    """Whether one of the words behind the first `seen`, or what it may expand to, is such an option."""
    known = _known(words, seen)
    if known is None:
        return False
    before, are_operands = words[seen - 1] or "", False
    for word, source in list(zip(words, sources, strict=True))[seen:]:
        if known.stays_inside and (_STAYS_INSIDE.fullmatch(source) is None if word is None else _leads_out(word)):
            return True
        if word == "--":
            # Behind an option it may be that option's value, and ends nothing: `git commit -m -- --amend`.
            are_operands = are_operands or not before.startswith("-")
        elif not are_operands and (_NO_OPTION.fullmatch(source) is None if word is None else _reaches(known, word)):
            return True
        before = word or ""
    return False


def _known(words: Sequence[str | None], seen: int) -> _Reaching | None:
    name = program_name(words[0] or "") if words else ""
    if name.startswith("python") and words[1:2] == ("-m",):
        name = (words[2] if len(words) > 2 else None) or ""
    if name != "git" or len(words) < 2:
        return _PROGRAMS.get(name)
    if words[1] is None or words[1].startswith("-"):
        # Before its subcommand git takes options with which it does anything.
        return _ANYTHING if seen < 2 else None
    return _OF_GIT.get(words[1])


def _leads_out(path: str) -> bool:
    return path.startswith(("/", "~")) or ".." in path.split("/")


def _reaches(known: _Reaching, word: str) -> bool:
    if (known.starts and word.startswith(known.starts)) or any(each in word for each in known.holds):
        return True
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return any(each.startswith(name) for each in known.long)
    return word.startswith("-") and any(letter in known.letters for letter in word[1:])
