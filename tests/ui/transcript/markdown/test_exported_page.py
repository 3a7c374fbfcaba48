"""An exported page says the same words as the window, for every example of the specification and for what is added."""

from selectolax.lexbor import LexborHTMLParser

from desktop_agent.exchange.html_markdown import MarkdownRenderer
from tests.gallery import written
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import LINE_BREAK, OBJECT, SpanStyle, parse_inline
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.stream import parse_leaves


def letters(text: str) -> str:
    return "".join(text.split())


def page_letters(markdown: str) -> str:
    page = LexborHTMLParser(MarkdownRenderer(lambda code, language: None, lambda latex, display: None).render(markdown))
    # Not in the window's leaves: labels of code and of notes, remarks of the page, and drawn or spelled formulas.
    for node in page.css("figcaption, .footnote > sup, .muted, .formula, .latex, .box"):
        node.decompose()
    return letters(page.body.text() if page.body else "")


def window_letters(markdown: str) -> str:
    leaves, references = parse_leaves(markdown)
    return letters("".join(leaf_text(leaf, references) for leaf in leaves if leaf.kind != "math"))


def leaf_text(leaf: Leaf, references: References) -> str:
    if leaf.kind == "code":
        return leaf.text
    return "".join(shown_text(text, references) for text in (leaf.text, *(cell for row in leaf.cells for cell in row)))


def shown_text(text: str, references: References) -> str:
    line = parse_inline(text, references)
    data = bytearray(line.text.encode("utf-16-le"))
    for span in reversed(line.spans):
        if span.style & SpanStyle.NOTE:
            del data[2 * span.start : 2 * (span.start + span.length)]
    return data.decode("utf-16-le").replace(OBJECT, "").replace(LINE_BREAK, " ")


def test_examples_of_the_specification(examples):
    different = {
        example.number: (window_letters(example.markdown), page_letters(example.markdown))
        for example in examples
        if window_letters(example.markdown) != page_letters(example.markdown)
    }
    assert different == {}


def test_what_is_added_to_the_language():
    texts = [value for name, value in vars(written).items() if name.isupper() and isinstance(value, str)]
    assert len(texts) >= 6
    for text in texts:
        assert page_letters(text) == window_letters(text)
