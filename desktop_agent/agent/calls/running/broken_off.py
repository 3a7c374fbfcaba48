"""What the result of a call says that was broken off: what it had done until then, as far as anybody knows."""

from desktop_agent.agent.calls.call import ToolExecution
from desktop_agent.tools.answers import plain_text, strip_terminal_sequences
from desktop_agent.vocabulary.tool_calls import Effect, FileChanges, ToolClass

STOPPED_BEFORE_START = "The call was stopped before it was started."
STOPPED_WHILE_RUNNING = "The call was stopped while it was running."
_EFFECT_UNKNOWN = "It may have taken effect."
_ONLY_READS = "It only reads: nothing was changed."
_ABANDONED = "It did not end when it was told to, and may still be at work."
# Characters of what a tool says about itself.
_MAX_REPORT = 10_000


class ToolReport:
    """What a tool calls with what it has done until now; also while it ends because it was stopped.

    Nothing of a tool is trusted, so what is not of the right kind is passed over.
    """

    def __init__(self, call: ToolExecution) -> None:
        self._call = call

    def set_changes(self, changes: FileChanges) -> None:
        """Of files."""
        if type(changes) is FileChanges:
            self._call.changes = changes

    def set_progress(self, text: str) -> None:
        """This stands, in place of what was said before."""
        if isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  a foreign tool may say anything
            self._call.reported_progress = plain_text(text)[:_MAX_REPORT]


def stop_text(call: ToolExecution) -> str:
    """For a call that Stop ended, started or not; with the end of what it had shown."""
    return STOPPED_BEFORE_START if call.started_at is None else _with_report(STOPPED_WHILE_RUNNING, call)


def timeout_text(call: ToolExecution, seconds: float) -> str:
    """For a call that took too long."""
    return _with_report(f"The call took longer than {seconds:g} s and was stopped.", call)


def _with_report(words: str, call: ToolExecution) -> str:
    """What it had done comes last: of a long text a card shows the end."""
    done = " ".join([_effect_text(call), *([_ABANDONED] if call.was_abandoned or call.is_running else [])])
    shown = strip_terminal_sequences(call.output_tail)
    if not shown.strip():
        return f"{words} {done}"
    end = "" if shown.endswith("\n") else "\n"
    return f"{words} The end of what it had written until then:\n{shown}{end}{done}"


def _effect_text(call: ToolExecution) -> str:
    if call.reported_progress.strip():
        return call.reported_progress.strip()
    tool = call.tool
    harmless = tool is not None and tool.tool_class is ToolClass.READ_ONLY and Effect.DELEGATE not in tool.effects
    return _ONLY_READS if harmless else _EFFECT_UNKNOWN
