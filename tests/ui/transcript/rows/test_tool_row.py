"""Tool calls with very much in them: made ready in the worker, once, and the card says so until then."""

import json
import threading

import pytest

from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Json, Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import ToolFinished, ToolStarted, TurnStarted
from tests.fakes.transcript_feed import Feed, NoPictures
from ui.style.theme import DARK, ThemeSource
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.code.terminal_output import OutputBlock, OutputTailBlock
from ui.transcript.blocks.text_block import TextBlock
from ui.transcript.rows import tool_row
from ui.transcript.rows.block_factory import MAX_SPOKEN
from ui.transcript.view import TranscriptView

MANY = [{"a": number, "b": "漢"} for number in range(4000)]


class Card:
    def __init__(self, qtbot, tmp_path):
        self.transcript = Transcript()
        self.feed = Feed(self.transcript)
        self.themes = ThemeSource()
        self.view = TranscriptView(self.themes, NoPictures(tmp_path))
        qtbot.addWidget(self.view, before_close_func=lambda view: view.close_workers())
        self.view.resize(800, 600)

    def show(self, arguments, *content, outcome=Outcome.SUCCEEDED, name="run"):
        self.feed(TurnStarted("t", "m", "model"))
        self.feed(ToolUse(id="a", name=name, input=arguments))
        self.feed(ToolStarted("a", arguments))
        if content:
            self.feed(ToolFinished("a", ToolResult(tool_use_id="a", content=content, outcome=outcome)))
        self.view.set_transcript(self.transcript)
        self.view.show()

    @property
    def row(self):
        return self.view.row_viewport.rows.row(0)

    def block(self, kind):
        return next((block for block in self.row.blocks if isinstance(block, kind)), None)

    def says_so(self):
        return any(
            isinstance(block, TextBlock) and block.plain().startswith("Preparing the ") for block in self.row.blocks
        )


@pytest.fixture
def card(qtbot, tmp_path):
    return Card(qtbot, tmp_path)


@pytest.fixture
def writing_threads(monkeypatch):
    """Record the threads in which JSON is written."""
    threads = []
    for name in ("arguments_json", "_result_text"):
        write = getattr(tool_row, name)
        monkeypatch.setattr(
            tool_row, name, lambda *values, write=write: threads.append(threading.current_thread()) or write(*values)
        )
    return threads


def test_large_arguments_are_written_once_and_elsewhere(card, writing_threads, qtbot):
    card.show({"list": MANY, "hidden": "\u202e"})
    card.row._toggle()
    assert card.says_so()
    qtbot.waitUntil(lambda: card.block(CodeBlock) is not None)
    block = card.block(CodeBlock)
    assert not card.says_so()
    rows = card.view.row_viewport.rows
    assert rows.total == card.row.stack.height + 2 * rows.margin
    assert block.is_laid_out
    assert json.loads(block.text) == {"list": MANY, "hidden": "\u202e"}
    assert "\\u202e" in block.text
    card.row._toggle()
    card.row._toggle()
    assert card.block(CodeBlock) is block
    row = card.row
    card.themes.use(DARK, 150)
    assert card.row is not row
    assert card.block(CodeBlock) is block
    card.view.viewport().grab()
    assert len(writing_threads) == 1
    assert threading.main_thread() not in writing_threads


def test_small_arguments_are_there_at_once(card):
    card.show({"list": MANY[:20]})
    card.row._toggle()
    assert json.loads(card.block(CodeBlock).text) == {"list": MANY[:20]}


@pytest.mark.parametrize("others", [{}, {"timeout_seconds": 5}])
def test_a_command_is_shown_as_one_types_it(card, others):
    card.show({"command": "cd src &&\n  ls '\u202e'", **others}, name="run_command")
    card.row._toggle()
    command, *arguments = (block for block in card.row.blocks if isinstance(block, CodeBlock))
    assert (command.text, command.language) == ("cd src &&\n  ls '⟨U+202E⟩'", "sh")
    assert [json.loads(block.text) for block in arguments] == ([others] if others else [])


