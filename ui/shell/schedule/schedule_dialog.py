"""The dialog of scheduled prompts."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QScrollArea, QWidget

from desktop_agent.types.errors import Sentence
from ui.bridge.schedule.schedules import ScheduledPrompts
from ui.forms.controls import check_box
from ui.settings.schedule_form import ScheduleForm
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.layouts import FocusFollower, TabOrder
from ui.style.server_fields import Status, StatusLine
from ui.style.theme import SPACE_L, SPACE_S, ThemeSource
from ui.style.widgets import lay_out_dialog

_SIZE = (640, 640)


class ScheduleDialog(QDialog):
    """Not modal. Lists the prompts, and lets the person keep the program running in the tray."""

    tray_switched = Signal(bool)
    """Whether closing the window shall leave the program in the tray."""

    def __init__(self, themes: ThemeSource, schedules: ScheduledPrompts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self.form = ScheduleForm(schedules)
        self._close = button(self.tr("Close"), self.reject)
        # While a prompt is being edited, Close would not save it.
        self.form.editor_changed.connect(lambda: self._close.setVisible(self.form.editor is None))
        self._problem = StatusLine(themes)
        words = self.tr("Scheduled prompts run only while Desktop Agent runs.")
        self._hint = label(words, "muted", wrap=True)
        self._tray = check_box(self.tr("Close to the tray: the program keeps running when you close the window"))
        if self._tray.changed is not None:
            self._tray.changed.connect(self.tray_switched)
        self._build()

    def show_tray(self, *, has_tray: bool, is_on: bool) -> None:
        """Show whether the window closes to the tray, if there is one."""
        self._tray.show(is_on)
        if self._tray.view is not None:
            self._tray.view.setVisible(has_tray)

    def show_problem(self, problem: Sentence | str) -> None:
        """Show what went wrong; "" hides it."""
        self._problem.show_state(Status.ERROR, problem)

    def _build(self) -> None:
        available = self.screen().availableSize()
        zoom = self._themes.zoom / 100
        self.resize(
            min(round(_SIZE[0] * zoom), available.width()),
            min(round(_SIZE[1] * zoom), available.height() - 2 * SPACE_L),
        )
        page, scroll = QWidget(), QScrollArea()
        vbox(self.form, parent=page, margins=(0, 0, SPACE_S, 0), grow=self.form)
        scroll.setWidget(page)
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        page.setAutoFillBackground(False)
        scroll.viewport().setAutoFillBackground(False)
        FocusFollower(scroll)
        TabOrder(None, page)
        tray = self._tray.view or self._tray.widget
        foot = hbox(self._close, start_stretch=True)
        parts = (self._hint, tray, scroll, self._problem, foot)
        lay_out_dialog(self, self.tr("Scheduled prompts"), *parts, grow=scroll)
