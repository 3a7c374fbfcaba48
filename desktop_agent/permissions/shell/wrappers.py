"""Wrappers: what `sudo`, `env`, `sh -c`, `xargs` and their like would start, and which programs may start anything."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from desktop_agent.data_files import load_table
from desktop_agent.permissions.shell.syntax import RESERVED, is_inert_variable, word_set


@dataclass(frozen=True, slots=True)
class StartedCommand:
    """A command that another one starts; its first word is number `at` of the other's."""

    words: tuple[str | None, ...]
    at: int
    is_transparent: bool = False


@dataclass(frozen=True, slots=True)
class StartedScript:
    """Shell text that a command runs."""

    text: str
    is_transparent: bool = False


@dataclass(frozen=True, slots=True)
class UnknownStart:
    """A command starts something, and nobody can tell what."""


Unwrapped = StartedCommand | StartedScript | UnknownStart


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of a wrapper. `flags` and `valued` are letters; `long` and `long_valued` are words.

    With nothing but `plain` options it only starts the command. After one of `idle` it starts none. So many
    `positional` words of its own follow the options.
    """

    flags: str = ""
    valued: str = ""
    long: tuple[str, ...] = ()
    long_valued: tuple[str, ...] = ()
    plain: str | None = ""
    idle: str = ""
    assignments: bool = False
    positional: int = 0


# A command whose wrapper has an option that is not listed here is not understood.
WRAPPERS: dict[str, _Options] = {
    "sudo": _Options(
        "AbBEHkKnPSv", "CDghpRrTtUu", ("non-interactive",), ("user", "group"), None, "vK", assignments=True
    ),
    "doas": _Options("n", "Cu", plain=None),
    # A lone `-` is `-i`.
    "env": _Options("i0v-", "uC", ("ignore-environment", "null"), ("unset", "chdir"), assignments=True),
    "nohup": _Options(),
    "setsid": _Options("cfw", long=("fork", "wait", "ctty"), plain="cfw"),
    "nice": _Options("0123456789", "n", long_valued=("adjustment",), plain="n0123456789"),
    "ionice": _Options("t", "cn", plain="tcn"),
    "time": _Options("pva", "fo", plain="pv"),
    "timeout": _Options(
        "v", "ks", ("foreground", "preserve-status", "verbose"), ("signal", "kill-after"), "ksv", positional=1
    ),
    "stdbuf": _Options("", "ioe", (), ("input", "output", "error"), "ioe"),
    "command": _Options("pvV", plain="", idle="vV"),
    "builtin": _Options(),
    "exec": _Options("cl", "a"),
    "chroot": _Options(long_valued=("userspec", "groups"), plain=None, positional=1),
    "taskset": _Options("a", "", plain="a", positional=1),
    "busybox": _Options(plain=None),
    "xargs": _Options(
        "0ortx", "adEILnPs", ("null", "no-run-if-empty", "verbose"), ("max-args", "max-procs", "delimiter"), "0rtLnPd"
    ),
}
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "rbash"})
_SHELL_LETTERS = frozenset("cefiluvxn")
_KINDS = load_table(__name__, "wrappers.toml")
OPAQUE = word_set(_KINDS["opaque"])
# Shells that do sums where others take a word, or read lines in a way of their own.
_OTHER_SHELLS = word_set("ksh mksh")
_STARTING_WORDS = word_set("exec x run r shell")
FIND_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def unwrap(words: Sequence[str | None]) -> Unwrapped | None:
    """Return what a command starts in turn; None when it starts nothing. The first word is literal."""
    name = program_name(words[0] or "")
    if name in OPAQUE | _OTHER_SHELLS:
        return UnknownStart()
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    if name in SHELLS:
        return _shell(words)
    options = WRAPPERS.get(name)
    return None if options is None else _unwrap_options(words, options)


def program_name(word: str) -> str:
    """Return the program that a command's first word means, without its folder."""
    return word.rpartition("/")[2]


def _unwrap_options(words: Sequence[str | None], options: _Options) -> Unwrapped | None:
    walk = _OptionWalk(words, options)
    if not walk.skip():
        return UnknownStart()
    if walk.is_idle or walk.index >= len(words):
        return None
    if (words[walk.index] or "-").startswith("-"):
        return UnknownStart()
    return StartedCommand(tuple(words[walk.index :]), walk.index, walk.is_plain)


