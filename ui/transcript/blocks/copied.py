"""What blocks say when they are copied: plain, as Markdown and as HTML. Places are those of the plain text."""

from html import escape

from PySide6.QtCore import QCoreApplication

from ui.transcript.blocks.block import WHOLE_TEXT, Block
from ui.transcript.copying.leaf_forms import code_html, code_markdown, math_html, math_markdown
from ui.transcript.markdown.inline import Line, RemoteImage, slice_utf16, utf16_length
from ui.transcript.markdown.inline.links import safe_target
from ui.transcript.markdown.written import line_to_html, line_to_markdown

_OPENING, _CLOSING = "$$\n", "\n$$"


class StyledTextBlock(Block):
    """A line of styled text."""

    def line(self) -> Line:
        """The text and its styles."""
        raise NotImplementedError

    def plain(self) -> str:
        """Without markup."""
        return self.line().plain()

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """With its styles; a formula that is selected in part is left out."""
        line = self.line()
        return line_to_markdown(line, line.from_plain(start), line.from_plain(end)).strip(" ")

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A paragraph."""
        line = self.line()
        return f"<p>{line_to_html(line, line.from_plain(start), line.from_plain(end))}</p>"


class CodeSourceBlock(Block):
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

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """In a fence."""
        return code_markdown(slice_utf16(self.text, start, end), self.info)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """With its line ends."""
        return code_html(slice_utf16(self.text, start, end), self.language)


class FormulaSourceBlock(Block):
    """A formula that stands alone."""

    OPENING = _OPENING
    text = ""

    def plain(self) -> str:
        """The source between its signs."""
        return f"{_OPENING}{self.text}{_CLOSING}"

    def spoken_text(self) -> str:
        """The source, with what it is before it."""
        return QCoreApplication.translate("Transcript", "Formula: {0}").format(self.text)

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A formula; of a part of it, the source."""
        plain = self.plain()
        return math_markdown(self.text) if not start and end >= utf16_length(plain) else slice_utf16(plain, start, end)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Its source."""
        plain = self.plain()
        return math_html(self.text if not start and end >= utf16_length(plain) else slice_utf16(plain, start, end))


class ImageSourceBlock(Block):
    """A picture that a text points to; it is copied as a whole."""

    def __init__(self, image: RemoteImage) -> None:
        self._image = image

    def label(self) -> str:
        """What it shows, as the text says."""
        return self._image.label or QCoreApplication.translate("Transcript", "Picture")

    def plain(self) -> str:
        """Description and address."""
        return f"{self._image.label} ({self._image.target})" if self._image.label else self._image.target

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """As a picture, whatever of it is selected."""
        del start, end
        label = self._image.label.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"![{label}](<{self._image.target}>)"

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A link: whoever pastes it fetches nothing by that."""
        del start, end
        label, target = escape(self.label()), safe_target(self._image.target)
        return f'<p><a href="{escape(target)}">{label}</a></p>' if target else f"<p>{label}</p>"
