"""What a model is given to summarise."""

from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.agent.compaction import MAX_RESULT_CHARACTERS, conversation_as_text, shorten_middle
from desktop_agent.conversation.history import COMPACTION_AUTHOR
from desktop_agent.types.blocks import (
    Image,
    Json,
    Outcome,
    ServerStep,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.messages import Message, Role
from tests.desktop_agent.conversation.histories import histories

ROOM = 100_000


def earlier(text: str) -> Message:
    return Message.user(text).model_copy(update={"injected_by": COMPACTION_AUTHOR})


def test_who_said_what_and_what_was_done() -> None:
    blocks = (
        Thinking(text="secret musings", provider="p"),
        Text(text="Let me look."),
        ServerStep(provider="p", name="search", text="Looked for sheds.", raw={}),
        ToolUse(id="1", name="read_file", input={"path": "a.txt"}),
        Unknown(raw={"what": "is this"}),
    )
    parts = (Text(text="red"), Json(value={"colour": "red"}), Image(source=UrlSource(url="https://x/y.png"), name="y"))
    text = conversation_as_text(
        [
            Message.user("Paint the shed."),
            Message(role=Role.ASSISTANT, blocks=blocks),
            Message.tool_results([ToolResult(tool_use_id="1", content=parts, outcome=Outcome.FAILED)]),
            Message.user("Go on.").model_copy(update={"injected_by": "tests"}),
        ],
        ROOM,
        len,
    )
    assert text == (
        "## The person\nPaint the shed.\n\n"
        "## The assistant\nLet me look.\n[search: Looked for sheds.]\n"
        '[call of read_file: {"path": "a.txt"}]\n\n'
        '[its result, failed: red\n{"colour": "red"}\n[picture “y”]]\n\n'
        "## The program (tests)\nGo on."
    )


def test_long_results_are_shortened_and_what_was_said_is_not() -> None:
    long = "x" * 50_000
    history = [Message.user(long), Message.tool_results([ToolResult(tool_use_id="1", content=(Text(text=long),))])]
    text = conversation_as_text(history, ROOM, len)
    assert 50_000 < len(text) < 50_000 + MAX_RESULT_CHARACTERS + 200
    assert "characters left out" in text


def test_the_oldest_is_left_out_first_with_a_word_about_it() -> None:
    text = conversation_as_text([Message.user(f"{number} " + "x" * 100) for number in range(10)], 400, len)
    assert text.startswith("[7 older parts")
    assert "## The person\n9 " in text
    assert "## The person\n6 " not in text


def test_an_earlier_summary_stays_when_older_messages_go() -> None:
    text = conversation_as_text([earlier("Paint it red."), *(Message.user("x" * 100) for _ in range(10))], 400, len)
    assert text.startswith("Paint it red.\n")
    assert "older parts" in text


def test_one_message_that_is_too_long_by_itself_is_shortened() -> None:
    text = conversation_as_text([Message.user("begin " + "x" * 10_000 + " end")], 1_000, len)
    assert "begin" in text
    assert text.endswith(" end")
    assert len(text) <= 1_000


def test_shortening_keeps_beginning_and_end() -> None:
    assert shorten_middle("abc", 3) == "abc"
    short = shorten_middle("a" * 600 + "b" * 600, 300)
    assert short.startswith("a" * 200)
    assert short.endswith("b" * 100)
    assert "900 characters left out" in short


@given(histories(), st.integers(1_000, 3_000), st.floats(0.1, 2.0))
def test_the_text_fits_the_room_for_any_history(history: list[Message], room: int, per_character: float) -> None:
    text = conversation_as_text(history, room, lambda text: int(len(text) * per_character))
    # Between the parts there are two line breaks, and there may be a word about what is missing.
    assert len(text) * per_character <= room + (2 * len(history) + 100) * per_character
