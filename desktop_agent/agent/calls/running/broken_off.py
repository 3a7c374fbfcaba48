"""What the result of a call says that was broken off: what it had done until then, as far as anybody knows."""

from desktop_agent.agent.calls.call import Call
from desktop_agent.tools.answers import plain, without_terminal_commands
from desktop_agent.vocabulary.tool_calls import Effect, FileChanges, ToolClass

STOPPED_BEFORE = "The call was stopped before it was started."
STOPPED_RUNNING = "The call was stopped while it was running."
_UNKNOWN = "It may have taken effect."
_ONLY_READS = "It only reads: nothing was changed."
_LEFT = "It did not end when it was told to, and may still be at work."
# Characters of what a tool says about itself.
_MOST = 10_000


class Account:
    """What a tool calls with what it has done until now; also while it ends because it was stopped.

    Nothing of a tool is trusted, so what is not of the right kind is passed over.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def changed(self, changes: FileChanges) -> None:
        """Of files."""
        if type(changes) is FileChanges:
            self._call.changes = changes

    def so_far(self, text: str) -> None:
        """This stands, in place of what was said before."""
        if isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  a foreign tool may say anything
            self._call.so_far = plain(text)[:_MOST]


def words_of_stop(call: Call) -> str:
    """For a call that Stop ended, started or not; with the end of what it had shown."""
    return STOPPED_BEFORE if call.began_at is None else _with_rest(STOPPED_RUNNING, call)


def words_of_timeout(call: Call, seconds: float) -> str:
    """For a call that took too long."""
    return _with_rest(f"The call took longer than {seconds:g} s and was stopped.", call)


def _with_rest(words: str, call: Call) -> str:
    """What it had done comes last: of a long text a card shows the end."""
    done = " ".join([_done(call), *([_LEFT] if call.is_left or call.is_running else [])])
    shown = without_terminal_commands(call.shown)
    if not shown.strip():
        return f"{words} {done}"
    end = "" if shown.endswith("\n") else "\n"
    return f"{words} The end of what it had written until then:\n{shown}{end}{done}"


def _done(call: Call) -> str:
    if call.so_far.strip():
        return call.so_far.strip()
    tool = call.tool
    harmless = tool is not None and tool.tool_class is ToolClass.READ_ONLY and Effect.DELEGATE not in tool.effects
    return _ONLY_READS if harmless else _UNKNOWN
