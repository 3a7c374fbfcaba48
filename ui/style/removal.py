"""Take widgets out of layouts and delete them."""

from PySide6.QtWidgets import QLayout, QStackedWidget, QWidget


def remove_widget(container: QLayout | QStackedWidget, widget: QWidget) -> None:
    """Take a widget out at once, and delete it when the event loop comes round: it may be what sent a signal."""
    container.removeWidget(widget)
    widget.hide()
    widget.deleteLater()


def clear_layout(layout: QLayout) -> None:
    """Remove every widget and every space of a layout."""
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
