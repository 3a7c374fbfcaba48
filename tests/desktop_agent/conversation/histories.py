"""Histories as they come, good and bad, with and without summaries."""

from hypothesis import strategies as st

from desktop_agent.types.blocks import Summary, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import StopReason


def answer(text: str = "", *calls: str, stop: StopReason | None = None) -> Message:
    blocks = (Thinking(text="hm", provider="p"), Text(text=text), *(ToolUse(id=id_, name="f") for id_ in calls))
    return Message(role=Role.ASSISTANT, blocks=blocks, stop_reason=stop)


def results(*calls: str) -> Message:
    return Message.tool_results([ToolResult(tool_use_id=id_, content=(Text(text="ok"),)) for id_ in calls])


def summary(first_kept_id: str, text: str = "In short.") -> Message:
    return Message(role=Role.SYSTEM, blocks=(Summary(text=text, first_kept_id=first_kept_id),))


WORDS = st.sampled_from(["Paint the shed.", "Why?", "Yes.", "x" * 50])
PROMPTS = WORDS.map(lambda text: [Message.user(text)])
INJECTED = WORDS.map(lambda text: [Message.user(text).model_copy(update={"injected_by": "guard"})])
INSTRUCTIONS = WORDS.map(lambda text: [Message.system(text)])
ANSWERS = WORDS.map(lambda text: [answer(text)])
ROUNDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(
    lambda calls: [answer("", *calls), results(*calls)]
)
HALF_ROUNDS = st.sampled_from([[answer("", "a")], [results("a")], [answer("", "a", "b"), results("a"), results("b")]])
PAUSES = st.sampled_from([StopReason.PAUSE_TURN, StopReason.CONTINUATION]).map(
    lambda stop: [answer("Half", stop=stop), answer("whole", "a"), results("a")]
)


@st.composite
def histories(draw: st.DrawFn, *, summaries: bool = True) -> list[Message]:
    """Draw pieces in any order. Summaries cut anywhere, also in the middle of a group."""
    kinds = st.one_of(PROMPTS, INJECTED, INSTRUCTIONS, ANSWERS, ROUNDS, HALF_ROUNDS, PAUSES)
    pieces = draw(st.lists(kinds, max_size=8))
    # Pieces that are samples would share their ids.
    messages = (message for piece in pieces for message in piece)
    history = [message.model_copy(update={"id": f"m{number}"}) for number, message in enumerate(messages)]
    if not summaries:
        return history
    for text in draw(st.lists(st.sampled_from(["First.", "Second."]), max_size=2, unique=True)):
        index = draw(st.integers(0, len(history)))
        known = [message.id for message in history[:index]] or ["gone"]
        history.insert(index, summary(draw(st.sampled_from([*known, "gone"])), text))
    return history
