"""What is copied, in all forms, put together piece by piece."""

from collections.abc import Iterable, Iterator

from ui.transcript.copying.nested_html import HtmlWriter
from ui.transcript.copying.nested_markdown import MarkdownWriter
from ui.transcript.copying.passage import EMPTY_EXTRACT, CopyExtract

_CHARSET = '<meta charset="utf-8">'
_MESSAGE_SEPARATOR = "\n\n"


class CopyFormats:
    """Collects messages. `finish` must have run to its end before `plain`, `markdown` and `html` are all of it."""

    def __init__(self) -> None:
        self.plain = self.markdown = self.html = ""
        self._done: tuple[list[str], list[str], list[str]] = ([], [], [])
        self._begin()

    def _begin(self) -> None:
        self._plain: list[str] = []
        self._markdown, self._html = MarkdownWriter(), HtmlWriter()

    def add(self, extract: CopyExtract) -> None:
        """A block of the message at hand."""
        if extract is EMPTY_EXTRACT:
            return
        self._plain += [extract.before, extract.text]
        self._markdown.add(extract.markdown)
        self._html.add(extract.html)

    def finish_message(self) -> None:
        """What follows belongs to another one."""
        texts = ("".join(self._plain), self._markdown.text(), self._html.text())
        for done, text in zip(self._done, texts, strict=True):
            if text:
                done.append(text)
        self._begin()

    def add_heading(self, words: str) -> None:
        """A heading between messages, for those who read Markdown."""
        self._done[1].append(f"## {words}")

    def join_in_steps(self) -> Iterator[None]:
        """Join everything, a form at a time: each may be megabytes."""
        self.finish_message()
        plain, markdown, html = self._done
        self.plain = _MESSAGE_SEPARATOR.join(plain)
        yield
        self.markdown = _MESSAGE_SEPARATOR.join(markdown)
        yield
        self.html = "".join([_CHARSET, *html]) if html else ""
        yield


def copy_formats_of(extracts: Iterable[CopyExtract]) -> CopyFormats:
    """One message at once."""
    forms = CopyFormats()
    for extract in extracts:
        forms.add(extract)
    for _ in forms.join_in_steps():
        pass
    return forms
