"""Build box layouts in one call."""

from typing import TypeVar

from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

L = TypeVar("L", bound=QBoxLayout)

Margins = int | tuple[int, int, int, int]
"""One number for all sides, or left, top, right and bottom; pixels."""


def vbox(
    *parts: QWidget | QLayout,
    parent: QWidget | None = None,
    spacing: int | None = None,
    margins: Margins | None = None,
    grow: QWidget | QLayout | None = None,
    end_stretch: bool = False,
) -> QVBoxLayout:
    """Stack parts in a column, as the layout of `parent` if one is given.

    `grow` is the part that takes the height that is left over; with `end_stretch` the space under the last one does.
    """
    layout = QVBoxLayout() if parent is None else QVBoxLayout(parent)
    _set_space(layout, spacing, margins)
    return _add_parts(layout, parts, grow, end_stretch=end_stretch)


def hbox(
    *parts: QWidget | QLayout,
    parent: QWidget | None = None,
    spacing: int | None = None,
    margins: Margins | None = None,
    grow: QWidget | QLayout | None = None,
    start_stretch: bool = False,
    end_stretch: bool = False,
) -> QHBoxLayout:
    """Put parts in a row, as `vbox` does in a column. With `start_stretch` they are at its end."""
    layout = QHBoxLayout() if parent is None else QHBoxLayout(parent)
    _set_space(layout, spacing, margins)
    if start_stretch:
        layout.addStretch(1)
    return _add_parts(layout, parts, grow, end_stretch=end_stretch)


def parts_of(layout: QLayout) -> list[QWidget | QLayout]:
    """Return the widgets and layouts in a layout, in its order.

    Not by `itemAt`: PySide (6.11) keeps its object for an item that Qt deletes with the widget, and takes it for the
    next object at the same address.
    """
    owner = layout.parentWidget()
    widgets = [child for child in (owner.children() if owner is not None else ()) if isinstance(child, QWidget)]
    inner = [child for child in layout.children() if isinstance(child, QLayout)]
    by_index = {layout.indexOf(part): part for part in (*widgets, *inner)}
    return [by_index[index] for index in sorted(by_index) if index >= 0]


def _set_space(layout: QBoxLayout, spacing: int | None, margins: Margins | None) -> None:
    if margins is not None:
        layout.setContentsMargins(*((margins,) * 4 if isinstance(margins, int) else margins))
    if spacing is not None:
        layout.setSpacing(spacing)


def _add_parts(
    layout: L, parts: tuple[QWidget | QLayout, ...], grow: QWidget | QLayout | None, *, end_stretch: bool
) -> L:
    for part in parts:
        stretch = 1 if part is grow else 0
        if isinstance(part, QLayout):
            layout.addLayout(part, stretch)
        else:
            layout.addWidget(part, stretch)
    if end_stretch:
        layout.addStretch(1)
    return layout
