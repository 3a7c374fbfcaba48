"""The arguments of a tool call, shown whole, and edited as JSON that is validated while it is typed."""

from collections.abc import Callable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import is_same_json
from ui.approval.dialog_layout import Shrinkable
from ui.approval.labels import wrapping_label
from ui.approval.untrusted_text import fold_lines, truncate_text
from ui.style.auto_height_text import AutoHeightText
from ui.style.boxes import vbox
from ui.style.controls import set_style_property
from ui.style.text import format_number, translated
from ui.style.text_display import arguments_as_json, arguments_from_json
from ui.style.theme import SPACE_XS, ThemeSource, mono_font

# Longer texts are validated after a pause in typing; until then they are not valid.
MAX_IMMEDIATE_LENGTH = 100_000
VALIDATION_DELAY_MS = 200
# Minimum and maximum. The preview above says what the arguments do, so they shrink first.
SHOWN_ROWS, EDITED_ROWS = (3, 8), (6, 16)

ArgumentsValidator = Callable[[JsonObject], Sentence | None]


class ArgumentsView(QWidget):
    """The arguments of one call. `changed`: `arguments` or `is_valid` may have changed."""

    changed = Signal()

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._original: JsonObject = {}
        self._parsed: JsonObject | None = {}
        self._validator: ArgumentsValidator = lambda _: None
        self._heading = wrapping_label(self.tr("Arguments"), "strong")
        self._view = AutoHeightText(*SHOWN_ROWS, self.tr("Arguments"))
        self._editor = AutoHeightText(*EDITED_ROWS, self.tr("Arguments as JSON"), is_read_only=False)
        self._problem = wrapping_label(kind="error")
        self._validation_timer = QTimer(self, singleShot=True, interval=VALIDATION_DELAY_MS)
        self._build_layout()
        self._validation_timer.timeout.connect(self._parse_editor)
        self._editor.textChanged.connect(self._on_text_changed)
        themes.follow(self._apply_theme)

    @property
    def view(self) -> QPlainTextEdit:
        """The editor while it is open, else the read-only view."""
        return self._editor if self.is_editing else self._view

    @property
    def last_in_tab_order(self) -> QWidget:
        return self._editor

    @property
    def shrinkables(self) -> tuple[Shrinkable, ...]:
        return (self._view, self._editor)

    @property
    def is_editing(self) -> bool:
        return not self._editor.isHidden()

    @property
    def is_valid(self) -> bool:
        """Whether `arguments` can be used. True while nothing is edited."""
        return self._parsed is not None and not self._validation_timer.isActive()

    @property
    def arguments(self) -> JsonObject:
        """The edited arguments while they are valid, else the original ones."""
        return self._original if self._parsed is None else self._parsed

    @property
    def edited_input(self) -> JsonObject | None:
        """The edited arguments, or None when they equal the original ones."""
        return None if is_same_json(self.arguments, self._original) else self.arguments

    @property
    def edited_text(self) -> str | None:
        """The text in the editor, or None while it is closed."""
        return self._editor.text if self.is_editing else None

    @property
    def has_edits(self) -> bool:
        """Whether the text in the editor is another one than that of the original arguments."""
        return self.is_editing and self._editor.text != arguments_as_json(self._original)

    def show_call(self, arguments: JsonObject, check: ArgumentsValidator, edited_text: str | None = None) -> None:
        """Show the arguments of a call; `edited_text` opens the editor with an earlier edit."""
        self._original, self._validator = arguments, check
        text, omitted = truncate_text(arguments_as_json(arguments))
        words = self.tr("Arguments, without the last {0} characters: “Edit arguments” shows all of them")
        self._heading.setText(words.format(format_number(omitted)) if omitted else self.tr("Arguments"))
        self._view.set_text(fold_lines(text))
        self._close_editor()
        if edited_text is not None:
            self.edit(edited_text)

    def edit(self, text: str | None = None) -> None:
        """Open the editor, with the original arguments unless a text is given."""
        self._view.hide()
        self._editor.show()
        self._problem.show()
        self._editor.set_text(arguments_as_json(self._original) if text is None else text)
        self._editor.setFocus()

    def toggle(self) -> None:
        """Open the editor, or close it and discard the edits."""
        if self.is_editing:
            self.discard()
            self._view.setFocus()
        else:
            self.edit()

    def discard(self) -> None:
        """Close the editor and return to the original arguments."""
        self._close_editor()
        self.changed.emit()

    def show_rejection(self, problem: str) -> None:
        """Show why these arguments were rejected. Edited ones have to be changed."""
        if self.is_editing:
            self._parsed = None
        self._show_problem(problem)
        self.changed.emit()

    def _close_editor(self) -> None:
        self._editor.hide()
        self._view.show()
        self._problem.hide()
        self._validation_timer.stop()
        self._parsed = self._original
        self._show_problem("")

    def _on_text_changed(self) -> None:
        if not self.is_editing:
            return
        if self._editor.document().characterCount() <= MAX_IMMEDIATE_LENGTH:
            self._parse_editor()
            return
        self._validation_timer.start()
        self._show_problem(self.tr("Checking…"))
        self.changed.emit()

    def _parse_editor(self) -> None:
        self._validation_timer.stop()
        parsed, problem = arguments_from_json(self._editor.text)
        if parsed is not None:
            problem = translated(self._validator(parsed) or "")
        self._parsed = None if problem else parsed
        self._show_problem(problem)
        self.changed.emit()

    def _show_problem(self, problem: str) -> None:
        self._problem.setText(problem)
        # Its line stays while the person types: the buttons below would jump.
        self._problem.setVisible(self.is_editing or bool(problem))
        self._editor.setAccessibleDescription(problem)
        set_style_property(self._editor, "invalid", "true" if problem else "false")

    def _build_layout(self) -> None:
        vbox(self._heading, self._view, self._editor, self._problem, parent=self, spacing=SPACE_XS, margins=0)
        # Not the editor, which looks like every field.
        self._view.setProperty("kind", "code")
        self._editor.hide()
        self._problem.hide()

    def _apply_theme(self) -> None:
        font = mono_font(self._themes.zoom)
        self._view.setFont(font)
        self._editor.setFont(font)