def test_a_change_of_a_file_is_a_diff_while_it_waits_too(card):
    card.show({"path": "a", "content": "x\ny\n"}, name="write_file")
    card.row._toggle()
    assert (card.block(CodeBlock).text, card.block(CodeBlock).language) == ("+x\n+y", "diff")


@pytest.mark.parametrize(
    ("outcome", "language"), [(Outcome.SUCCEEDED, "py"), (Outcome.FAILED, "")], ids=["read", "failed"]
)
def test_a_file_that_was_read_has_its_language(card, outcome, language):
    card.show({"path": "src/a.py"}, Text(text="\x1b[1mimport os\x1b[0m\n"), outcome=outcome, name="read_file")
    if not card.row.unfolded:
        card.row._toggle()
    result = [block for block in card.row.blocks if isinstance(block, CodeBlock)][-1]
    assert (result.text, result.language) == ("import os", language)


def test_a_large_result_is_made_ready_elsewhere(card, writing_threads, qtbot):
    card.show({}, Text(text="before\n"), Json(value=MANY))
    assert len(card.row.blocks) == 1
    assert not writing_threads
    card.row._toggle()
    assert card.says_so()
    qtbot.waitUntil(lambda: card.block(OutputBlock) is not None)
    first_part, _, rest = card.block(OutputBlock).text.partition("\n\n")
    assert (first_part, json.loads(rest)) == ("before", MANY)
    assert threading.main_thread() not in writing_threads


def test_the_end_of_a_large_failure_comes_from_elsewhere(card, writing_threads, qtbot):
    card.show({}, Text(text="line\n" * 60_000 + "\x1b[31mlast\x1b[0m\n"), outcome=Outcome.FAILED)
    assert card.says_so()
    qtbot.waitUntil(lambda: card.block(OutputTailBlock) is not None)
    assert card.block(OutputTailBlock).plain().endswith("line\nlast")
    assert threading.main_thread() not in writing_threads


def test_what_was_unfolded_stays_under_the_pointer_when_it_comes(card, qtbot):
    # The arguments come first, and are low enough that the end is still seen.
    card.show({"text": "x" * 30_000}, Json(value=MANY))
    rows = card.view.row_viewport.rows
    assert rows.following
    card.row._toggle()
    qtbot.waitUntil(lambda: not card.says_so())
    assert card.row.stack.height > 10 * rows.view
    assert rows.top == 0
    assert not rows.following


def test_what_comes_by_itself_is_followed(card, qtbot):
    card.show({})
    card.row._toggle()
    result = ToolResult(tool_use_id="a", content=(Json(value=MANY),), outcome=Outcome.SUCCEEDED)
    card.view.apply(card.feed(ToolFinished("a", result)))
    assert card.says_so()
    qtbot.waitUntil(lambda: not card.says_so())
    assert card.view.row_viewport.rows.following


def test_of_another_result_nothing_old_is_shown(card, qtbot):
    card.show({"list": MANY})
    card.row._toggle()
    qtbot.waitUntil(lambda: card.block(CodeBlock) is not None)
    call = card.transcript[0]
    call.effective_input = {"list": MANY[:3000]}
    card.row.refresh("state")
    assert card.says_so()
    qtbot.waitUntil(lambda: card.block(CodeBlock) is not None)
    assert json.loads(card.block(CodeBlock).text) == call.effective_input


def test_another_conversation_keeps_nothing_of_this_one(card, qtbot):
    card.show({"list": MANY})
    card.row._toggle()
    qtbot.waitUntil(lambda: card.block(CodeBlock) is not None)
    card.view.set_transcript(Transcript())
    card.view.set_transcript(card.transcript)
    card.row._toggle()
    assert card.says_so()


