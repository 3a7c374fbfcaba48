"""What blocks say when they are copied: plain, as Markdown and as HTML. Places are those of the plain text."""

from html import escape

from PySide6.QtCore import QCoreApplication

from ui.transcript.blocks.block import EVERYTHING, Block
from ui.transcript.copying.leaf_forms import code_html, code_markdown, math_html, math_markdown
from ui.transcript.markdown.inline import Line, RemoteImage, cut, units
from ui.transcript.markdown.inline.links import safe_target
from ui.transcript.markdown.written import as_html, as_markdown

_OPENING, _CLOSING = "$$\n", "\n$$"


class LineBlock(Block):
    """A line of styled text."""

    def line(self) -> Line:
        """The text and its styles."""
        raise NotImplementedError

    def plain(self) -> str:
        """Without markup."""
        return self.line().plain()

    def markdown(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """With its styles; a formula that is selected in part is left out."""
        line = self.line()
        return as_markdown(line, line.from_plain(start), line.from_plain(end)).strip(" ")

    def html(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """A paragraph."""
        line = self.line()
        return f"<p>{as_html(line, line.from_plain(start), line.from_plain(end))}</p>"


class SourceBlock(Block):
    """Code, as it is in a file. `info` is what stands behind its fence."""

    language = ""
    info = ""

    @property
    def text(self) -> str:
        """All of it."""
        raise NotImplementedError

    def plain(self) -> str:
        """The code."""
        return self.text

    def markdown(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """In a fence."""
        return code_markdown(cut(self.text, start, end), self.info)

    def html(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """With its line ends."""
        return code_html(cut(self.text, start, end), self.language)


class FormulaBlock(Block):
    """A formula that stands alone."""

    OPENING = _OPENING
    text = ""

    def plain(self) -> str:
        """The source between its signs."""
        return f"{_OPENING}{self.text}{_CLOSING}"

    def spoken(self) -> str:
        """The source, with what it is before it."""
        return QCoreApplication.translate("Transcript", "Formula: {0}").format(self.text)

    def markdown(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """A formula; of a part of it, the source."""
        plain = self.plain()
        return math_markdown(self.text) if not start and end >= units(plain) else cut(plain, start, end)

    def html(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """Its source."""
        plain = self.plain()
        return math_html(self.text if not start and end >= units(plain) else cut(plain, start, end))


class PictureBlock(Block):
    """A picture that a text points to; it is copied as a whole."""

    def __init__(self, image: RemoteImage) -> None:
        self._image = image

    def label(self) -> str:
        """What it shows, as the text says."""
        return self._image.label or QCoreApplication.translate("Transcript", "Picture")

    def plain(self) -> str:
        """Description and address."""
        return f"{self._image.label} ({self._image.target})" if self._image.label else self._image.target

    def markdown(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """As a picture, whatever of it is selected."""
        del start, end
        label = self._image.label.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"![{label}](<{self._image.target}>)"

    def html(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """A link: whoever pastes it fetches nothing by that."""
        del start, end
        label, target = escape(self.label()), safe_target(self._image.target)
        return f'<p><a href="{escape(target)}">{label}</a></p>' if target else f"<p>{label}</p>"
