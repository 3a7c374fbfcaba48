"""Options that escalate: with them a program starts another, writes a file, or destroys.

A person who allows `sort` or `git push` for good has not seen `--compress-program` or `--force`. For a program that is
known to have such options, a rule covers the safe ones; with others the command needs a rule for all of its words, or
for that one among them. Unknown programs are left to the sandbox.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from desktop_agent.permissions.shell.safe_options import NO_WORDS, SafeOptions, program_options, subcommand_options
from desktop_agent.permissions.shell.wrappers import CLEAR_BY_NAME, FIND_STARTS, program_name

_Word = tuple[str | None, str]

# A word whose expansions begin as it is written, and are one word.
_NO_OPTION = re.compile(r"[\w./~][^$`]*")
# Names of which some letters are left open, and no part of which may become `..`.
_ONE_OF = r"\{\w[\w-]*(?:,\w[\w-]*)*\}"
_STAYS_INSIDE = re.compile(rf"(?!.*/\.)(?:\./)?(?:\w(?:[\w./*?-]|{_ONE_OF})*|[*?][\w.*?-]*)")
_OF_VERSIONS = ".0123456789"
# An option and, in the same word, a path.
_JOINED_PATH = re.compile(r"-\w+?(?:[/~]|\.\.(?:/|$))")
_LONG_OPTION = re.compile(r"^--[\w-]+=")


def has_escalating_words(words: Sequence[str | None], sources: Sequence[str], seen: int) -> bool:
    """Return whether a word after the first `seen`, or what it may expand to, is not known to be safe."""
    known, start = _known_options(words, seen)
    if known is None:
        return False
    pairs = list(zip(words, sources, strict=True))
    if known.named and _operands(pairs[max(seen, start) :]):
        return True
    return _exceeds(known, pairs, start, seen)


def words_to_name(words: Sequence[str | None], sources: Sequence[str], count: int) -> int | None:
    """Return how many words a rule has to begin with; the first `count` say what the command does.

    None where a later word is not known to be safe: no beginning would say what the command does.
    """
    known, start = _known_options(words, count)
    if known is None:
        return count
    pairs = list(zip(words, sources, strict=True))
    if _exceeds(known, pairs, start, count):
        return None
    ends = range(len(words) - 1, count - 1, -1)
    return next((end + 1 for end in ends if known.named and _operands(pairs[end : end + 1])), count)


def _exceeds(known: SafeOptions, pairs: Sequence[_Word], start: int, seen: int) -> bool:
    words = [word for word, _ in pairs]
    if known.operands is not None and _operands(pairs[start:]) > known.operands:
        return True
    unseen = pairs[max(seen, start) :]
    if program_name(words[0] or "") == "find":
        unseen = list(_not_started(unseen))
    if any(known.overwrites(word or "", value) for word, value in pairwise((*(word for word, _ in unseen), None))):
        return True
    judged = _with_operand_flags(known, unseen, words[max(seen, start) - 1] or "")
    return any(_is_escalating(known, word, source, is_operand=operand) for word, source, operand in judged)


def subcommand(words: Sequence[str | None]) -> tuple[str, ...] | None:
    """Return the words after a program's name that say what it does: () if they do not, None if it needs none."""
    table = subcommand_options().get(known_name(words[0] or ""))
    if table is None:
        return None
    pair = tuple(word or "" for word in words[1:3])
    return next((pair[:count] for count in (2, 1) if " ".join(pair[:count]) in table and len(pair) >= count), ())


def known_name(word: str) -> str:
    """Return the name under which a program is known, whatever its folder, version or platform."""
    names = program_names(word)
    return next((name for name in names if name in program_options() or name in subcommand_options()), names[0])


def program_names(word: str) -> tuple[str, ...]:
    """Return what a program may be called, apart from its folder, its version, and the platform that it is for."""
    name = program_name(word)
    plain = _without_version(name)
    return name, plain, plain.rpartition("-")[2]


def is_name_inside(source: str) -> bool:
    """Return whether an expanded word can only become names below the folder, also after a long option."""
    return _STAYS_INSIDE.fullmatch(_LONG_OPTION.sub("", source)) is not None


def _without_version(name: str) -> str:
    version = name[len(name.rstrip(_OF_VERSIONS)) :].lstrip(".")
    if not version:
        return name
    plain = name.removesuffix(version)
    return plain[:-1] if plain.endswith(("-", ".")) else plain


def _known_options(words: Sequence[str | None], seen: int) -> tuple[SafeOptions | None, int]:
    """Return the safe options, and after how many words they stand."""
    start = 2 if program_name(words[0] or "").startswith("python") and words[1:2] == ("-m",) else 0
    if len(words) <= start:
        return None, start
    name = known_name(words[start] or "")
    table = subcommand_options().get(name)
    if table is None:
        return program_options().get(name), start + 1
    words_of_subcommand = subcommand(words[start:])
    if not words_of_subcommand:
        # Before its subcommand a program takes options with which it does anything.
        return NO_WORDS, start + 1
    known, after = table[" ".join(words_of_subcommand)], start + 1 + len(words_of_subcommand)
    if known is not None or seen < after:
        # What a shorter subcommand is allowed, a longer one is not: `git stash` puts away, `git stash pop` brings back.
        is_another = start + 1 < seen < after and " ".join(words_of_subcommand[: seen - start - 1]) in table
        return (NO_WORDS if known is None or is_another else known), seen if is_another else after
    # It starts another program, which may do anything with more words than its name, unless it is known.
    started = known_name(words[after] or "") if len(words) > after else ""
    return program_options().get(started, None if started in CLEAR_BY_NAME else NO_WORDS), after + 1


def _not_started(pairs: Sequence[_Word]) -> Iterator[_Word]:
    """Leave out the commands that `find` starts: they are checked by themselves."""
    is_started = False
    for word, source in pairs:
        if is_started:
            is_started = word not in {";", "+"}
        elif word in FIND_STARTS:
            is_started = True
        else:
            yield word, source


def _with_operand_flags(
    known: SafeOptions, pairs: Sequence[_Word], before: str
) -> Iterator[tuple[str | None, str, bool]]:
    """Yield each word with whether it can only be an operand."""
    are_operands = False
    for word, source in pairs:
        if word != "--" or known.passes_on or known is NO_WORDS:
            yield word, source, are_operands
        else:
            # Behind an option it may be that option's value, and ends nothing: `git commit -m -- --amend`.
            are_operands = are_operands or not before.startswith("-")
        before = word or ""


def _is_escalating(known: SafeOptions, word: str | None, source: str, *, is_operand: bool) -> bool:
    if word is None:
        if known.never is not None and known.never.search(source):
            return True
        leads_out = known.stays_inside and _STAYS_INSIDE.fullmatch(source) is None
        is_any = is_operand and not known.unsafe_prefixes
        return leads_out or known is NO_WORDS or not (is_any or _NO_OPTION.fullmatch(source))
    if known.stays_inside and (_leaves_folder(word) or (known.valued and _JOINED_PATH.match(word))):
        return True
    return not known.is_safe(f"./{word}" if is_operand and word.startswith("-") else word)


def _operands(pairs: Sequence[_Word]) -> int:
    count, are_operands = 0, False
    for word, _ in pairs:
        if word is None:
            # It may become many.
            count += 2
        elif are_operands or word == "-" or not word.startswith("-"):
            count += 1
        are_operands = are_operands or word == "--"
    return count


def _leaves_folder(word: str) -> bool:
    """Return whether the word leads out as a path, or as the value of an option."""
    _, _, value = word.partition("=")
    return any(path.startswith(("/", "~")) or ".." in path.split("/") for path in (word, value))
