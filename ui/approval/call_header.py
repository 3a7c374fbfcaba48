"""Who asks for what: the agent, the tool, and what the call may touch, in words and colour."""

from typing import Literal

from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import Effect, ToolClass
from ui.approval.parts.middle import Shrinkable
from ui.approval.parts.server_words import ServerDescription
from ui.approval.parts.wrapped_text import WrappingLabel
from ui.approval.pending_approval import PendingApproval
from ui.look.controls import label, set_style_property
from ui.look.parts.flow_rows import FlowRows
from ui.look.parts.words_and_buttons import TextWithButtons
from ui.look.theme import SPACE_XS, ThemeSource
from ui.look.written.order import isolate_untrusted

Tag = Literal["safe", "caution", "risk"]


class CallHeader(QWidget):
    """The head of the approval dialog; `beside` stands at its end."""

    def __init__(self, themes: ThemeSource, beside: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._agent = WrappingLabel(kind="muted")
        self._tool = WrappingLabel(kind="heading")
        self._tags = [label() for _ in range(1 + len(Effect))]
        for each in self._tags:
            each.setProperty("tag", "caution")
        self._folder = WrappingLabel(kind="small")
        self._undo = WrappingLabel(kind="small")
        self._server = ServerDescription(themes)
        top = QWidget()
        names = QVBoxLayout(top)
        names.setContentsMargins(0, 0, 0, 0)
        names.setSpacing(SPACE_XS)
        names.addWidget(self._agent)
        names.addWidget(self._tool)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(TextWithButtons(top, (beside,)))
        layout.addWidget(FlowRows(self._tags, gap=SPACE_XS))
        layout.addWidget(self._folder)
        layout.addWidget(self._undo)
        layout.addWidget(self._server)

    @property
    def shrinkable(self) -> Shrinkable:
        """What can be lower."""
        return self._server.shrinkable

    @property
    def accessible_text(self) -> str:
        """All that the header says, for a screen reader."""
        labels = (self._agent, self._tool, *self._tags, self._folder, self._undo)
        shown = [each.text() for each in labels if not each.isHidden()]
        return ". ".join(filter(None, (*shown, self._server.accessible_text)))

    def show_call(self, call: PendingApproval) -> None:
        """Describe this call."""
        path = " → ".join(isolate_untrusted(name) for name in call.agent_path)
        self._agent.setText(
            self.tr("The agent {0} asks to use").format(path) if path else self.tr("The assistant asks to use")
        )
        self._tool.setText(isolate_untrusted(call.tool))
        self._server.show_description(call.server, call.server_says)
        self._folder.setVisible(bool(call.workspace))
        self._folder.setText(self.tr("In the folder {0}").format(isolate_untrusted(call.workspace)))
        # What only looks leaves nothing behind, whatever it reached for that.
        is_reading = call.tool_class is ToolClass.READ_ONLY
        self._undo.setVisible(call.undoable is not None and not is_reading)
        words = self.tr("What it changes can be undone.")
        self._undo.setText(words if call.undoable else self.tr("What it does cannot be undone."))
        tags = self._tag_names(call)
        for at, each in enumerate(self._tags):
            each.setVisible(at < len(tags))
            if at < len(tags):
                set_style_property(each, "tag", tags[at][1])
                each.setText(tags[at][0])

    def _tag_names(self, call: PendingApproval) -> list[tuple[str, Tag]]:
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
