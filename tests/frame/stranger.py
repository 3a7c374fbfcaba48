"""Checks whether a stranger who knows the field finds a feature by the word that everybody uses for it.

    python -m tests.frame.stranger

For each question in stranger_questions.toml it counts, folder by folder, the names of modules, classes and functions
that contain the word of the question. The name of a module includes its folders, as in an import. The words of a
question are tried in their order: the first that occurs anywhere decides. The folder with the most names must be one of
the right ones (`folder`), lie within one or contain one directly. Comments and strings do not count, and neither does a
part of a word: `retry` is in `RetryPolicy` and in `retries`, not in `retrying`.

`open = true` marks a question whose feature is not found yet. Such marks may only be removed.
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from tests.frame.budgets import ROOT, Source, sources

QUESTIONS = Path(__file__).with_name("stranger_questions.toml")
PACKAGES = ("desktop_agent", "ui")
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True)
class Question:
    """One question of the file. `open`: the feature is not found yet."""

    ask: str
    words: tuple[str, ...]
    folder: tuple[str, ...]
    open: bool = False


@dataclass(frozen=True)
class Answer:
    """How many names each folder has, the most first, and whether that is the right folder."""

    question: Question
    counts: tuple[tuple[str, int], ...]

    @property
    def tops(self) -> tuple[str, ...]:
        return tuple(folder for folder, count in self.counts if count == self.counts[0][1])

    @property
    def is_found(self) -> bool:
        """Whether all folders with the most names are right: with a wrong one among them, the feature is not found."""
        return bool(self.counts) and all(self._is_right(top) for top in self.tops)

    def _is_right(self, top: str) -> bool:
        return any(
            top == right or top.startswith(f"{right}/") or PurePosixPath(right).parent.as_posix() == top
            for right in self.question.folder
        )


def questions(file: Path = QUESTIONS) -> list[Question]:
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["question"]
    return [Question(row["ask"], tuple(row["words"]), tuple(row["folder"]), row.get("open", False)) for row in rows]


@cache
def parts(name: str) -> tuple[str, ...]:
    """The words of a name in small letters: `find_bar` and `FindBar` have the same."""
    return tuple(part.lower() for part in _PART.findall(name))


def plurals(word: str) -> tuple[str, ...]:
    return (f"{word}s", f"{word}es", f"{word.removesuffix('y')}ies")


def is_same(one: str, other: str) -> bool:
    """Whether both are the same word, in the singular or the plural."""
    return one == other or one in plurals(other) or other in plurals(one)


def holds(name: str, word: str) -> bool:
    """Whether the name contains the parts of the word, side by side."""
    have, want = parts(name), parts(word)
    if want[0][:3] not in name.lower():
        return False  # most names: this saves comparing their words one by one
    starts = range(len(have) - len(want) + 1)
    return any(all(map(is_same, have[start : start + len(want)], want)) for start in starts)


def names_of(source: Source) -> Iterator[str]:
    """The name of the module with its folders below the package, and of what is defined in it."""
    yield "_".join(PurePosixPath(source.path).with_suffix("").parts[1:])
    yield from (node.name for node in source.walk() if isinstance(node, DEFINITIONS))


def names_by_folder(root: Path = ROOT) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for source in sources(root, PACKAGES):
        names.setdefault(PurePosixPath(source.path).parent.as_posix(), []).extend(names_of(source))
    return names


def answer(question: Question, names: dict[str, list[str]]) -> Answer:
    for word in question.words:
        counts = Counter({folder: sum(holds(name, word) for name in inside) for folder, inside in names.items()})
        if counts.total():
            break
    # Folders with equal counts by name, so that the table is the same each time.
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Answer(question, tuple((folder, count) for folder, count in order if count))


def answers(root: Path = ROOT) -> list[Answer]:
    names = names_by_folder(root)
    return [answer(question, names) for question in questions()]


def table(rows: list[Answer]) -> str:
    lines = [
        "{} {:<22} {}".format(
            "found  " if row.is_found else "not yet",
            "/".join(row.question.words[:2])[:22],
            ", ".join(f"{folder} {count}" for folder, count in row.counts[:3]) or "nowhere",
        )
        + ("" if row.is_found else f"   → {', '.join(row.question.folder)}")
        for row in rows
    ]
    return "\n".join([*lines, f"{sum(row.is_found for row in rows)} of {len(rows)} found", ""])


if __name__ == "__main__":
    sys.stdout.write(table(answers()))
