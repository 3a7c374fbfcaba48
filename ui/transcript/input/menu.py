"""What a right click offers."""

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QMenu, QWidget


def transcript_menu(
    parent: QWidget,
    *,
    copy: Callable[[], None] | None,
    copy_message: Callable[[], None] | None,
    copy_markdown: Callable[[], None] | None,
    copy_link: Callable[[], None] | None,
    select_all: Callable[[], None],
) -> QMenu:
    """A menu that deletes itself when it closes. What cannot be done now is disabled."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    entries: list[tuple[str, Callable[[], None] | None]] = [
        (QCoreApplication.translate("Transcript", "Copy"), copy),
        (QCoreApplication.translate("Transcript", "Copy message"), copy_message),
        (QCoreApplication.translate("Transcript", "Copy as Markdown"), copy_markdown),
    ]
    if copy_link:
        entries.insert(0, (QCoreApplication.translate("Transcript", "Copy link"), copy_link))
    for words, act in entries:
        action = menu.addAction(words)
        action.setEnabled(act is not None)
        if act is not None:
            action.triggered.connect(act)
    menu.addSeparator()
    menu.addAction(QCoreApplication.translate("Transcript", "Select all")).triggered.connect(select_all)
    return menu
