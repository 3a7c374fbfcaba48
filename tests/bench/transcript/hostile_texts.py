"""Texts that models should not write, but do."""

import random
from collections.abc import Callable
from functools import cache

_MARKS = "".join(chr(code) for code in range(0x0300, 0x0370))
_WORDS = ("and", "a", "window", "that", "nobody", "looks", "through", "while", "it", "rains")
_SMILES = "😀🎉👍🏽👩‍👩‍👧‍👦🇩🇪❤️🧑🏿‍🚀🐙"


def _words(count: int) -> str:
    chosen = random.Random(7)
    return " ".join(chosen.choice(_WORDS) for _ in range(count))


def _table(rows: int, columns: int) -> str:
    head = "|" + "|".join(f" c{column} " for column in range(columns)) + "|\n" + "|---" * columns + "|\n"
    return head + "".join(
        "|" + "|".join(f" {row * column % 977} " for column in range(columns)) + "|\n" for row in range(rows)
    )


def _zalgo() -> str:
    chosen = random.Random(7)
    letters = _words(600)
    return "".join(letter + "".join(chosen.choices(_MARKS, k=20)) * (letter != " ") for letter in letters)


def _quotes() -> str:
    # Ten thousand nested quotes on one line: with a line for each level there would be fifty million characters.
    return ">" * 10_000 + " the innermost\n\nAnd on.\n"


def _formulas() -> str:
    return "\n\n".join(
        f"With $a_{{{n}}} = \\frac{{{n}}}{{n^2}}$ it follows that\n\n$$\\sum_{{k=1}}^{{{n}}} k^2 = {n}$$"
        for n in range(500)
    )


_MAKERS: dict[str, Callable[[], str]] = {
    "one line, no space": lambda: "x" * 1_000_000 + "\n",
    "one line of words": lambda: _words(230_000)[:1_000_000] + "\n",
    "5,000 rows": lambda: _table(5_000, 4),
    "2,000 columns": lambda: _table(4, 2_000),
    "20,000 lines of code": lambda: (
        "```python\n"
        + "".join(f"value_{n} = call(value_{n - 1}, 'text', {n})  # line\n" for n in range(20_000))
        + "```\n"
    ),
    "one line of code": lambda: "```json\n[" + '{"key": 123},' * 80_000 + "]\n```\n",
    "10,000 nested quotes": _quotes,
    "100,000 emphasis marks": lambda: "*a **b " * 33_334 + "\n",
    "3,000 images": lambda: "".join(f"![picture {n}](https://example.org/{n}.png)\n\n" for n in range(3_000)),
    "50,000 links": lambda: "".join(f"[{n}](https://a.example/{n}) " + "\n" * (n % 50 == 0) for n in range(50_000)),
    "10,000 items": lambda: "".join(f"- item number {n} with a few words\n" for n in range(10_000)),
    "1,000 formulas": _formulas,
    "zalgo": _zalgo,
    "100,000 emoji": lambda: (_SMILES * (100_000 // 8 + 1)) + "\n",
}
NAMES = tuple(_MAKERS)


@cache
def hostile_text(name: str) -> str:
    """Return the text with this name."""
    return _MAKERS[name]()


def break_lines(text: str, width: int = 100) -> str:
    """Return the text with no line longer than `width`.

    A plain document lays out a line again at every insertion, so with long lines it would be no limit.
    """
    lines = text.split("\n")
    return "\n".join("\n".join(line[start : start + width] for start in range(0, len(line), width)) for line in lines)
