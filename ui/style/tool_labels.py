"""What tools can do, in the words and colours that every screen has for it."""

from typing import Literal

from PySide6.QtCore import QCoreApplication

from desktop_agent.types.tool_calls import Effect, ToolClass

Tag = Literal["safe", "caution", "risk"]
"""The colour of a label, as the style sheet calls it."""

EFFECT_TAGS: dict[Effect, Tag] = {
    Effect.READ: "safe",
    Effect.WRITE: "caution",
    Effect.EXECUTE: "risk",
    Effect.NETWORK: "risk",
    Effect.DELEGATE: "caution",
}


def effect_names() -> dict[Effect, str]:
    """Return the name of each effect in the person's language."""
    return {
        Effect.READ: _tr("Reads files"),
        Effect.WRITE: _tr("Writes files"),
        Effect.EXECUTE: _tr("Runs commands"),
        Effect.NETWORK: _tr("Uses the network"),
        Effect.DELEGATE: _tr("Starts another agent"),
    }


def tool_class_label(tool_class: ToolClass) -> tuple[str, Tag]:
    """Return the name of a class of tools in the person's language, and its colour."""
    if tool_class is ToolClass.READ_ONLY:
        return _tr("Only reads"), "safe"
    return _tr("Can change things"), "caution"


def _tr(text: str) -> str:
    return QCoreApplication.translate("ToolLabels", text)
