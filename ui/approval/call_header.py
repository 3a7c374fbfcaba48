"""Who asks for what: the agent, the tool, and what the call may touch, in words and colour."""

from typing import Literal

from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import Effect, ToolClass
from ui.approval.parts.middle import GivesWay
from ui.approval.parts.server_words import ServerWords
from ui.approval.parts.wrapped_text import WrappedText
from ui.approval.pending_approval import PendingApproval
from ui.look.controls import label, set_kind
from ui.look.parts.flow_rows import FlowRows
from ui.look.parts.words_and_buttons import WordsAndButtons
from ui.look.theme import SPACE_XS, ThemeSource
from ui.look.written.order import shown_apart

Tag = Literal["safe", "caution", "risk"]


class CallHeader(QWidget):
    """The head of the approval dialog; `beside` stands at its end."""

    def __init__(self, themes: ThemeSource, beside: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._who = WrappedText(kind="muted")
        self._tool = WrappedText(kind="heading")
        self._tags = [label() for _ in range(1 + len(Effect))]
        for each in self._tags:
            each.setProperty("tag", "caution")
        self._place = WrappedText(kind="small")
        self._undo = WrappedText(kind="small")
        self._server = ServerWords(themes)
        top = QWidget()
        names = QVBoxLayout(top)
        names.setContentsMargins(0, 0, 0, 0)
        names.setSpacing(SPACE_XS)
        names.addWidget(self._who)
        names.addWidget(self._tool)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(WordsAndButtons(top, (beside,)))
        layout.addWidget(FlowRows(self._tags, gap=SPACE_XS))
        layout.addWidget(self._place)
        layout.addWidget(self._undo)
        layout.addWidget(self._server)

    @property
    def giver(self) -> GivesWay:
        """What can be lower."""
        return self._server.giver

    @property
    def words(self) -> str:
        """All that the header says, for a screen reader."""
        labels = (self._who, self._tool, *self._tags, self._place, self._undo)
        shown = [each.text() for each in labels if not each.isHidden()]
        return ". ".join(filter(None, (*shown, self._server.words)))

    def show_call(self, call: PendingApproval) -> None:
        """Describe this call."""
        path = " → ".join(shown_apart(name) for name in call.agent_path)
        self._who.setText(
            self.tr("The agent {0} asks to use").format(path) if path else self.tr("The assistant asks to use")
        )
        self._tool.setText(shown_apart(call.tool))
        self._server.show_words(call.server, call.server_says)
        self._place.setVisible(bool(call.workspace))
        self._place.setText(self.tr("In the folder {0}").format(shown_apart(call.workspace)))
        # What only looks leaves nothing behind, whatever it reached for that.
        is_reading = call.tool_class is ToolClass.READ_ONLY
        self._undo.setVisible(call.undoable is not None and not is_reading)
        words = self.tr("What it changes can be undone.")
        self._undo.setText(words if call.undoable else self.tr("What it does cannot be undone."))
        tags = self._tags_of(call)
        for at, each in enumerate(self._tags):
            each.setVisible(at < len(tags))
            if at < len(tags):
                set_kind(each, "tag", tags[at][1])
                each.setText(tags[at][0])

    def _tags_of(self, call: PendingApproval) -> list[tuple[str, Tag]]:
        words: dict[Effect, tuple[str, Tag]] = {
            Effect.READ: (self.tr("Reads files"), "safe"),
            Effect.WRITE: (self.tr("Writes files"), "caution"),
            Effect.EXECUTE: (self.tr("Runs commands"), "risk"),
            Effect.NETWORK: (self.tr("Uses the network"), "risk"),
            Effect.DELEGATE: (self.tr("Starts another agent"), "caution"),
        }
        class_words: tuple[str, Tag] = (self.tr("Can change things"), "caution")
        if call.tool_class is ToolClass.READ_ONLY:
            class_words = (self.tr("Only reads"), "safe")
        return [class_words, *(words[effect] for effect in Effect if effect in call.effects)]
