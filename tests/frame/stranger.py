"""Whether a stranger who knows the field finds a feature by the word that everybody uses for it.

    python -m tests.frame.stranger

For each question in stranger_questions.toml the names of modules, classes and functions that hold its word are
counted, folder by folder; a module is named with its folders, as an import does. A question's words are tried in
their order: the first that is met anywhere decides. The folder with the most must be one in which the question is
decided (`folder`), lie within it or contain it directly. Comments and strings do not count, and neither does a part
of a word: `retry` is in `RetryPolicy` and in `retries`, not in `retrying`.

`open = true` marks a question whose feature is not found yet. The marks may only go.
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
    """As it stands in the file. `open`: the feature is not found yet."""

    ask: str
    words: tuple[str, ...]
    folder: tuple[str, ...]
    open: bool = False


@dataclass(frozen=True)
class Answer:
    """Where the words are: the folders with the most names first, and whether these are right."""

    question: Question
    counts: tuple[tuple[str, int], ...]

    @property
    def tops(self) -> tuple[str, ...]:
        return tuple(folder for folder, count in self.counts if count == self.counts[0][1])

    @property
    def is_found(self) -> bool:
        """All of those with the most must be right: whoever has two to choose from has not found it yet."""
        return bool(self.counts) and all(self._is_right(top) for top in self.tops)

    def _is_right(self, top: str) -> bool:
        return any(
            top == right or top.startswith(f"{right}/") or PurePosixPath(right).parent.as_posix() == top
            for right in self.question.folder
        )


def questions(file: Path = QUESTIONS) -> list[Question]:
    found = tomllib.loads(file.read_text(encoding="utf-8"))["question"]
    return [Question(q["ask"], tuple(q["words"]), tuple(q["folder"]), q.get("open", False)) for q in found]


@cache
def parts(name: str) -> tuple[str, ...]:
    """The words of a name: those of `find_bar` and of `FindBar` are the same."""
    return tuple(part.lower() for part in _PART.findall(name))


def plurals(word: str) -> tuple[str, ...]:
    return (f"{word}s", f"{word}es", f"{word.removesuffix('y')}ies")


def is_same(one: str, other: str) -> bool:
    """Whether both are one word, in the singular or the plural."""
    return one == other or one in plurals(other) or other in plurals(one)


def holds(name: str, word: str) -> bool:
    """Whether the parts of the word stand in the name, side by side."""
    have, want = parts(name), parts(word)
    if want[0][:3] not in name.lower():
        return False  # most names: it saves taking their words one by one
    places = range(len(have) - len(want) + 1)
    return any(all(map(is_same, have[at : at + len(want)], want)) for at in places)


def names_of(source: Source) -> Iterator[str]:
    """The module with its folders below the package, and what is defined in it."""
    yield "_".join(PurePosixPath(source.path).with_suffix("").parts[1:])
    yield from (node.name for node in source.walk() if isinstance(node, DEFINITIONS))


def names_by_folder(root: Path = ROOT) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for source in sources(root, PACKAGES):
        found.setdefault(PurePosixPath(source.path).parent.as_posix(), []).extend(names_of(source))
    return found


def answer(question: Question, names: dict[str, list[str]]) -> Answer:
    for word in question.words:
        counts = Counter({folder: sum(holds(name, word) for name in inside) for folder, inside in names.items()})
        if counts.total():
            break
    # By name where there are as many: the table is the same each time.
    order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return Answer(question, tuple(each for each in order if each[1]))


def answers(root: Path = ROOT) -> list[Answer]:
    names = names_by_folder(root)
    return [answer(question, names) for question in questions()]


def table(found: list[Answer]) -> str:
    lines = [
        "{} {:<22} {}".format(
            "found  " if each.is_found else "not yet",
            "/".join(each.question.words[:2])[:22],
            ", ".join(f"{folder} {count}" for folder, count in each.counts[:3]) or "nowhere",
        )
        + ("" if each.is_found else f"   → {', '.join(each.question.folder)}")
        for each in found
    ]
    return "\n".join([*lines, f"{sum(each.is_found for each in found)} of {len(found)} found", ""])


if __name__ == "__main__":
    sys.stdout.write(table(answers()))
