"""Who asks for what: the agent, the tool, and what the call may touch, in words and colour."""

from typing import Literal

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import Effect, ToolClass
from ui.approval.pending_approval import PendingApproval
from ui.look.controls import label, set_kind
from ui.look.theme import SPACE_S, SPACE_XS
from ui.look.visible_text import with_hidden_shown

Tag = Literal["safe", "caution", "risk"]


class CallHeader(QWidget):
    """The head of the approval dialog."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._who = label(kind="muted")
        self._tool = label(kind="heading", wrap=True)
        self._tags = [label() for _ in range(1 + len(Effect))]
        for each in self._tags:
            each.setProperty("tag", "caution")
        tags = QHBoxLayout()
        tags.setSpacing(SPACE_S)
        for each in self._tags:
            tags.addWidget(each)
        tags.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._who)
        layout.addWidget(self._tool)
        layout.addLayout(tags)

    @property
    def words(self) -> str:
        """All that the header says, for a screen reader."""
        shown = [each.text() for each in (self._who, self._tool, *self._tags) if not each.isHidden()]
        return ". ".join(shown)

    def show_call(self, call: PendingApproval) -> None:
        """Describe this call."""
        path = " → ".join(with_hidden_shown(name) for name in call.agent_path)
        self._who.setText(
            self.tr("The agent {0} asks to use").format(path) if path else self.tr("The assistant asks to use")
        )
        self._tool.setText(with_hidden_shown(call.tool))
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