@dataclass(slots=True)
class _OptionWalk:
    """A walk over a wrapper's own words. `index` is that of the first word that is not one of them."""

    words: Sequence[str | None]
    options: _Options
    index: int = 1
    is_plain: bool = field(init=False)
    is_idle: bool = False

    def __post_init__(self) -> None:
        self.is_plain = self.options.plain is not None

    def skip(self) -> bool:
        """Go on to the command; return False when its start cannot be told."""
        while (word := self._current_word()) is not None and word.startswith("-"):
            if word == "-" and "-" not in self.options.flags:
                break
            self.index += 1
            if word == "--":
                break
            if not (self._long(word[2:]) if word.startswith("--") else self._letters(word[1:] or word)):
                return False
        if self._current_word() is None and self.index < len(self.words):
            return False
        while self.options.assignments and "=" in (word := self._current_word() or ""):
            if not is_inert_variable(word.partition("=")[0]):
                # One with `%%` is a function to bash.
                return False
            self.is_plain = False
            self.index += 1
        positional = self.words[self.index : self.index + self.options.positional]
        self.index += self.options.positional
        return None not in positional

    def _current_word(self) -> str | None:
        return self.words[self.index] if self.index < len(self.words) else None

    def _long(self, word: str) -> bool:
        name, has_value, _ = word.partition("=")
        self.is_plain = False
        if name in self.options.long_valued:
            return bool(has_value) or self._value()
        return name in self.options.long and not has_value

    def _value(self) -> bool:
        """Skip the value of an option. A value with an expansion may be split into several words."""
        self.index += 1
        return self.index > len(self.words) or self.words[self.index - 1] is not None

    def _letters(self, letters: str) -> bool:
        for position, letter in enumerate(letters):
            if letter not in (self.options.plain or ""):
                self.is_plain = False
            if letter in self.options.idle:
                self.is_idle = True
            if letter in self.options.valued:
                return position + 1 < len(letters) or self._value()
            if letter not in self.options.flags:
                return False
        return True


def _shell(words: Sequence[str | None]) -> Unwrapped:
    """Unwrap `sh -c text`. Anything else runs a file, or its input."""
    for index, word in enumerate(words[1:], start=1):
        if word is None or not word.startswith("-") or not set(word[1:]) <= _SHELL_LETTERS or "i" in word:
            return UnknownStart()
        if "c" in word:
            script = words[index + 1] if index + 1 < len(words) else None
            if script is None or script.startswith(("-", "+")):
                return UnknownStart()
            return StartedScript(script, is_transparent=index + 2 == len(words))
    return UnknownStart()


def _eval(words: Sequence[str | None]) -> Unwrapped:
    literal = [word for word in words[1:] if word is not None]
    if len(literal) < len(words) - 1 or "--" in literal[:1]:
        return UnknownStart()
    return StartedScript(" ".join(literal), is_transparent=True)


def _trap(words: Sequence[str | None]) -> Unwrapped | None:
    script = words[1] if len(words) > 1 else ""
    if script is None or (script.startswith("-") and script != "-"):
        return UnknownStart()
    return None if script in {"", "-"} or script.isdigit() else StartedScript(script)


def _watch(words: Sequence[str | None]) -> Unwrapped:
    if len(words) < 2 or None in words or (words[1] or "").startswith("-"):
        return UnknownStart()
    return StartedScript(" ".join(word or "" for word in words[1:]))


def _find(words: Sequence[str | None]) -> Unwrapped | None:
    """Unwrap `find … -exec command ;`. Several started commands are not told apart."""
    if None in words:
        return UnknownStart()
    starts = [index for index, word in enumerate(words) if word in FIND_STARTS]
    if not starts:
        return None
    first = starts[0] + 1
    inner = list(words[first:])
    ends = [index for index, word in enumerate(inner) if word in {";", "+"}]
    if len(starts) > 1 or len(ends) != 1 or not ends[0] or "{}" in (inner[0] or "{}"):
        return UnknownStart()
    return StartedCommand(tuple(None if "{}" in (word or "") else word for word in inner[: ends[0]]), first)


