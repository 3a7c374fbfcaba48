"""A text read in sections says the same as a text that is read whole."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from desktop_agent.markdown.parser import FOOTNOTES_KEY, MATH_OPENING
from tests.frame.examples import examples
from tests.ui.transcript.random_markdown import markdown
from ui.transcript.markdown import sections as sections_module
from ui.transcript.markdown.sections import SECTION, definitions_of, run_to_end, split_in_steps, split_sections
from ui.transcript.markdown.stream import normalize_newlines, parse_leaves


def names(references):
    return {
        label: set(reference) if label == FOOTNOTES_KEY else reference["href"]
        for label, reference in references.items()
    }


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(markdown, max_size=3).map("\n\n".join), st.sampled_from([1, 1, 30, 200]))
@example("- ```\n  x\n\n```\n\na\n\n# b", 1)
@example("$$\n```\n$$\n\na\n\n```\n\nb\n\n```\n\nc", 1)
@example("$$\n# a\n$$\n\n  ```\n\n# b\n", 1)
@example("1. a\n\n   ~~~\n   b\n\nc\n\n   ~~~\n\nd\n\n# e", 1)
@example("- a\n   ````\n- a\n# h\n   ````\n# h", 1)
@example("   ```\n   ```\n   ```\n\nw\n- a", 1)
@example("- a\n   ````\n   ````\n   ````\n# h\n   ````\n# h", 1)
@example("w\n2. ```\n   ```\n\nx\n\n# h", 1)
@example("- ```|x\n  -|-\n  ```\n\nw\n\n# h", 1)
@example("[a]: /1\n\n[A]: /2\n\n[^b]: x\n\n[^b]: y\n\n> [c]:\n> /3", 1)
def test_sections_say_the_same_as_the_whole_text(text, least):
    text = normalize_newlines(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections_module, "SECTION", least)
        sections = split_sections(text)
        definitions = definitions_of(text, sections)
        assert run_to_end(split_in_steps(text)) == (sections, definitions)
    assert "".join(text[start:end] for start, end in sections) == text
    assert all(end - start >= least for start, end in sections[:-1])
    expected, references = parse_leaves(text)
    assert [leaf for start, end in sections for leaf in parse_leaves(text[start:end])[0]] == list(expected)
    assert names(definitions) == names(references)


PARTS = (
    "Words of a paragraph.\n\n",
    "```py\n# no heading\n\nx = 1\n```\n\n",
    "| a |\n|---|\n| 1 |\n\n",
    "$$\nx\n$$\n\n",
    "1. item\n\n   ```\n   code\n   ```\n\n2. more\n\n",
    "> said\n\n",
    "**Bold** begins it.\n\n",
    "# Heading\n",
)


def test_an_ordinary_long_text_is_cut_into_sections_of_about_one_length():
    text = "".join(PARTS[index % len(PARTS)] * (1 + index % 3) for index in range(2000))
    lengths = [end - start for start, end in split_sections(text)]
    assert len(lengths) > len(text) / SECTION / 1.2
    assert max(lengths) < 1.2 * SECTION


def test_only_sections_that_may_hold_a_definition_are_parsed(monkeypatch):
    text = "Words [of](https://x.org) it.\n\n" * 2000 + "[a]: /url\n\n" + "- [ ] a\n\nwords\n\n" * 2000
    parsed = []
    outline = sections_module.parse_blocks
    monkeypatch.setattr(
        sections_module, "parse_blocks", lambda part, *rest: parsed.append(len(part)) or outline(part, *rest)
    )
    assert names(definitions_of(text, split_sections(text))) == {"A": "/url"}
    assert len(parsed) == 1


@pytest.mark.parametrize(
    "text",
    [
        "   ```\n   ~~~ \n" * 3000,
        "# a\n" * 15_000,
        "# a $$\n" * 9000,
        "```\n```\n# a\n" * 4000,
        "w\n> ```\n\n# a\n" * 4000,
    ],
)
def test_formulas_are_looked_for_once(text, monkeypatch):
    lengths = []

    class Counted:
        def finditer(self, text, start, end):
            lengths.append(max(0, end - start))
            return MATH_OPENING.finditer(text, start, end)

    monkeypatch.setattr(sections_module, "MATH_OPENING", Counted())
    split_sections(text)
    assert len(text) / 2 < sum(lengths) <= 3 * len(text)


@pytest.mark.parametrize(
    ("line", "often"),
    [("# a\n", 2500), ("# a $$\n", 2500), ("   ```\n", 2500), ("words of it\n", 25_000), ("[^a\n", 25_000)],
)
def test_cutting_stops_often(line, often):
    text = line * (200_000 // len(line))
    assert sum(1 for _ in split_in_steps(text)) >= len(text) // often


def test_headings_far_from_a_blank_line_end_sections():
    assert max(end - start for start, end in split_sections("# a\n" * 20_000)) <= SECTION + 10


def test_a_label_over_two_lines_opens_no_code_block():
    assert not sections_module._FENCE.search("[^a\nb]: ```\n")
    assert sections_module._FENCE.search("[^a]: ```\n")


def test_a_code_block_without_end_is_one_section():
    text = "a\n\n" * 2000 + "```\n" + "# b\n\n" * 3000
    assert split_sections(text)[-1][0] <= 6000
    assert split_sections("") == []