def test_only_the_beginning_of_a_result_is_told(card):
    item = ToolCallItem("i", "m", "t", "run", {}, state=CallState.ENDED)
    item.result = ToolResult(tool_use_id="t", content=(Text(text="a" * 50_000), Json(value=MANY)))
    row = tool_row.ToolRow(item, card.view._render_context)
    assert MAX_SPOKEN < len(row.spoken_text()) < MAX_SPOKEN + 100


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({}, "+x\n+y"),
        ({"lines": (2, 0)}, "+x\n+y"),
        ({"lines": (1, 3)}, "x\ny"),
        ({"changed_nothing": True}, "x\ny"),
    ],
)
def test_lines_of_a_file_are_not_shown_as_added_that_were_there_before(card, known, text):
    result = ToolResult(tool_use_id="t")
    item = ToolCallItem("i", "m", "t", "write_file", {"path": "a", "content": "x\ny\n"}, result=result, **known)
    item.state = CallState.ENDED
    row = tool_row.ToolRow(item, card.view._render_context)
    row._toggle()
    assert next(block for block in row.blocks if isinstance(block, CodeBlock)).plain() == text


def test_the_card_of_a_todo_list_shows_how_far_it_is(card):
    card.feed(TurnStarted("t", "m", "model"))
    card.feed(ToolUse(id="a", name="update_todos", input={"items": [{"text": "Read", "state": "done"}]}))
    card.feed(ToolStarted("a", {"items": [{"text": "Read", "state": "done"}]}))
    card.view.set_transcript(card.transcript)
    assert "1 of 1 done" in [block.plain() for block in card.row.blocks if isinstance(block, TextBlock)]


EDITED = "The person changed the arguments of this call before it ran."


@pytest.mark.parametrize(
    ("text", "outcome", "ran_with", "expected"),
    [
        ("The person denied this call.", Outcome.DENIED, None, "You denied this call."),
        (
            "The person denied this call and said: Not {0}.",
            Outcome.DENIED,
            None,
            "You denied this call and said: Not {0}.",
        ),
        (
            f'{EDITED} It ran with {{"b": "x\\n\\ny"}}\n\nWritten.\n\nAll.',
            Outcome.SUCCEEDED,
            {"b": "x\n\ny"},
            "You changed the arguments of this call before it ran.\n\nWritten.\n\nAll.",
        ),
        (EDITED, Outcome.FAILED, {}, "You changed the arguments of this call before it ran."),
        # A tool says so, and not the runtime.
        ("The person denied this call.", Outcome.SUCCEEDED, None, "The person denied this call."),
        (EDITED, Outcome.SUCCEEDED, None, EDITED),
        ("Rules deny this.", Outcome.DENIED, None, "Rules deny this."),
    ],
)
def test_what_the_person_did_is_said_to_them_as_to_themselves(card, text, outcome, ran_with, expected):
    text = text.replace("x\n\ny", "x\\n\\ny")
    result = ToolResult(tool_use_id="a", content=(Text(text=text),), outcome=outcome, ran_with=ran_with)
    card.show({"b": 1})
    card.feed(ToolFinished("a", result))
    card.view.set_transcript(card.transcript)
    if not card.row.unfolded:
        card.row._toggle()
    assert card.row.blocks[-1].plain() == expected
    assert card.row.spoken_text().endswith(expected)
    assert card.transcript[0].result.content[0].text == text


def test_what_follows_the_note_of_an_edited_call_is_kept(card):
    parts = (Text(text=f"{EDITED} It ran with {{}}"), Json(value={"a": 1}), Text(text=EDITED))
    card.show({"b": 1})
    card.feed(ToolFinished("a", ToolResult(tool_use_id="a", content=parts, ran_with={})))
    card.view.set_transcript(card.transcript)
    card.row._toggle()
    text = card.row.blocks[-1].plain()
    assert text == f'You changed the arguments of this call before it ran.\n{{\n  "a": 1\n}}\n{EDITED}'
