"""The sources of an answer: a numbered list with titles and hosts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from PySide6.QtCore import QPoint, QRect, Qt, QUrl
from PySide6.QtGui import QFont, QFontMetricsF

from desktop_agent.types.blocks import Citation
from ui.style.text import one_line
from ui.transcript.blocks.block import WHOLE_TEXT, Control, ItemListBlock, PaintContext
from ui.transcript.blocks.buttons import paint_focus_ring
from ui.transcript.markdown.inline import Line, Span, SpanStyle
from ui.transcript.markdown.misleading_links import display_host, link_tooltip
from ui.transcript.markdown.serializer import line_to_html, line_to_markdown
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr

_MAX_TITLE_LENGTH = 300
_SHOWN_AT_FIRST = 5


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A cited source. `url` is empty if it must not be opened."""

    number: int
    title: str
    host: str = ""
    url: str = ""

    @property
    def name(self) -> str:
        """Return the name of the control."""
        words = tr("Source {0}: {1}").format(self.number, self.title)
        return f"{words}, {self.host}" if self.host and self.host != self.title else words

    @property
    def text(self) -> str:
        """Return title and address as they are copied."""
        address = f" ({self.url})" if self.url and self.url != self.title else ""
        return f"{self.number}. {self.title}{address}"

    @property
    def linked(self) -> Line:
        """Return the title as a link to the address."""
        spans = (Span(0, utf16_length(self.title), SpanStyle.LINK, self.url),) if self.url else ()
        return Line(self.title, spans)


def cited_sources(citations: Sequence[Citation]) -> list[CitedSource]:
    """Return each source once, in the order of first citation. Servers' texts are displayed, never obeyed."""
    sources: dict[tuple[str, str], CitedSource] = {}
    for citation in citations:
        url = _safe_url(citation.url or "")
        title = citation.title or citation.url or citation.quoted or ""
        key = (url, "" if url else title)
        if title and key not in sources:
            sources[key] = CitedSource(
                len(sources) + 1, one_line(title, _MAX_TITLE_LENGTH), display_host(_ascii(url)) if url else "", url
            )
    return list(sources.values())


def sources_markdown(sources: Sequence[CitedSource], *, has_heading: bool = True) -> str:
    """Return a numbered list, with or without its heading."""
    lines = "\n".join(f"{source.number}. {line_to_markdown(source.linked)}" for source in sources)
    return "\n\n".join([*([_heading()] if has_heading else []), *([lines] if lines else [])])


