"""Finds what a person cannot see or reach in the windows that are open: beyond an edge, or cut."""

from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QWidget,
)

LEAST_ROOM = 30
"""Pixels: in less than this of a scroll area nothing can be read."""
_FRAME = 2
"""Pixels that a window as wide as the screen stands beside it, for its frame."""
_CONTROLS = (QAbstractButton, QLineEdit, QComboBox, QAbstractSpinBox, QPlainTextEdit)
_WORDS = (QPushButton, QCheckBox, QRadioButton)


def unreachable() -> list[str]:
    """Return a line for each window that leaves its screen, and each part of one that is cut or out of reach."""
    return [line for window in QApplication.topLevelWidgets() if window.isVisible() for line in _problems_of(window)]


def _problems_of(window: QWidget) -> Iterator[str]:
    screen = window.screen().availableGeometry()
    if not screen.adjusted(-_FRAME, -_FRAME, _FRAME, _FRAME).contains(window.geometry()):
        yield f"{_name(window)}: {_format_rect(window.geometry())} leaves the screen {_format_rect(screen)}"
    if isinstance(window, QMenu):
        return
    for part in window.findChildren(QWidget):
        if part.window() is window and part.isVisibleTo(window) and not part.size().isEmpty():
            yield from _problems_with(part, window)


def _problems_with(part: QWidget, window: QWidget) -> Iterator[str]:
    if isinstance(part, QScrollArea) and min(part.viewport().width(), part.viewport().height()) < LEAST_ROOM:
        yield f"{_name(part)}: only {part.viewport().width()} x {part.viewport().height()} of it are seen"
    if isinstance(part, QLabel) and part.wordWrap() and part.text() and _is_low(part):
        yield f"{_name(part)}: {part.height()} high, and wants {part.heightForWidth(part.width())}"
    if isinstance(part, _WORDS) and part.text() and part.width() < part.minimumSizeHint().width():
        yield f"{_name(part)}: {part.width()} wide, and wants {part.minimumSizeHint().width()}"
    if isinstance(part, (*_CONTROLS, QLabel)) and not _is_reachable(part, window):
        yield f"{_name(part)}: {_format_rect(_area(part, window))} is out of reach in {_format_rect(window.rect())}"


def _is_low(part: QLabel) -> bool:
    return part.height() < part.heightForWidth(part.width())


def _is_reachable(part: QWidget, window: QWidget) -> bool:
    """Whether all of it is inside everything around it; a scroll area scrolls up and down, and sideways if it may."""
    inside = part
    container = part.parentWidget()
    while container is not None and inside is not window:
        scrolled = container.parentWidget()
        if isinstance(scrolled, QAbstractScrollArea) and scrolled.viewport() is container:
            if not isinstance(scrolled, QScrollArea):
                return True
            area = _area(part, container)
            if (
                area.left() < 0 or area.right() >= container.width()
            ) and not scrolled.horizontalScrollBar().isVisible():
                return False
            part = scrolled
        elif not container.rect().contains(_area(part, container)):
            return False
        inside, container = container, container.parentWidget() if container is not window else None
    return True


def _area(part: QWidget, container: QWidget) -> QRect:
    return QRect(part.mapTo(container, QPoint(0, 0)), part.size())


def _format_rect(area: QRect) -> str:
    return f"{area.x()},{area.y()} {area.width()} x {area.height()}"


def _name(part: QWidget) -> str:
    words = part.accessibleName() or part.windowTitle() or str(part.property("text") or "")
    return f"{type(part).__name__} {words[:50]!r}"
