"""The chart of usage: upright bars for days and months, lying (horizontal) ones for models and projects."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from ui.style.controls import announce
from ui.style.style_sheet import mix_colours
from ui.style.text import plain_tooltip
from ui.style.theme import RADIUS_S, SPACE_M, SPACE_S, SPACE_XS, Theme, ThemeSource

_HEIGHT, _BAR_HEIGHT = 210, 28
_MAX_BAR_WIDTH, _GAP_SHARE = 40, 0.28
_STUB = 5
"""Length in pixels of a bar whose value is not known."""
_MIN_HEIGHT = 1.5
_NAME_SHARE = 0.32
MAX_LYING_BARS = 8


class Bar(NamedTuple):
    """One bar. `value` is None if it is not known. `text` is the whole description, `figure` the value alone."""

    title: str
    value: float | None
    figure: str
    text: str


class UsageChart(QWidget):
    """Bars that the pointer and the arrow keys select one by one; each selected bar is announced."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self.setProperty("isGraphic", True)
        self._themes = themes
        self._title = ""
        self.bars: tuple[Bar, ...] = ()
        self._is_lying = False
        self._axis_text: Callable[[float], str] = str
        self._current = -1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        themes.changed.connect(self._on_theme)

    @property
    def current(self) -> Bar | None:
        return self.bars[self._current] if 0 <= self._current < len(self.bars) else None

    def show_bars(
        self, title: str, bars: Sequence[Bar], axis_text: Callable[[float], str], *, is_lying: bool = False
    ) -> None:
        """Show these bars. `axis_text` writes a value beside the scale of upright bars."""
        self._title, self._is_lying, self._axis_text = title, is_lying, axis_text
        self.bars = tuple(bars[:MAX_LYING_BARS] if is_lying else bars)
        self._current = -1
        self.setAccessibleName(title)
        self._describe()
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        part = self._themes.zoom / 100
        height = _HEIGHT * part
        if self._is_lying:
            height = self._top + _BAR_HEIGHT * part * len(self.bars) + SPACE_S
        return QSize(round(300 * part), round(height))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Select the previous, the next, the first or the last bar."""
        last = len(self.bars) - 1
        match event.key():
            case Qt.Key.Key_Right | Qt.Key.Key_Down:
                self._select(min(last, self._current + 1))
            case Qt.Key.Key_Left | Qt.Key.Key_Up:
                self._select(max(0, self._current - 1))
            case Qt.Key.Key_Home:
                self._select(0)
            case Qt.Key.Key_End:
                self._select(last)
            case _:
                super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        number = self._bar_at(event.position())
        if number != self._current:
            self._current = number
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        if not self.hasFocus():
            self._current = -1
            self.update()

    def event(self, event: QEvent) -> bool:
        """Show the bar under the pointer in a tooltip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            bar = self._bar_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), "" if bar < 0 else plain_tooltip(self.bars[bar].text), self)
            return True
        return super().event(event)

    def paintEvent(self, _: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_words(painter)
        if self._is_lying:
            self._paint_lying(painter)
        else:
            self._paint_upright(painter)
        if self.hasFocus():
            painter.setPen(QPen(QColor(self._themes.theme.accent), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), RADIUS_S, RADIUS_S)

    @property
    def _line(self) -> int:
        return self.fontMetrics().height()

    @property
    def _top(self) -> int:
        """The upper edge of the bars, below the line of words."""
        return self._line + 2 * SPACE_S

    @property
    def _highest(self) -> float:
        return max((bar.value or 0.0 for bar in self.bars), default=0.0)

    @property
    def _scale(self) -> tuple[float, str, str]:
        """The end of the scale, and the texts at its end and its middle."""
        end = round_up(self._highest)
        return end, self._axis_text(end), self._axis_text(end / 2)

    @property
    def _plot(self) -> QRectF:
        """The area of upright bars."""
        _, *texts = self._scale
        left = max(self.fontMetrics().horizontalAdvance(text) for text in texts) + SPACE_S + SPACE_XS
        return QRectF(self.rect()).adjusted(left, self._top, -SPACE_XS, -(self._line + SPACE_S))

    def _paint_words(self, painter: QPainter) -> None:
        """Paint the title, and at the other end the text of the selected bar."""
        theme, area = self._themes.theme, self.rect().adjusted(SPACE_XS, SPACE_XS, -SPACE_XS, 0)
        area.setHeight(self._line)
        text = "" if self.current is None else self.current.text
        room = area.width() - (self.fontMetrics().horizontalAdvance(text) + SPACE_M if text else 0)
        painter.setPen(QColor(theme.text))
        painter.drawText(area, Qt.AlignmentFlag.AlignRight, self._elided(text, area.width()))
        painter.setPen(QColor(theme.muted))
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft, self._elided(self._title, room))

    def _elided(self, text: str, room: float) -> str:
        return self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, max(0, int(room)))

    def _paint_upright(self, painter: QPainter) -> None:
        theme, plot = self._themes.theme, self._plot
        end, top_text, middle_text = self._scale
        for share, text in ((1.0, top_text), (0.5, middle_text), (0.0, "")):
            y = plot.bottom() - plot.height() * share
            painter.setPen(QPen(QColor(theme.border), 1))
            painter.drawLine(QPointF(plot.left(), round(y) + 0.5), QPointF(plot.right(), round(y) + 0.5))
            painter.setPen(QColor(theme.muted))
            text_area = QRectF(0, y - self._line / 2, plot.left() - SPACE_S, self._line)
            painter.drawText(text_area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
        for number, bar in enumerate(self.bars):
            area = self._slot(number)
            width = min(_MAX_BAR_WIDTH * self._themes.zoom / 100, area.width() * (1 - _GAP_SHARE))
            height = _length(bar, plot.height(), end)
            body = QRectF(area.center().x() - width / 2, plot.bottom() - height, width, height)
            self._paint_bar(painter, number, body)
        self._paint_titles(painter, plot)

    def _paint_titles(self, painter: QPainter, plot: QRectF) -> None:
        """Paint titles below the bars, as many as have room."""
        widest = max((self.fontMetrics().horizontalAdvance(bar.title) for bar in self.bars), default=0) + SPACE_S
        slot = plot.width() / max(1, len(self.bars))
        step = max(1, math.ceil((widest + SPACE_XS) / slot))
        painter.setPen(QColor(self._themes.theme.muted))
        last = len(self.bars) - 1
        # Begin with the last bar whose title fits.
        while last > 0 and self._slot(last).center().x() + widest / 2 > self.width():
            last -= 1
        for number in range(last, -1, -step):
            title_area = QRectF(0, plot.bottom() + SPACE_XS, widest, self._line)
            title_area.moveCenter(QPointF(self._slot(number).center().x(), title_area.center().y()))
            painter.drawText(title_area, Qt.AlignmentFlag.AlignCenter, self.bars[number].title)

    def _paint_lying(self, painter: QPainter) -> None:
        theme, metrics = self._themes.theme, self.fontMetrics()
        names, figures = self._columns()
        left, right = names + SPACE_M, self.width() - figures - SPACE_M
        for number, bar in enumerate(self.bars):
            area = self._slot(number)
            painter.setPen(QColor(theme.text))
            name = metrics.elidedText(bar.title, Qt.TextElideMode.ElideMiddle, names)
            centred = Qt.AlignmentFlag.AlignVCenter
            name_area = QRectF(SPACE_XS, area.y(), names, area.height())
            painter.drawText(name_area, Qt.AlignmentFlag.AlignLeft | centred, name)
            length = _length(bar, right - left, self._highest)
            body = QRectF(left, area.y() + area.height() * 0.2, length, area.height() * 0.6)
            self._paint_bar(painter, number, body)
            painter.setPen(QColor(theme.muted))
            figure_area = QRectF(self.width() - figures - SPACE_XS, area.y(), figures, area.height())
            painter.drawText(figure_area, Qt.AlignmentFlag.AlignRight | centred, bar.figure)

    def _columns(self) -> tuple[int, int]:
        """Return the widths of the names and the figures beside lying bars."""
        advance = self.fontMetrics().horizontalAdvance
        names = max((advance(bar.title) for bar in self.bars), default=0)
        figures = max((advance(bar.figure) for bar in self.bars), default=0)
        return min(names + SPACE_XS, round(self.width() * _NAME_SHARE)), figures + SPACE_XS

    def _paint_bar(self, painter: QPainter, number: int, body: QRectF) -> None:
        theme = self._themes.theme
        is_other = self._current >= 0 and number != self._current
        colour = QColor(unread_colour(theme) if is_other else theme.accent)
        radius = min(RADIUS_S, body.width() / 2, body.height() / 2)
        if self.bars[number].value is None:
            # Only an outline: the value is not known.
            painter.setPen(QPen(QColor(theme.muted), 1, Qt.PenStyle.DotLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour)
        painter.drawRoundedRect(body, radius, radius)

    def _slot(self, number: int) -> QRectF:
        """Return the area of a bar with its texts."""
        if self._is_lying:
            height = _BAR_HEIGHT * self._themes.zoom / 100
            return QRectF(0, self._top + number * height, self.width(), height)
        plot = self._plot
        width = plot.width() / max(1, len(self.bars))
        return QRectF(plot.left() + number * width, plot.top(), width, plot.height())

    def _bar_at(self, point: QPointF) -> int:
        return next((number for number in range(len(self.bars)) if self._slot(number).contains(point)), -1)

    def _select(self, number: int) -> None:
        if not self.bars:
            return
        self._current = number
        self._describe()
        announce(self, self.bars[number].text)
        self.update()

    def _describe(self) -> None:
        if self.current is not None:
            self.setAccessibleDescription(self.current.text)
            return
        highest = max(self.bars, key=lambda bar: bar.value or 0.0, default=None)
        words = self.tr("Bars: {0}. The highest: {1}. Use the arrow keys to read each bar.")
        self.setAccessibleDescription("" if highest is None else words.format(len(self.bars), highest.text))

    def _on_theme(self, *_: QObject) -> None:
        self.updateGeometry()
        self.update()


def unread_colour(theme: Theme) -> str:
    """Return the colour of the bars that are not selected."""
    return mix_colours(theme.accent, theme.window, 0.3)


_STEPS = (1, 2, 3, 4, 5, 6, 8, 10)


def _length(bar: Bar, room: float, end: float) -> float:
    """Return the length of a bar if the `end` of the scale takes all the `room`. A value above 0 is visible."""
    if bar.value is None:
        return _STUB
    return max(_MIN_HEIGHT, room * bar.value / end) if bar.value > 0 else 0.0


def round_up(highest: float) -> float:
    """Return the end of a scale for this value, not below it. Half of it is a round number too."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(power * step for step in _STEPS if power * step >= highest * (1 - 1e-9))