class SourcesBlock(ItemListBlock):
    """A list of sources, one on each line; all but the first few are hidden until asked for."""

    def __init__(
        self, sources: Sequence[CitedSource], open_: Callable[[str], None], show_all: Callable[[], None] | None = None
    ) -> None:
        self._sources = sources
        self._shown = sources if show_all is None else sources[:_SHOWN_AT_FIRST]
        self._open = open_
        self._show_all = show_all
        self._rects: list[QRect] = []
        self._line = 0
        self._width = 0

    @staticmethod
    def is_long(sources: Sequence[CitedSource]) -> bool:
        """Return whether the list is shortened at first."""
        return len(sources) > _SHOWN_AT_FIRST + 1

    def estimate(self, width: int, style: RenderStyle) -> int:
        del width
        return self._line_height(style) * (1 + len(self._shown) + (self._show_all is not None))

    def layout(self, width: int, style: RenderStyle) -> int:
        """Lay out a heading and a line for each source."""
        line = self._line = self._line_height(style)
        self._width, self.is_laid_out = width, True
        self._controls = []
        metrics = QFontMetricsF(style.small)
        self._rects = [QRect(0, 0, min(width, int(metrics.horizontalAdvance(_heading())) + style.px(2)), line)]
        for row, source in enumerate(self._shown, 1):
            box = QRect(0, row * line, min(width, self._needed_width(source, style)), line)
            self._rects.append(box)
            if source.url:
                self._controls.append(Control(source.name, box, lambda url=source.url: self._open(url), is_link=True))
        if self._show_all is not None:
            button_width = int(metrics.horizontalAdvance(self._show_all_label())) + style.px(8)
            box = QRect(0, (len(self._shown) + 1) * line, button_width, line)
            self._rects += [box] * (len(self._sources) - len(self._shown))
            self._controls.append(Control(self._show_all_label(), box, self._show_all))
        return self.estimate(width, style)

    def item_texts(self) -> Sequence[str]:
        return [_heading(), *(source.text for source in self._sources)]

    def item_rects(self) -> Sequence[QRect]:
        """Return their lines; hidden sources have the rectangle of the button that shows them."""
        return self._rects

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return a heading and a numbered list."""
        if self.is_within_item(start, end):
            return super().markdown(start, end)
        has_heading, sources = self._selected_parts(start, end)
        return sources_markdown(sources, has_heading=has_heading)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        if self.is_within_item(start, end):
            return super().html(start, end)
        has_heading, sources = self._selected_parts(start, end)
        items = "".join(f"<li>{line_to_html(source.linked)}</li>" for source in sources)
        opening = f'<ol start="{sources[0].number}">' if sources and sources[0].number > 1 else "<ol>"
        return f"{f'<p>{_heading()}</p>' if has_heading else ''}{f'{opening}{items}</ol>' if items else ''}"

    def _selected_parts(self, start: int, end: int) -> tuple[bool, list[CitedSource]]:
        selected = self.selected_items(start, end)
        return 0 in selected, [self._sources[number - 1] for number in selected if number]

    def paint(self, context: PaintContext) -> None:
        painter, style = context.painter, context.style
        selected = self.selected_items(*context.selection) if context.selection else []
        for box in self.boxes(*context.selection) if context.selection else ():
            painter.fillRect(box, style.color("selection"))
        heading_box = QRect(0, 0, self._width, self._line)
        style.draw_text(painter, heading_box, _heading(), "text" if 0 in selected else "muted")
        for row, source in enumerate(self._shown, 1):
            self._paint_source(context, source, row * self._line, is_selected=row in selected)
        if self._show_all is not None:
            name = self._show_all_label()
            style.draw_text(painter, self._controls[-1].box, name, "text" if context.hovered == name else "link")
        for control in self._controls:
            if context.focused == control.name:
                paint_focus_ring(painter, style, control.box.adjusted(-4, 0, 4, 0))

    def link_at(self, point: QPoint) -> str:
        lines = zip(self._shown, self._rects[1:], strict=False)
        return next((source.url for source, box in lines if box.contains(point)), "")

    def tooltip_at(self, point: QPoint) -> str:
        """Return the target with its ASCII host, if the host is displayed in other letters."""
        url = self.link_at(point)
        host, ascii_host = (display_host(_ascii(url)), _ascii(url)) if url else ("", "")
        return f"{link_tooltip(url)} ({ascii_host})" if host != ascii_host else ""

    def spoken_text(self) -> str:
        return "\n".join([_heading(), *(source.name for source in self._sources)])

    def _paint_source(self, context: PaintContext, source: CitedSource, top: int, *, is_selected: bool) -> None:
        painter, style = context.painter, context.style
        metrics = QFontMetricsF(style.small)
        x = self._indent(style)
        # Other colours are hard to read on the selection.
        muted, link = ("text", "text") if is_selected else ("muted", "link")
        number = f"{source.number}."
        left = x - style.px(8) - int(metrics.horizontalAdvance(number))
        style.draw_text(painter, QRect(max(0, left), top, x, self._line), number, muted)
        host_width = int(metrics.horizontalAdvance(source.host)) + style.px(10) if source.host else 0
        # The host says where the link leads: long titles give way to it.
        room = max(self._width - x - min(host_width, self._width // 2), style.px(40))
        title = metrics.elidedText(source.title, Qt.TextElideMode.ElideRight, room)
        font = QFont(style.small)
        font.setUnderline(bool(source.url) and context.hovered == source.name)
        style.draw_text(painter, QRect(x, top, room, self._line), title, link if source.url else "text", font)
        if source.host and source.host != source.title:
            x += int(metrics.horizontalAdvance(title)) + style.px(10)
            host_box = QRect(x, top, self._width - x, self._line)
            style.draw_text(painter, host_box, source.host, muted, elide=Qt.TextElideMode.ElideLeft)

    def _needed_width(self, source: CitedSource, style: RenderStyle) -> int:
        metrics = QFontMetricsF(style.small)
        host = "" if source.host == source.title else source.host
        words = metrics.horizontalAdvance(source.title) + metrics.horizontalAdvance(host)
        return self._indent(style) + int(words) + style.px(14 if host else 4)

    def _indent(self, style: RenderStyle) -> int:
        return int(QFontMetricsF(style.small).horizontalAdvance(f"{len(self._shown)}.")) + style.px(8)

    def _line_height(self, style: RenderStyle) -> int:
        return style.line_of(style.small) + style.px(4)

    def _show_all_label(self) -> str:
        return tr("Show all {0} sources").format(len(self._sources))


def _heading() -> str:
    return tr("Sources")


def _safe_url(url: str) -> str:
    """Return the URL if it is one of the web, with characters encoded that would end it in a text."""
    url = "".join(_percent_encoded(char) for char in url)
    return url if url.lower().startswith(("http://", "https://")) and QUrl(url).host() else ""


def _ascii(url: str) -> str:
    return QUrl(url).host(QUrl.ComponentFormattingOption.FullyEncoded)


def _percent_encoded(char: str) -> str:
    is_plain = char.isprintable() and not char.isspace() and char not in '<>"\\'
    return char if is_plain else quote(char, errors="replace")
