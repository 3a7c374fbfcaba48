"""What tools can do, in the words and colours that every screen has for it."""

from typing import Literal

from PySide6.QtCore import QCoreApplication

from desktop_agent.types.tool_calls import Effect, ToolClass
from desktop_agent.types.tool_calls import tool_title as runtime_tool_title
from ui.style.text import translate_sentence

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


def tool_title(name: str) -> str:
    """Return what a tool does, in the person's language; a name that has no words as it is."""
    title = runtime_tool_title(name)
    return title if isinstance(title, str) else translate_sentence(title)


def server_step_title(name: str) -> str:
    """Return what a step of a provider's own server is, in the person's language; an unknown name as it is."""
    search, search_result = _tr("Search the web"), _tr("Search results")
    code, code_result = _tr("Run code"), _tr("Output of the code")
    titles = {
        "web_search": search,
        "web_search_call": search,
        "google_search": search,
        "web_search_result": search_result,
        "web_search_tool_result": search_result,
        "web_fetch": _tr("Read a web page"),
        "url_context": _tr("Read a web page"),
        "file_search_call": _tr("Search in files"),
        "code_execution": code,
        "code_interpreter_call": code,
        "code_execution_result": code_result,
        "code_execution_tool_result": code_result,
    }
    return titles.get(name, name)


_ICONS = {
    "ask_user": "help",
    "calculate": "calculator",
    "change_mode": "sliders",
    "delete_file": "trash",
    "edit_file": "pencil",
    "fetch_page": "globe",
    "find_files": "search",
    "list_files": "folder",
    "move_file": "folder",
    "read_file": "document",
    "run_command": "terminal",
    "search_files": "search",
    "update_todos": "list",
    "view_image": "picture",
    "write_file": "compose",
}


def tool_icon(name: str) -> str:
    """Return the name of the icon of a tool."""
    return _ICONS.get(name, "tool")


def _tr(text: str) -> str:
    return QCoreApplication.translate("ToolLabels", text)
