"""The first line of a call's card: which tool, how the call stands, and whether it can be undone or redone."""

from time import monotonic

from PySide6.QtCore import QCoreApplication

from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.vocabulary.blocks import Outcome
from ui.look.visible_text import show_hidden
from ui.transcript.blocks.head_block import Header

_LONGEST_NAME = 200
_ASK_TOOL = "ask_user"

_TIME_SHOWN_AFTER = 2
"""Seconds after which the time is shown."""


def call_header(call: ToolCallItem, since: float | None, *, unfolded: bool) -> Header:
    """What stands in the first line; `since` is when it was first seen to run, on the monotonic clock."""
    if call.state is not CallState.ENDED:
        word, icon, color = _running_states()[CallState.WAITING if is_waiting_for_answer(call) else call.state]
        if since is not None and (passed := int(monotonic() - since)) >= _TIME_SHOWN_AFTER:
            word = QCoreApplication.translate("Transcript", "{0} · {1} s").format(word, passed)
    elif call.is_undone:
        # Not the sign of a button: beside it stands one.
        word, icon, color = QCoreApplication.translate("Transcript", "Undone"), "check", "muted"
    else:
        word, icon, color = _outcomes()[call.outcome or Outcome.UNKNOWN]
        if call.seconds is not None and call.seconds >= 0.95:
            word = QCoreApplication.translate("Transcript", "{0} · {1} s").format(word, f"{call.seconds:.0f}")
    return Header(
        one_line(call.name) or QCoreApplication.translate("Transcript", "tool"),
        icon="tool",
        strong=True,
        color="text",
        state=word,
        state_icon=icon,
        state_color=color,
        is_open=unfolded,
        control=QCoreApplication.translate("Transcript", "Show details"),
        action=_undo_label(call),
        action_icon="undo" if call.can_be_undone else "redo",
    )


def is_waiting_for_answer(call: ToolCallItem) -> bool:
    """Whether all that it does now is to wait for an answer."""
    return call.state is CallState.RUNNING and call.name == _ASK_TOOL


def _undo_label(call: ToolCallItem) -> str:
    if call.can_be_undone:
        return QCoreApplication.translate("Transcript", "Undo")
    return QCoreApplication.translate("Transcript", "Redo") if call.can_be_redone else ""


def one_line(name: str) -> str:
    """A name from a model: control characters seen, not obeyed."""
    return " ".join(show_hidden(name[:_LONGEST_NAME]).split())


# Word, icon and colour: the state is told three ways, because colour alone tells nothing to many people.
def _running_states() -> dict[CallState, tuple[str, str, str]]:
    translate = QCoreApplication.translate
    return {
        CallState.WRITING: (translate("Transcript", "Writing"), "pencil", "muted"),
        CallState.PENDING: (translate("Transcript", "Pending"), "more", "muted"),
        CallState.WAITING: (translate("Transcript", "Waiting for you"), "eye", "warning"),
        CallState.RUNNING: (translate("Transcript", "Running"), "play", "accent"),
    }


def _outcomes() -> dict[Outcome, tuple[str, str, str]]:
    translate = QCoreApplication.translate
    return {
        Outcome.SUCCEEDED: (translate("Transcript", "Done"), "check", "success"),
        Outcome.FAILED: (translate("Transcript", "Failed"), "error", "danger"),
        Outcome.DENIED: (translate("Transcript", "Denied"), "close", "danger"),
        Outcome.CANCELLED: (translate("Transcript", "Cancelled"), "stop", "muted"),
        Outcome.TIMED_OUT: (translate("Transcript", "Timed out"), "warning", "warning"),
        Outcome.LIMIT: (translate("Transcript", "Limit reached"), "warning", "warning"),
        Outcome.UNKNOWN: (translate("Transcript", "Unknown"), "info", "warning"),
    }
