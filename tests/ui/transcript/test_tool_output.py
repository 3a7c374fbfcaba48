"""A running call shows the end of what it writes, as a terminal would; when it is over, all of it and its pictures."""

import pytest

from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Image, Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import ToolFinished, ToolProgress, ToolStarted, TurnStarted
from tests.fakes.transcript_feed import Feed, NoPictures
from tests.ui.transcript.test_pictures import stored
from ui.style.theme import ReadingStyle, ThemeSource
from ui.transcript.blocks.code.terminal_output import OutputBlock, OutputTailBlock
from ui.transcript.blocks.image_blocks import ThumbnailsBlock
from ui.transcript.rows import tool_row
from ui.transcript.rows.row_factory import make_row
from ui.transcript.view import TranscriptView


class Running:
    def __init__(self, qtbot, tmp_path):
        self.transcript = Transcript()
        self.feed = Feed(self.transcript)
        self.feed(TurnStarted("t", "m", "model"))
        self.feed(ToolUse(id="a", name="run", input={"command": "make"}))
        self.feed(ToolStarted("a", {"command": "make"}))
        self.view = TranscriptView(ThemeSource(), NoPictures(tmp_path))
        qtbot.addWidget(self.view, before_close_func=lambda view: view.close_workers())
        self.view.resize(800, 600)
        self.view.set_transcript(self.transcript)
        self.view.show()

    def write(self, text):
        self.view.apply(self.feed(ToolProgress("a", text)))

    def finish(self, *content, outcome=Outcome.SUCCEEDED):
        self.view.apply(self.feed(ToolFinished("a", ToolResult(tool_use_id="a", content=content, outcome=outcome))))

    @property
    def row(self):
        return self.view.row_viewport.rows.row(0)

    def block(self, kind):
        return next((block for block in self.row.blocks if isinstance(block, kind)), None)


@pytest.fixture
def running(qtbot, tmp_path):
    return Running(qtbot, tmp_path)


def test_the_end_is_followed_and_no_longer_than_some_lines(running):
    heights = []
    for number in range(40):
        running.write(f"\x1b[32mline\x1b[0m {number}\n")
        heights.append(running.row.stack.height)
    tail = running.block(OutputTailBlock)
    assert tail.plain().split("\n") == [f"line {number}" for number in range(28, 40)]
    assert tail._lines.words[0] == [(0, 4, "green")]
    assert len(set(heights[12:])) == 1


def test_new_output_changes_one_block(running):
    running.write("10%")
    tail, blocks = running.block(OutputTailBlock), list(running.row.blocks)
    running.write("\r20%")
    assert running.row.blocks == blocks
    assert tail.plain() == "20%"


def test_opened_it_shows_more_and_stays_what_it_is(running):
    running.write("".join(f"line {number}\n" for number in range(1000)))
    running.row._toggle()
    output = running.block(OutputBlock)
    assert output.text.split("\n")[0] == "line 600"
    output._toggle_wrap()
    running.write("more\n")
    assert running.block(OutputBlock) is output
    assert output._lines.wraps
    assert output.text.endswith("line 999\nmore")


def test_a_flood_is_read_from_its_end(running, monkeypatch):
    fed = []
    feed = tool_row.Terminal.feed
    monkeypatch.setattr(tool_row.Terminal, "feed", lambda self, text: fed.append(len(text)) or feed(self, text))
    running.write("x\n" * 150_000 + "last")
    assert running.block(OutputTailBlock).plain().endswith("x\nlast")
    assert max(fed) <= 16_000


def test_the_result_is_shown_whole_without_commands(running, qtbot):
    running.write("live")
    running.row._toggle()
    log = "".join(f"\x1b[31m{number}\x1b[0m\n" for number in range(3000))
    running.finish(Text(text=f" 1%\r99%\n{log}"), outcome=Outcome.FAILED)
    result = running.block(OutputBlock)
    assert "\x1b" not in result.text
    qtbot.waitUntil(lambda: result.text.startswith("99%\n0\n"))
    assert result.text.endswith("2999")
    assert result._lines.words[1] == [(0, 1, "red")]


def test_folded_a_failure_shows_its_end_and_a_success_nothing(running):
    running.finish(Text(text="a\nb\rB\n"), outcome=Outcome.FAILED)
    assert running.block(OutputTailBlock).plain() == "a\nB"
    item = ToolCallItem("i", "m", "t", "run", {}, state=CallState.ENDED)
    item.result = ToolResult(tool_use_id="t", content=(Text(text="fine"),), outcome=Outcome.SUCCEEDED)
    row = make_row(item, running.view._render_context, 600)
    assert len(row.blocks) == 1


def test_pictures_of_a_result_are_seen(running, tmp_path):
    running.finish(Text(text="Here."), Image(source=stored(tmp_path, 40, 20), name="screen.png"))
    assert running.block(ThumbnailsBlock).spoken_text() == "Picture: screen.png"
    with_names = [control.name for _, control in running.row.controls()]
    assert "Open picture: screen.png" in with_names


def test_the_time_is_told_while_it_runs_and_nobody_is_woken_after(running, monkeypatch):
    time = [100.0]
    monkeypatch.setattr(tool_row, "monotonic", lambda: time[0])
    running.row.refresh("state")
    running.row._since = 100.0
    seconds = running.view._render_context.seconds
    assert seconds._timer.isActive()
    time[0] = 112.0
    seconds._on_tick()
    assert running.row.blocks[0].header.state == "Running · 12 s"
    running.finish(Text(text="x"))
    seconds._on_tick()
    assert not seconds._timer.isActive()


def test_the_clock_goes_on_when_rows_are_made_anew(running, monkeypatch):
    time = [100.0]
    monkeypatch.setattr(tool_row, "monotonic", lambda: time[0])
    starts = running.view._render_context.seconds.starts
    starts.clear()
    running.row._since = None
    running.row.refresh("state")
    row = running.row
    time[0] = 160.0
    running.view._themes.use(running.view._themes.theme, 120)
    assert running.row is not row
    assert running.row.blocks[0].header.state == "Running · 60 s"
    running.finish(Text(text="x"))
    assert running.row.blocks[0].header.state.startswith("Done")
    assert starts == {}


def test_a_compact_card_takes_less_room_and_its_frame_goes_with_it(running):
    running.write("one\ntwo\n")
    frames = []
    for is_compact in (False, True, False):
        running.view._themes.set_reading_style(ReadingStyle(is_compact=is_compact))
        picture = running.view.grab().toImage()
        border = running.view._render_context.style.color("border").rgb()
        middle = picture.width() // 2
        edges = [y for y in range(picture.height()) if picture.pixelColor(middle, y).rgb() == border]
        frames.append((running.row.stack.height, max(edges) - min(edges)))
    assert frames[0] == frames[2]
    assert frames[1][0] < frames[0][0] - 10
    assert frames[1][1] < frames[0][1]


def test_hidden_characters_of_output_are_seen(running):
    running.write("safe\u202eexe\n")
    running.view.grab()
    assert running.block(OutputTailBlock)._lines._laid_out[0].piece(0).shown.text == "safe⟨U+202E⟩exe"
