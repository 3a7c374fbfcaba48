"""The examples of the CommonMark specification: what is shown is what their HTML says, whole and letter by letter.

Which examples are shown otherwise on purpose stands in docs/markdown.md, which is read here.
"""

import re
from pathlib import Path

from tests.ui.transcript.markdown.shapes import shape_of_html, shape_of_leaves
from tests.ui.transcript.random_markdown import Reader
from ui.transcript.markdown.stream import parse_leaves

PAGE = Path(__file__).parents[4] / "docs" / "markdown.md"


def on_purpose() -> set[int]:
    """Return the numbers in the last column of the table of examples."""
    numbers: set[int] = set()
    for cell in re.findall(r"^\| [^|]+ \| [^|]+ \| ([\d–, ]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        for part in cell.split(","):
            first, _, last = part.strip().partition("–")
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def test_what_is_shown_is_what_the_specification_says_or_listed_as_different(examples):
    assert len(examples) == 652
    different = {
        example.number
        for example in examples
        if shape_of_leaves(*parse_leaves(example.markdown)) != shape_of_html(example.html)
    }
    assert different == on_purpose()
    assert len(on_purpose()) < 80


def test_every_example_is_the_same_letter_by_letter(examples):
    for example in examples:
        reader = Reader()
        for char in example.markdown:
            reader.append(char)
        reader.finish()
        whole, references = parse_leaves(example.markdown)
        assert (example.number, tuple(reader.closed)) == (example.number, whole)
        assert reader.stream.references.keys() == references.keys()
