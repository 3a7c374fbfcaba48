"""A shell line: as it stands, its commands one by one with what to look at, where it runs, and what confines it."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QScrollArea, QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import CommandPart, CommandPreview, Risk
from ui.approval.previews.code_view import CodeView
from ui.approval.visible_text import folded
from ui.look.controls import label
from ui.look.fonts import mono_font
from ui.look.theme import SPACE_L, SPACE_S, SPACE_XS, ThemeSource
from ui.look.visible_text import with_hidden_shown

# The line above shows all of them; a row for each of thousands would only take time.
MOST_ROWS = 100
_GRAVE = frozenset({Risk.DELETES, Risk.NETWORK, Risk.PRIVILEGES})


class CommandView(QScrollArea):
    """`show_command` answers with the heading above it. All of it scrolls: nothing is ever cut."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._line = CodeView(themes, self.tr("Command line"))
        self._line.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._doubt = label(kind="warning", wrap=True)
        self._place = label(kind="muted", wrap=True)
        self._confinement = label(kind="muted", wrap=True)
        self._rows = QVBoxLayout()
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(SPACE_XS)
        self._build()
        themes.changed.connect(self._dress)

    @property
    def words(self) -> str:
        """All that it says, for a screen reader."""
        rows = [self._row(at) for at in range(self._rows.count())]
        parts = [each.accessibleName() for each in rows if each is not None]
        about = [each.text() for each in (self._doubt, self._place, self._confinement) if not each.isHidden()]
        return "\n".join([self._line.toPlainText(), *parts, *about])

    def show_command(self, preview: CommandPreview) -> str:
        """This line."""
        self._line.show_lines([], [folded(with_hidden_shown(preview.line))])
        self._line.fit_rows(preview.line)
        self._show_parts(preview.parts)
        self._doubt.setVisible(not preview.understood)
        self._doubt.setText(self.tr("This line may run more than is listed here. Read all of it."))
        self._place.setText(self.tr("In the folder {0}").format(with_hidden_shown(preview.folder)))
        self._confinement.setText(with_hidden_shown(preview.confinement))
        self._confinement.setVisible(bool(preview.confinement))
        count = sum(not each.text.startswith(("<", ">")) for each in preview.parts)
        return self.tr("What will run: {0} commands").format(count) if count > 1 else self.tr("What will run")

    def _show_parts(self, parts: Sequence[CommandPart]) -> None:
        while (item := self._rows.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        # One plain command stands above already.
        shown = parts[:MOST_ROWS] if len(parts) > 1 or any(each.risks for each in parts) else ()
        for part in shown:
            self._rows.addWidget(self._part_row(part, is_only=len(parts) == 1))
        if len(parts) > MOST_ROWS:
            self._rows.addWidget(label(self.tr("And {0} more").format(len(parts) - MOST_ROWS), "muted"))

    def _part_row(self, part: CommandPart, *, is_only: bool) -> QWidget:
        """The command and its tags; of an only one the tags alone, since the line above is the command."""
        row = QWidget()
        text = label(folded(with_hidden_shown(part.text)), wrap=True)
        text.setFont(mono_font(self._themes.theme, self._themes.zoom))
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(part.depth * SPACE_L, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        if not is_only:
            layout.addWidget(text, 1)
            row.setMinimumHeight(text.fontMetrics().height() + SPACE_S)
        words = [self._words_of(risk) for risk in part.risks]
        for risk, word in zip(part.risks, words, strict=True):
            tag = label(word)
            tag.setProperty("tag", "risk" if risk in _GRAVE else "caution")
            layout.addWidget(tag, 0, Qt.AlignmentFlag.AlignVCenter)
        if is_only:
            layout.addStretch(1)
        row.setAccessibleName(": ".join(filter(None, (text.text(), ", ".join(words)))))
        return row

    def _words_of(self, risk: Risk) -> str:
        words = {
            Risk.DELETES: self.tr("Deletes"),
            Risk.WRITES: self.tr("Writes files"),
            Risk.NETWORK: self.tr("Uses the network"),
            Risk.PRIVILEGES: self.tr("Needs privileges"),
            Risk.RUNS_CODE: self.tr("Runs code"),
            Risk.UNCLEAR: self.tr("Depends on variables"),
        }
        return words[risk]

    def _row(self, at: int) -> QWidget | None:
        item = self._rows.itemAt(at)
        return None if item is None else item.widget()

    def _dress(self) -> None:
        font = mono_font(self._themes.theme, self._themes.zoom)
        for at in range(self._rows.count()):
            row = self._row(at)
            text = None if row is None else row.findChild(QLabel)
            if text is not None and not isinstance(row, QLabel):
                text.setFont(font)
        self._line.fit_rows(self._line.toPlainText())

    def _build(self) -> None:
        inside = QWidget()
        layout = QVBoxLayout(inside)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        for each in (self._line, self._confinement, self._place, self._doubt):
            layout.addWidget(each)
        layout.addLayout(self._rows)
        layout.addStretch(1)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidget(inside)
        self.setAccessibleName(self.tr("Commands of the line"))
        inside.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
