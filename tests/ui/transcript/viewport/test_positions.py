"""Other fonts, themes and widths: the line at the upper edge stays where it is, and the selection on its words."""

import pytest
from PySide6.QtCore import QPoint

from desktop_agent.types.blocks import Citation, Text
from desktop_agent.types.messages import Message, Role
from tests.fakes.transcript_view import Standing
from ui.style.theme import DARK, LIGHT, ReadingStyle
from ui.transcript.rows.block_factory import LazySection
from ui.transcript.viewport.selection import TextPosition

WORDS = "many words that go on over several lines of the column, as they do in an ordinary answer of some length, "


def paragraphs(count):
    return "\n\n".join(f"Paragraph {number}: {WORDS * 4}" for number in range(count))


@pytest.fixture(params=[40, 120], ids=["short", "long"])
def harness(qtbot, request):
    """Return a harness scrolled into an answer; the long one is read section by section."""
    harness = Standing(
        qtbot, [Message.user("Hello"), Message.assistant(paragraphs(request.param)), Message.user("Bye")]
    )
    harness.view.scroller._prefetcher.start = lambda: None
    harness.view.scroller.scroll_by(-3000)
    while not at_top(harness)[1]:
        harness.view.scroller.scroll_by(5)
    return harness


def at_top(harness):
    """Return the text of the block at the upper edge, the offset in it, and the y of that offset."""
    surface = harness.view.row_viewport
    position = surface.position_at(QPoint(surface.column, 0))
    row = harness.rows.row(position.row)
    return row.blocks[position.block].plain(), position.offset, y_of(harness, position)


def y_of(harness, position):
    row = harness.rows.row(position.row)
    row.stack.settle_block(position.block)
    box = row.blocks[position.block].caret_rect_at(position.offset)
    return harness.view.row_viewport.row_box(position.row).top() + row.stack.block_box(position.block).top() + box.top()


def y_of_words(harness, text, offset):
    blocks = harness.rows.row(1).blocks
    index = next(
        index for index, block in enumerate(blocks) if not isinstance(block, LazySection) and block.plain() == text
    )
    return y_of(harness, TextPosition(1, index, offset))


