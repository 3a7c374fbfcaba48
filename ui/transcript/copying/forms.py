"""What is copied, in all forms, put together piece by piece."""

from collections.abc import Iterable, Iterator

from ui.transcript.copying.nested_html import HtmlText
from ui.transcript.copying.nested_markdown import MarkdownText
from ui.transcript.copying.passage import NOTHING, Extract

_CHARSET = '<meta charset="utf-8">'
_BETWEEN = "\n\n"


class Forms:
    """Collects messages. `finish` must have run to its end before `plain`, `markdown` and `html` are all of it."""

    def __init__(self) -> None:
        self.plain = self.markdown = self.html = ""
        self._done: tuple[list[str], list[str], list[str]] = ([], [], [])
        self._begin()

    def _begin(self) -> None:
        self._plain: list[str] = []
        self._markdown, self._html = MarkdownText(), HtmlText()

    def add(self, extract: Extract) -> None:
        """A block of the message at hand."""
        if extract is NOTHING:
            return
        self._plain += [extract.before, extract.text]
        self._markdown.add(extract.markdown)
        self._html.add(extract.html)

    def end_message(self) -> None:
        """What follows belongs to another one."""
        texts = ("".join(self._plain), self._markdown.text(), self._html.text())
        for done, text in zip(self._done, texts, strict=True):
            if text:
                done.append(text)
        self._begin()

    def head(self, words: str) -> None:
        """A heading between messages, for those who read Markdown."""
        self._done[1].append(f"## {words}")

    def finish(self) -> Iterator[None]:
        """Join everything, a form at a time: each may be megabytes."""
        self.end_message()
        plain, markdown, html = self._done
        self.plain = _BETWEEN.join(plain)
        yield
        self.markdown = _BETWEEN.join(markdown)
        yield
        self.html = "".join([_CHARSET, *html]) if html else ""
        yield


def forms_of(extracts: Iterable[Extract]) -> Forms:
    """One message at once."""
    forms = Forms()
    for extract in extracts:
        forms.add(extract)
    for _ in forms.finish():
        pass
    return forms