def _fd(words: Sequence[str | None]) -> Unwrapped | None:
    """Unwrap `fd`, whose options that start something may stand among others."""
    return UnknownStart() if any(word is None or _starts_in_fd(word) for word in words[1:]) else None


def _starts_in_fd(word: str) -> bool:
    is_long = word.startswith("--")
    return word.startswith("--exec") if is_long else word.startswith("-") and not {"x", "X"}.isdisjoint(word)


def _version_manager(words: Sequence[str | None]) -> Unwrapped | None:
    """Unwrap programs that start others in a version, or an environment, of their own choice."""
    return UnknownStart() if any(word is None or word in _STARTING_WORDS for word in words[1:]) else None


def _hash(words: Sequence[str | None]) -> Unwrapped | None:
    return UnknownStart() if any(word is None or word.startswith("-") for word in words[1:]) else None


def _time(words: Sequence[str | None]) -> Unwrapped | None:
    """Unwrap `time`, a word of the shell: an assignment, or another such word, may stand before the program."""
    unwrapped = _unwrap_options(words, WRAPPERS["time"])
    arguments = [word or "-" for word in words[1:]]
    arguments = arguments[arguments[:1] == ["-p"] :]
    arguments = arguments[arguments[:1] == ["--"] :]
    if "/" not in (words[0] or "") and arguments and arguments[0].startswith("-"):
        # The shell's own `time` knows no other options: it takes them for programs.
        return UnknownStart()
    if isinstance(unwrapped, StartedCommand) and ("=" in (unwrapped.words[0] or "") or unwrapped.words[0] in RESERVED):
        return UnknownStart()
    return unwrapped


# The place that is filled, where it is sure which word names it.
_REPLACING = re.compile(r"(?:-[0rt]+\0|-P\0?[0-9]+\0)*-I\0?([^-\0][^\0]*)\0(?:-[0rt]+\0|-P\0?[0-9]+\0)*")


def _xargs(words: Sequence[str | None]) -> Unwrapped | None:
    """Unwrap `xargs`, which adds words that it reads to the end, or fills them in."""
    options = WRAPPERS["xargs"]
    # Without a command, xargs runs echo.
    unwrapped = _unwrap_options(words, options) or _unwrap_options((*words, "echo"), options)
    if not isinstance(unwrapped, StartedCommand):
        return unwrapped
    options_of_xargs = [word or "" for word in words[1 : unwrapped.at]]
    if not any("I" in option for option in options_of_xargs if option.startswith("-") and not option.startswith("--")):
        return StartedCommand((*unwrapped.words, None), unwrapped.at, unwrapped.is_transparent)
    replacing = _REPLACING.fullmatch("".join(f"{option}\0" for option in options_of_xargs))
    if replacing is None or replacing[1] in (unwrapped.words[0] or replacing[1]):
        return UnknownStart()
    started = tuple(None if replacing[1] in (word or replacing[1]) else word for word in unwrapped.words)
    return StartedCommand(started, unwrapped.at)


_SPECIAL: dict[str, Callable[[Sequence[str | None]], Unwrapped | None]] = {
    "eval": _eval,
    "trap": _trap,
    "watch": _watch,
    "find": _find,
    "fd": _fd,
    "fdfind": _fd,
    **dict.fromkeys(("bundle", "pyenv", "rbenv", "nodenv", "asdf", "mise", "direnv"), _version_manager),
    "hash": _hash,
    "mapfile": _hash,
    "readarray": _hash,
    "time": _time,
    "xargs": _xargs,
}


DO_ANYTHING = OPAQUE | word_set(_KINDS["do_anything"])
# Words after a program's name that are followed by what it starts.
STARTING_SUBCOMMANDS = word_set("run exec x dlx")
# These start what they are given first.
PACKAGE_RUNNERS = word_set("npx uvx bunx pnpx")
START_NOTHING = word_set(_KINDS["start_nothing"])
READ_NO_FILES = word_set(_KINDS["read_no_files"])
CLEAR_BY_NAME = START_NOTHING | word_set(_KINDS["clear_by_name"])