CHANGES = {
    "theme": lambda harness: harness.themes.use(DARK, 100),
    "larger": lambda harness: harness.themes.use(LIGHT, 170),
    "smaller": lambda harness: harness.themes.use(LIGHT, 60),
    "text size": lambda harness: harness.themes.set_reading_style(ReadingStyle(size=15)),
    "font": lambda harness: harness.themes.set_reading_style(ReadingStyle(font="DejaVu Serif")),
    "density": lambda harness: harness.themes.set_reading_style(ReadingStyle(is_compact=True)),
    "line width": lambda harness: harness.themes.set_reading_style(ReadingStyle(line_width=420)),
    "window": lambda harness: harness.view.resize(520, 600),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_line_at_the_upper_edge_stays(harness, change):
    text, offset, y = at_top(harness)
    assert text.startswith("Paragraph")
    change(harness)
    assert abs(y_of_words(harness, text, offset) - y) <= 1


def test_there_and_back_again_is_the_same_picture(harness):
    picture = harness.view.viewport().grab().toImage()
    for zoom in (110, 120, 200, 50, 100):
        harness.themes.use(LIGHT, zoom)
    harness.themes.use(DARK, 100)
    harness.themes.use(LIGHT, 100)
    assert harness.view.viewport().grab().toImage() == picture


def test_what_is_selected_stays_selected(harness):
    text = at_top(harness)[0]
    index = next(index for index, block in enumerate(harness.rows.row(1).blocks) if block.plain() == text)
    harness.view.row_viewport.select(TextPosition(1, index, 10), TextPosition(1, index, 40))
    selected = harness.selected()
    assert len(selected) == 30
    harness.themes.use(DARK, 140)
    assert harness.selected() == selected


def test_the_caret_stays_before_its_letter(harness):
    position = harness.view.row_viewport.position_at(QPoint(harness.view.row_viewport.column, 300))
    words = harness.rows.row(1).blocks[position.block].plain()
    harness.view.caret.move_to(TextPosition(1, position.block, 7))
    harness.themes.use(DARK, 140)
    harness.view.scroller.scroll_to_end()
    harness.themes.use(LIGHT, 100)
    position = harness.view.caret.position
    assert (harness.rows.row(1).blocks[position.block].plain(), position.offset) == (words, 7)


def test_at_the_end_it_stays_at_the_end(harness):
    harness.view.scroller.scroll_to_end()
    harness.themes.use(LIGHT, 150)
    assert harness.rows.top == harness.rows.bottom


def test_only_what_is_near_the_screen_is_laid_out_anew(harness):
    harness.themes.set_reading_style(ReadingStyle()._replace(size=14))
    blocks = harness.rows.row(1).blocks
    laid = sum(block.is_laid_out for block in blocks)
    assert 0 < laid < len(blocks) / 2


def in_view(harness, row):
    """Scroll the row of many kinds to the upper edge, with all of it read and painted once."""
    harness.view.resize(800, 2400)
    harness.view.scroller.scroll_by(-1)
    for _ in range(3):
        harness.rows.scroll_to(harness.rows.row_top(row))
    harness.view.scroller.show_rows()
    return harness.picture()


EVERY_KIND = f"""# A heading

{WORDS}

- tight
- items with `code`

| name | **number** |
|---|---|
| {WORDS} | 1 |
| two | 2 |

```python
def found(): return None
```

---

> quoted

$$\\frac{{a}}{{b}}$$
"""


@pytest.mark.parametrize("zoom", [170, 60])
def test_an_answer_that_outlasts_another_look_is_like_one_that_was_made_in_it(qtbot, zoom):
    cited = (Citation(title="First", url="https://one.example/a"),)
    messages = [Message.user("Hello"), Message(role=Role.ASSISTANT, blocks=(Text(text=EVERY_KIND, citations=cited),))]
    changed, new = Standing(qtbot, messages), Standing(qtbot, messages)
    in_view(changed, 0)
    row = changed.rows.row(1)
    changed.view.caret.move_to(TextPosition(1, 1, 3))
    changed.themes.use(DARK, zoom)
    assert changed.rows.row(1) is row
    changed.view.caret.turn_off()
    new.themes.use(DARK, zoom)
    in_view(new, 0)
    in_view(changed, 0)
    changed_blocks, new_blocks = row.blocks, new.rows.row(1).blocks
    assert [block.gap for block in changed_blocks] == [block.gap for block in new_blocks]
    assert [row.stack.block_box(index) for index in range(len(changed_blocks))] == [
        new.rows.row(1).stack.block_box(index) for index in range(len(new_blocks))
    ]


def test_there_and_back_again_gaps_are_the_same(qtbot):
    cited = (Citation(title="First", url="https://one.example/a"),)
    harness = Standing(qtbot, [Message(role=Role.ASSISTANT, blocks=(Text(text=EVERY_KIND, citations=cited),))])
    harness.view.caret.move_to(TextPosition(0, 1, 3))
    row = harness.rows.row(0)
    gaps = [block.gap for block in row.blocks]
    for zoom in (60, 100):
        harness.themes.use(LIGHT, zoom)
    assert harness.rows.row(0) is row
    assert [block.gap for block in row.blocks] == gaps


def test_another_look_reads_nothing_anew(qtbot, monkeypatch):
    harness = Standing(qtbot, [Message.user("Hello"), Message.assistant(paragraphs(600))])
    harness.view.scroller._prefetcher.start = lambda: None
    harness.view.verticalScrollBar().setValue(harness.view.verticalScrollBar().maximum() // 2)
    blocks = [*harness.rows.row(1).blocks]
    assert any(isinstance(block, LazySection) for block in blocks)
    original, blocks_read = LazySection.read, []
    monkeypatch.setattr(LazySection, "read", lambda block, until: (blocks_read.append(block), original(block, until)))
    harness.themes.use(DARK, 100)
    assert harness.rows.row(1).blocks == blocks
    assert not blocks_read


def test_what_was_guessed_grows_with_the_letters(qtbot):
    harness = Standing(qtbot, [Message.user("Hello"), Message.assistant(paragraphs(600))])
    harness.view.scroller._prefetcher.start = lambda: None
    harness.view.verticalScrollBar().setValue(harness.view.verticalScrollBar().maximum() // 2)
    height = harness.rows.row(1).stack.height
    harness.themes.use(LIGHT, 50)
    assert harness.rows.row(1).stack.height < 0.6 * height
