"""Where the claims of an answer come from: a numbered list, each source with its title and its host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from PySide6.QtCore import QCoreApplication, QPoint, QRect, Qt, QUrl
from PySide6.QtGui import QFont, QFontMetricsF, QPainter

from desktop_agent.vocabulary.blocks import Citation
from ui.look.visible_text import with_hidden_shown
from ui.transcript.blocks.block import EVERYTHING, Brush, Control
from ui.transcript.blocks.buttons import focus_ring
from ui.transcript.blocks.listed.listed_block import ListedBlock
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line, Span, Style, tip_of, units
from ui.transcript.markdown.inline.hosts import shown_host
from ui.transcript.markdown.written import as_html, as_markdown

_LONGEST = 300
_AT_FIRST = 5


@dataclass(frozen=True, slots=True)
class Source:
    """One source. `url` is empty where it leads nowhere that may be opened."""

    number: int
    title: str
    host: str = ""
    url: str = ""

    @property
    def name(self) -> str:
        """What the control is called."""
        words = QCoreApplication.translate("Transcript", "Source {0}: {1}").format(self.number, self.title)
        return f"{words}, {self.host}" if self.host and self.host != self.title else words

    @property
    def text(self) -> str:
        """Title and address, as they are copied."""
        address = f" ({self.url})" if self.url and self.url != self.title else ""
        return f"{self.number}. {self.title}{address}"

    @property
    def linked(self) -> Line:
        """The title, leading to the address."""
        leads = (Span(0, units(self.title), Style.LINK, self.url),) if self.url else ()
        return Line(self.title, leads)


def sources_of(citations: Sequence[Citation]) -> list[Source]:
    """Each once, in the order in which they were first cited. What a server says of them is seen, not obeyed."""
    found: dict[tuple[str, str], Source] = {}
    for citation in citations:
        url = _openable(citation.url or "")
        words = citation.title or citation.url or citation.quoted or ""
        key = (url, "" if url else words)
        if words and key not in found:
            found[key] = Source(len(found) + 1, _one_line(words), shown_host(_ascii(url)) if url else "", url)
    return list(found.values())


def sources_markdown(sources: Sequence[Source], *, has_heading: bool = True) -> str:
    """The heading, and a numbered list."""
    lines = "\n".join(f"{each.number}. {as_markdown(each.linked)}" for each in sources)
    return "\n\n".join([*([_heading()] if has_heading else []), *([lines] if lines else [])])


class SourcesBlock(ListedBlock):
    """One line each; the first few, and the others when they are asked for."""

    def __init__(
        self, sources: Sequence[Source], open_: Callable[[str], None], show_all: Callable[[], None] | None = None
    ) -> None:
        self._sources = sources
        self._shown = sources if show_all is None else sources[:_AT_FIRST]
        self._open = open_
        self._show_all = show_all
        self._controls: list[Control] = []
        self._places: list[QRect] = []
        self._line = 0
        self._width = 0

    @staticmethod
    def is_long(sources: Sequence[Source]) -> bool:
        """Whether some stay away at first."""
        return len(sources) > _AT_FIRST + 1

    def estimate(self, width: int, look: Look) -> int:
        """Exact."""
        del width
        return self._line_of(look) * (1 + len(self._shown) + (self._show_all is not None))

    def lay(self, width: int, look: Look) -> int:
        """A heading, and a line for each source."""
        line = self._line = self._line_of(look)
        self._width, self.laid, self._controls = width, True, []
        metrics = QFontMetricsF(look.small)
        self._places = [QRect(0, 0, min(width, int(metrics.horizontalAdvance(_heading())) + look.px(2)), line)]
        for row, source in enumerate(self._shown, 1):
            box = QRect(0, row * line, min(width, self._needed(source, look)), line)
            self._places.append(box)
            if source.url:
                self._controls.append(Control(source.name, box, lambda url=source.url: self._open(url), is_link=True))
        if self._show_all is not None:
            wide = int(metrics.horizontalAdvance(self._all_words())) + look.px(8)
            box = QRect(0, (len(self._shown) + 1) * line, wide, line)
            self._places += [box] * (len(self._sources) - len(self._shown))
            self._controls.append(Control(self._all_words(), box, self._show_all))
        return self.estimate(width, look)

    def texts(self) -> Sequence[str]:
        """The heading, and all sources."""
        return [_heading(), *(each.text for each in self._sources)]

    def places(self) -> Sequence[QRect]:
        """Their lines. Those that stay away are where they would be asked for."""
        return self._places

    def markdown(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """The heading, and a numbered list."""
        if self.is_inside(start, end):
            return super().markdown(start, end)
        has_heading, sources = self._touched(start, end)
        return sources_markdown(sources, has_heading=has_heading)

    def html(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """The same as elements."""
        if self.is_inside(start, end):
            return super().html(start, end)
        has_heading, sources = self._touched(start, end)
        items = "".join(f"<li>{as_html(each.linked)}</li>" for each in sources)
        begins = f'<ol start="{sources[0].number}">' if sources and sources[0].number > 1 else "<ol>"
        return f"{f'<p>{_heading()}</p>' if has_heading else ''}{f'{begins}{items}</ol>' if items else ''}"

    def _touched(self, start: int, end: int) -> tuple[bool, list[Source]]:
        """Whether the heading is, and which sources are."""
        chosen = self.chosen(start, end)
        return 0 in chosen, [self._sources[number - 1] for number in chosen if number]

    def paint(self, brush: Brush) -> None:
        """From top to bottom."""
        painter, look = brush.painter, brush.look
        chosen = self.chosen(*brush.selection) if brush.selection else []
        for box in self.boxes(*brush.selection) if brush.selection else ():
            painter.fillRect(box, look.color("selection"))
        painter.setFont(look.small)
        painter.setPen(look.color("text" if 0 in chosen else "muted"))
        self._draw(painter, QRect(0, 0, self._width, self._line), _heading())
        for row, source in enumerate(self._shown, 1):
            self._paint_source(brush, source, row * self._line, is_chosen=row in chosen)
        if self._show_all is not None:
            name = self._all_words()
            painter.setFont(look.small)
            painter.setPen(look.color("text" if brush.hovered == name else "link"))
            self._draw(painter, self._controls[-1].box, name)
        for control in self._controls:
            if brush.focused == control.name:
                focus_ring(painter, look, control.box.adjusted(-4, 0, 4, 0))

    def controls(self) -> Sequence[Control]:
        """The sources that can be opened."""
        return self._controls

    def link_at(self, point: QPoint) -> str:
        """The target under a point."""
        lines = zip(self._shown, self._places[1:], strict=False)
        return next((source.url for source, box in lines if box.contains(point)), "")

    def tip_at(self, point: QPoint) -> str:
        """The target, and its host as the network asks for it where other letters are shown."""
        url = self.link_at(point)
        host, ascii_host = (shown_host(_ascii(url)), _ascii(url)) if url else ("", "")
        return f"{tip_of(url)} ({ascii_host})" if host != ascii_host else ""

    def spoken(self) -> str:
        """All of them."""
        return "\n".join([_heading(), *(each.name for each in self._sources)])

    def _paint_source(self, brush: Brush, source: Source, top: int, *, is_chosen: bool) -> None:
        painter, look = brush.painter, brush.look
        metrics = QFontMetricsF(look.small)
        x = self._indent(look)
        # Other colours are hard to read on that of a selection.
        muted, link = ("text", "text") if is_chosen else ("muted", "link")
        painter.setFont(look.small)
        painter.setPen(look.color(muted))
        number = f"{source.number}."
        left = x - look.px(8) - int(metrics.horizontalAdvance(number))
        self._draw(painter, QRect(max(0, left), top, x, self._line), number)
        host_width = int(metrics.horizontalAdvance(source.host)) + look.px(10) if source.host else 0
        # The host says where it leads: a long title gives way to it.
        room = max(self._width - x - min(host_width, self._width // 2), look.px(40))
        title = metrics.elidedText(source.title, Qt.TextElideMode.ElideRight, room)
        painter.setPen(look.color(link if source.url else "text"))
        if source.url:
            font = QFont(look.small)
            font.setUnderline(brush.hovered == source.name)
            painter.setFont(font)
        self._draw(painter, QRect(x, top, room, self._line), title)
        if source.host and source.host != source.title:
            x += int(metrics.horizontalAdvance(title)) + look.px(10)
            painter.setFont(look.small)
            painter.setPen(look.color(muted))
            host = metrics.elidedText(source.host, Qt.TextElideMode.ElideLeft, self._width - x)
            self._draw(painter, QRect(x, top, self._width - x, self._line), host)

    def _draw(self, painter: QPainter, box: QRect, text: str) -> None:
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, text)

    def _needed(self, source: Source, look: Look) -> int:
        metrics = QFontMetricsF(look.small)
        host = "" if source.host == source.title else source.host
        words = metrics.horizontalAdvance(source.title) + metrics.horizontalAdvance(host)
        return self._indent(look) + int(words) + look.px(14 if host else 4)

    def _indent(self, look: Look) -> int:
        """Numbers end below each other."""
        return int(QFontMetricsF(look.small).horizontalAdvance(f"{len(self._shown)}.")) + look.px(8)

    def _line_of(self, look: Look) -> int:
        return look.line_of(look.small) + look.px(4)

    def _all_words(self) -> str:
        return QCoreApplication.translate("Transcript", "Show all {0} sources").format(len(self._sources))


def _heading() -> str:
    return QCoreApplication.translate("Transcript", "Sources")


def _openable(url: str) -> str:
    """The address, if it is one of the web; whatever would end it in a text is written as it goes over the wire."""
    url = "".join(_encoded(char) for char in url)
    return url if url.lower().startswith(("http://", "https://")) and QUrl(url).host() else ""


def _ascii(url: str) -> str:
    """The host as the network asks for it."""
    return QUrl(url).host(QUrl.ComponentFormattingOption.FullyEncoded)


def _encoded(char: str) -> str:
    is_plain = char.isprintable() and not char.isspace() and char not in '<>"\\'
    return char if is_plain else quote(char, errors="replace")


def _one_line(text: str) -> str:
    return " ".join(with_hidden_shown(text[:_LONGEST]).split())
