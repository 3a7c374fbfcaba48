"""Ordinary texts: an answer of any length, and conversations of any number of messages."""

import hashlib
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from PySide6.QtGui import QImage

from desktop_agent.types.blocks import Image, StoredSource, Text
from desktop_agent.types.messages import Message

DELTA = 5
"""Characters of a delta."""
AT_ONCE = 4_000
"""Characters of a frame when the whole answer arrives at once."""
_RATE, _FRAMES = 200, 60
_PICTURES = 6

SECTION = """## Section {n}: what happens to a block

A paragraph of ordinary prose with **bold words**, some *emphasis*, a bit of `inline code` and a
[link](https://example.org/{n}) to somewhere; it goes on for a few lines so that breaking them costs something,
as it does in an answer of a model. The quick brown fox jumps over the lazy dog while nobody looks.

- first point, with a few words
- second point, with `code` in it
- third point, which is a little longer than the others and wraps

```python
def section_{n}(values: list[int]) -> int:
    total = 0
    for value in values:
        total += value * {n}  # a comment
    return total
```

| name | value | remark |
|------|------:|--------|
| a{n} | {n} | first |
| b{n} | 2 | second **bold** |

"""
_PROSE = (
    "An answer explains what was asked, gives a reason, and names what to look at next; number {n} does so in "
    "**some words** and a bit of `code`. It is neither short nor long, as most of them are. "
)
_PARTS = (
    _PROSE * 2,
    "```python\ndef part_{n}(number: int) -> str:\n    # what it does\n    return f'part {{number}}' * {n}\n```",
    _PROSE,
    "| name | value | remark |\n|---|--:|---|\n| a{n} | {n} | first |\n| b{n} | 2 | second |\n| c{n} | 3 | **third** |",
    "- one point about {n}\n- another point, which needs a few more words than the first\n- and a last one",
    "### Heading {n}\n\n" + _PROSE,
    "![A drawing of {n}](https://example.org/{n}.png)",
    "> Somebody said {n} before, and meant it.",
)


def text_of(size: int) -> str:
    """Return an answer of so many characters."""
    sections: list[str] = []
    length = 0
    while length < size:
        sections.append(SECTION.format(n=len(sections)))
        length += len(sections[-1])
    return "".join(sections)[:size]


def frames_of(text: str, *, at_once: bool) -> list[str]:
    """Return the text of each frame: 200 deltas a second in 60 frames, or AT_ONCE characters."""
    if at_once:
        return [text[start : start + AT_ONCE] for start in range(0, len(text), AT_ONCE)]
    ends = [(number * _RATE // _FRAMES) * DELTA for number in range(len(text) * _FRAMES // (_RATE * DELTA) + 3)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    return [piece for piece in pieces if piece]


def deltas_of(frame: str) -> list[str]:
    """Return the deltas of a frame, as a server sends them."""
    return [frame[start : start + DELTA] for start in range(0, len(frame), DELTA)]


def messages(count: int, pictures: "Pictures") -> Iterator[Message]:
    """Yield questions and answers in turn, 550 characters on average; every twentieth question has a picture."""
    for number in range(count // 2):
        question = f"Question {number}: " + "what about this, and why is it so? " * (1 + number % 5)
        if number % 20 == 0:
            picture = Image(source=pictures.stored[number // 20 % len(pictures.stored)])
            yield Message.user_with_blocks([Text(text=question), picture])
        else:
            yield Message.user(question)
        parts = [_PARTS[(number * 3 + part) % len(_PARTS)].format(n=number) for part in range(5 + number % 4)]
        yield Message.assistant("\n\n".join(parts) + "\n")


class Pictures:
    """A few pictures in a folder, whose file names are hashes of their contents."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.stored = [self._draw(number) for number in range(_PICTURES)]

    def path_of(self, source: StoredSource) -> Path:
        """Return the file of a picture."""
        return self._folder / source.digest

    def _draw(self, number: int) -> StoredSource:
        width, height = 320 + 160 * (number % 3), 240 + 200 * (number % 2)
        pixels = random.Random(number).randbytes(width * height * 4)
        drawn = self._folder / "drawn.png"
        image = QImage(pixels, width, height, QImage.Format.Format_RGB32)
        image.save(str(drawn))
        data = drawn.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        drawn.rename(self._folder / digest)
        return StoredSource(digest=digest, media_type="image/png", size=len(data), width=width, height=height)
