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
def standing(qtbot, request):
    """The long one is read section by section."""
    made = Standing(qtbot, [Message.user("Hello"), Message.assistant(paragraphs(request.param)), Message.user("Bye")])
    made.view.scroller._prefetcher.start = lambda: None
    made.view.scroller.scroll_by(-3000)
    while not at_top(made)[1]:
        made.view.scroller.scroll_by(5)
    return made


def at_top(standing):
    """The text of the block at the upper edge, the place in it, and the y of that place."""
    surface = standing.view.row_viewport
    position = surface.position_at(QPoint(surface.column, 0))
    row = standing.rows.row(position.row)
    return row.blocks[position.block].plain(), position.offset, y_of(standing, position)


def y_of(standing, position):
    row = standing.rows.row(position.row)
    row.stack.settle_block(position.block)
    box = row.blocks[position.block].caret_rect_at(position.offset)
    return (
        standing.view.row_viewport.row_box(position.row).top() + row.stack.block_box(position.block).top() + box.top()
    )


def y_of_words(standing, text, offset):
    blocks = standing.rows.row(1).blocks
    at = next(at for at, block in enumerate(blocks) if not isinstance(block, LazySection) and block.plain() == text)
    return y_of(standing, TextPosition(1, at, offset))


CHANGES = {
    "theme": lambda standing: standing.themes.use(DARK, 100),
    "larger": lambda standing: standing.themes.use(LIGHT, 170),
    "smaller": lambda standing: standing.themes.use(LIGHT, 60),
    "text size": lambda standing: standing.themes.set_reading_style(ReadingStyle(size=15)),
    "font": lambda standing: standing.themes.set_reading_style(ReadingStyle(font="DejaVu Serif")),
    "density": lambda standing: standing.themes.set_reading_style(ReadingStyle(is_compact=True)),
    "line width": lambda standing: standing.themes.set_reading_style(ReadingStyle(line_width=420)),
    "window": lambda standing: standing.view.resize(520, 600),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_line_at_the_upper_edge_stays(standing, change):
    text, offset, y = at_top(standing)
    assert text.startswith("Paragraph")
    change(standing)
    assert abs(y_of_words(standing, text, offset) - y) <= 1


def test_there_and_back_again_is_the_same_picture(standing):
    before = standing.view.viewport().grab().toImage()
    for zoom in (110, 120, 200, 50, 100):
        standing.themes.use(LIGHT, zoom)
    standing.themes.use(DARK, 100)
    standing.themes.use(LIGHT, 100)
    assert standing.view.viewport().grab().toImage() == before


def test_what_is_selected_stays_selected(standing):
    text = at_top(standing)[0]
    at = next(at for at, block in enumerate(standing.rows.row(1).blocks) if block.plain() == text)
    standing.view.row_viewport.select(TextPosition(1, at, 10), TextPosition(1, at, 40))
    before = standing.selected()
    assert len(before) == 30
    standing.themes.use(DARK, 140)
    assert standing.selected() == before


def test_the_caret_stays_before_its_letter(standing):
    position = standing.view.row_viewport.position_at(QPoint(standing.view.row_viewport.column, 300))
    words = standing.rows.row(1).blocks[position.block].plain()
    standing.view.caret.move_to(TextPosition(1, position.block, 7))
    standing.themes.use(DARK, 140)
    standing.view.scroller.scroll_to_end()
    standing.themes.use(LIGHT, 100)
    position = standing.view.caret.position
    assert (standing.rows.row(1).blocks[position.block].plain(), position.offset) == (words, 7)


def test_at_the_end_it_stays_at_the_end(standing):
    standing.view.scroller.scroll_to_end()
    standing.themes.use(LIGHT, 150)
    assert standing.rows.top == standing.rows.bottom


def test_only_what_is_near_the_screen_is_laid_out_anew(standing):
    standing.themes.set_reading_style(ReadingStyle()._replace(size=14))
    blocks = standing.rows.row(1).blocks
    laid = sum(block.is_laid_out for block in blocks)
    assert 0 < laid < len(blocks) / 2


def in_view(standing, row):
    """The row of many kinds, at the upper edge, with all of it read and seen once."""
    standing.view.resize(800, 2400)
    standing.view.scroller.scroll_by(-1)
    for _ in range(3):
        standing.rows.scroll_to(standing.rows.row_top(row))
    standing.view.scroller.show_rows()
    return standing.picture()


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
    said = [Message.user("Hello"), Message(role=Role.ASSISTANT, blocks=(Text(text=EVERY_KIND, citations=cited),))]
    kept, fresh = Standing(qtbot, said), Standing(qtbot, said)
    in_view(kept, 0)
    row = kept.rows.row(1)
    kept.view.caret.move_to(TextPosition(1, 1, 3))
    kept.themes.use(DARK, zoom)
    assert kept.rows.row(1) is row
    kept.view.caret.turn_off()
    fresh.themes.use(DARK, zoom)
    in_view(fresh, 0)
    in_view(kept, 0)
    ours, theirs = row.blocks, fresh.rows.row(1).blocks
    assert [block.gap for block in ours] == [block.gap for block in theirs]
    assert [row.stack.block_box(at) for at in range(len(ours))] == [
        fresh.rows.row(1).stack.block_box(at) for at in range(len(theirs))
    ]


def test_there_and_back_again_gaps_are_the_same(qtbot):
    cited = (Citation(title="First", url="https://one.example/a"),)
    standing = Standing(qtbot, [Message(role=Role.ASSISTANT, blocks=(Text(text=EVERY_KIND, citations=cited),))])
    standing.view.caret.move_to(TextPosition(0, 1, 3))
    row = standing.rows.row(0)
    before = [block.gap for block in row.blocks]
    for zoom in (60, 100):
        standing.themes.use(LIGHT, zoom)
    assert standing.rows.row(0) is row
    assert [block.gap for block in row.blocks] == before


def test_another_look_reads_nothing_anew(qtbot, monkeypatch):
    standing = Standing(qtbot, [Message.user("Hello"), Message.assistant(paragraphs(600))])
    standing.view.scroller._prefetcher.start = lambda: None
    standing.view.verticalScrollBar().setValue(standing.view.verticalScrollBar().maximum() // 2)
    blocks = [*standing.rows.row(1).blocks]
    assert any(isinstance(block, LazySection) for block in blocks)
    read, count = LazySection.read, []
    monkeypatch.setattr(LazySection, "read", lambda block, until: (count.append(block), read(block, until)))
    standing.themes.use(DARK, 100)
    assert standing.rows.row(1).blocks == blocks
    assert not count


def test_what_was_guessed_grows_with_the_letters(qtbot):
    standing = Standing(qtbot, [Message.user("Hello"), Message.assistant(paragraphs(600))])
    standing.view.scroller._prefetcher.start = lambda: None
    standing.view.verticalScrollBar().setValue(standing.view.verticalScrollBar().maximum() // 2)
    before = standing.rows.row(1).stack.height
    standing.themes.use(LIGHT, 50)
    assert standing.rows.row(1).stack.height < 0.6 * before
