"""The last answer and its code are copied wherever the focus is, finished or not, and it is said."""

import pytest
from PySide6.QtGui import QGuiApplication

from desktop_agent.types.blocks import Image, Outcome, Text, ToolResult, ToolUse, UrlSource
from desktop_agent.types.engine_events import TurnStarted
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_view import Standing
from ui.transcript.input import context_menu
from ui.transcript.input.last_answer import LastAnswer
from ui.transcript.rows.render_context import MessageActions

CODE = "def f():\n\treturn  1  \n"


class Copies:
    """A view, and what is copied of it."""

    def __init__(self, qtbot, *messages):
        self.qtbot = qtbot
        self.harness = Standing(qtbot, messages)
        self.view = self.harness.view
        self.view._copy_note._wait.setInterval(0)
        self.answer = LastAnswer(self.view.row_viewport, self.view.context_menu)
        QGuiApplication.clipboard().setText("before")

    def copied(self, command, words="Copied."):
        """Run the command, wait until it says these words, and return the clipboard's text."""
        command()
        note = self.view._copy_note
        self.qtbot.waitUntil(note.isVisible)
        assert note.accessibleName() == words
        return QGuiApplication.clipboard().text()


def call():
    answer = Message.assistant("**Look** at:")
    use = ToolUse(id="1", name="look", input={"code": "x = 1"})
    result = ToolResult(tool_use_id="1", content=(Text(text="```\nof a tool\n```"),), outcome=Outcome.SUCCEEDED)
    return answer.model_copy(update={"blocks": (*answer.blocks, use)}), Message.tool_results([result])


def test_an_answer_that_is_only_a_picture_is_the_last_one_too(qtbot):
    picture = Image(source=UrlSource(url="https://x.org/a.png"))
    drawn = Message(role=Role.ASSISTANT, blocks=(picture,))
    copies = Copies(qtbot, Message.user("a"), Message.assistant("Older."), Message.user("Draw."), drawn)
    assert copies.copied(copies.answer.copy) == "https://x.org/a.png"


def test_the_last_answer_is_copied_as_by_its_button(qtbot):
    copies = Copies(qtbot, Message.user("a"), *call(), Message.assistant("It is *this*."), Message.user("b"))
    copies.view.apply(copies.harness.transcript.add_notice(Sentence("No answer."), error=True))
    copies.view.set_message_actions(MessageActions())
    copies.view.row_viewport.focus((0, ""))
    assert copies.answer.exists
    assert copies.copied(copies.answer.copy) == "Look at:\n\nIt is this."
    by_key = QGuiApplication.clipboard().mimeData()
    formats = {form: bytes(by_key.data(form)) for form in by_key.formats()}
    assert formats["text/markdown"] == b"**Look** at:\n\nIt is *this*."
    QGuiApplication.clipboard().setText("before")
    copies.harness.click(3, "Copy")
    by_button = QGuiApplication.clipboard().mimeData()
    assert {form: bytes(by_button.data(form)) for form in by_button.formats()} == formats


def test_an_answer_that_still_grows_is_copied_as_far_as_it_has_come(qtbot):
    copies = Copies(qtbot, Message.user("a"), Message.assistant("Old.\n\n```\nold\n```"), Message.user("b"))
    copies.view.set_message_actions(MessageActions(is_working=True))
    copies.harness.send(TurnStarted("t", "m", "model"))
    assert copies.copied(copies.answer.copy) == "Old.\n\nold"
    copies.harness.send(ContentDelta("New:\n\n```py\nx = 1\ny ="))
    assert copies.copied(copies.answer.copy) == "New:\n\nx = 1\ny ="
    assert copies.copied(copies.answer.copy_code) == "x = 1\ny ="
    assert copies.harness.rows.following


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"First:\n\n```\nother\n```\n\nThen:\n\n```py\n{CODE}```\n\nDone.", CODE.removesuffix("\n")),
        ("1. Do this:\n\n   ~~~sh\n   ls\n   ~~~", "ls"),
        ("So:\n\n    indented\n        more", "indented\n    more"),
        ("\n\n".join(f"Paragraph {number}." for number in range(20_000)) + "\n\n```\nend\n```", "end"),
    ],
)
def test_the_last_code_block_is_copied_as_it_was_written(qtbot, text, code):
    older, last = Message.assistant("```\nolder\n```"), Message.assistant("No ` code.")
    copies = Copies(qtbot, older, Message.assistant(text), last)
    copies.harness.transcript.add_message(Message.user("```\nmine\n```"))
    assert copies.answer.has_code
    assert copies.copied(copies.answer.copy_code) == code


def test_where_there_is_nothing_it_says_so(qtbot):
    copies = Copies(qtbot)
    assert not copies.answer.exists
    assert copies.copied(copies.answer.copy, "There is no answer yet.") == "before"
    copies.view.apply(copies.harness.transcript.add_message(Message.user("```\nmine\n```")))
    for message in call():
        copies.view.apply(copies.harness.transcript.add_message(message))
    assert copies.answer.exists
    assert not copies.answer.has_code
    assert copies.copied(copies.answer.copy_code, "There is no code block yet.") == "before"


def test_what_is_said_goes_away(qtbot, monkeypatch):
    monkeypatch.setattr(context_menu, "_CONFIRMATION_MS", 50)
    copies = Copies(qtbot, Message.assistant("Yes."))
    copies.copied(copies.answer.copy)
    qtbot.waitUntil(lambda: not copies.view._copy_note.isVisible())
