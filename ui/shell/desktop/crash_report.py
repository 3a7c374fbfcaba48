"""The banner about a crash of the last process, and the dialog with its report."""

import platform
import sys
from collections.abc import Callable
from types import TracebackType

from PySide6.QtCore import QCoreApplication, QObject, Qt, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QWidget

from desktop_agent.types.errors import AgentError, Sentence
from ui.bridge.desktop.crash_reports import CrashLog
from ui.bridge.internal_errors import internal_error
from ui.shell.banners import Banner, BannerButton
from ui.shell.startup_window import StartupWindow
from ui.style.auto_height_text import ReadOnlyText
from ui.style.controls import announce, button, label
from ui.style.layouts import FlowRows
from ui.style.widgets import lay_out_dialog

_WIDTH, _MAX_LINES = 640, 16


class CrashReportDialog(QDialog):
    """Not modal. Shows the whole report, to read and to copy."""

    def __init__(self, log: CrashLog, parent: QWidget) -> None:
        super().__init__(parent)
        self._report = log.last_report
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        words = self.tr(
            "This report lists versions and the parts of the program that were running. It contains nothing that you "
            "or a model wrote, and it is not sent anywhere: copy it when you report the crash. It stays in this file "
            "until the next crash:"
        )
        path_label = label(str(log.last_path), "muted", wrap=True)
        path_label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        copy, close = button(self.tr("Copy"), self._copy, "primary"), button(self.tr("Close"), self.reject)
        report = ReadOnlyText(self._report, self.tr("Report"), _MAX_LINES)
        parts = (label(words, wrap=True), path_label, report, FlowRows((close, copy), trailing=True))
        layout = lay_out_dialog(self, self.tr("Crash report"), *parts)
        self.resize(_WIDTH, layout.totalHeightForWidth(_WIDTH))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._report)
        announce(self, self.tr("Copied"))


class CrashPresenter(QObject):
    """Shows a banner if the last process crashed, and one for each unexpected exception."""

    def __init__(self, startup: StartupWindow, log: CrashLog) -> None:
        super().__init__(startup.window)
        self._log = log
        self._window = startup.window
        log.note_versions(_versions())
        listen_for_errors(startup.window.banners.show_error)
        if log.last_report:
            banner = Banner(
                "crash",
                Sentence("Desktop Agent ended unexpectedly the last time."),
                Sentence("Your conversations are kept. You can read a report of the crash; it is sent nowhere."),
                level="notice",
                buttons=(BannerButton(self.tr("Show report"), self._show_report),),
            )
            startup.window.banners.show_banner(banner)

    def _show_report(self) -> None:
        CrashReportDialog(self._log, self._window).show()


def listen_for_errors(on_error: Callable[[AgentError], object]) -> None:
    """Call `on_error` for each exception that leaves a slot or an event handler of Qt, after the previous hook."""
    previous_hook = sys.excepthook

    def on_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        previous_hook(kind, error, trace)
        if isinstance(error, Exception):
            on_error(internal_error(error))

    sys.excepthook = on_exception


def _versions() -> str:
    parts = (
        f"Desktop Agent {QCoreApplication.applicationVersion()}",
        f"Python {platform.python_version()}",
        f"Qt {qVersion()}",
        f"{platform.system()} {platform.release()} {platform.machine()}",
        QGuiApplication.platformName(),
    )
    return ", ".join(parts)
