"""A very long message is cut into its sections between frames, and says the same before and after."""

from math import inf

import pytest

from desktop_agent.types.messages import Message
from tests.fakes.transcript_feed import read_all
from tests.fakes.transcript_view import Standing
from tests.ui.transcript.copied import copy_formats_of, markdown_of, plain_of
from ui.transcript.clipboard import EMPTY_EXTRACT
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.rows import block_factory
from ui.transcript.rows.block_factory import LazySection, SplittingSection
from ui.transcript.rows.row_factory import make_row

PART = "## Part {0}\n\nWords of part {0}, see [there][{0}] and [^n].\n\n- first\n- second\n\n```\ncode {0}\n```\n\n"
TEXT = "".join(PART.format(number) for number in range(600)) + "[^n]: A note.\n\n    Its end.\n\n"
DEFINED = "".join(f"[{number}]: https://x.example/{number}\n" for number in range(600))


@pytest.fixture
def harness(qtbot, monkeypatch):
    monkeypatch.setattr(block_factory, "_FIRST_SLICE", 0)
    monkeypatch.setattr(block_factory, "_MIN_SLICE", 0)
    harness = Standing(qtbot)
    # What is read ahead is read when a test says so.
    harness.view.scroller._prefetcher.start = lambda: None
    return harness


def open_answer(harness, text):
    harness.transcript.add_message(Message.assistant(text))
    harness.view.set_transcript(harness.transcript)
    return harness.rows.row(0)


def whole(harness, text):
    """Return the same row, read at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_factory, "_FIRST_SLICE", inf)
        row = make_row(harness.transcript[0], harness.view._render_context, harness.rows.width)
    assert not any(isinstance(block, SplittingSection) for block in row.blocks)
    read_all(row)
    return row


def test_it_is_cut_in_slices_and_says_the_same(harness):
    row = open_answer(harness, TEXT + DEFINED)
    assert [type(block) for block in row.blocks] == [SplittingSection]
    slices = 0
    while any(isinstance(block, SplittingSection) for block in row.blocks):
        harness.view.scroller._prefetcher._continue()
        slices += 1
        assert slices < 2000
    assert any(isinstance(block, LazySection) for block in row.blocks)
    read_all(row)
    expected = whole(harness, TEXT + DEFINED)
    assert plain_of(row) == plain_of(expected)
    assert "there" in plain_of(row)
    assert markdown_of(row) == markdown_of(expected)
    assert "https://x.example/599" in markdown_of(row)


@pytest.mark.parametrize("cut", [0, 3])
def test_before_it_is_cut_its_text_is_known(harness, cut):
    row = open_answer(harness, TEXT + DEFINED)
    for _ in range(cut):
        row.stack.read(0, 0)
    assert isinstance(row.blocks[0], SplittingSection)
    expected = whole(harness, TEXT + DEFINED)
    assert row.blocks[0].contains_text("code 599")
    forms, expected_forms = copy_formats_of(row.extracts()), copy_formats_of(expected.extracts())
    assert (forms.plain, forms.markdown, forms.html) == (
        expected_forms.plain,
        expected_forms.markdown,
        expected_forms.html,
    )
    assert isinstance(row.blocks[0], SplittingSection)
    assert plain_of(row) == plain_of(expected)


def test_copying_stops_often_on_its_way_through_definitions(harness):
    row = open_answer(harness, f"Words.\n\n{DEFINED * 5}\n[end][7]\n")
    extracts = list(row.extracts())
    assert [extract.text for extract in extracts if extract is not EMPTY_EXTRACT] == ["Words.", "end"]
    # Once while it is cut, in steps of 2,000 characters, and once while it is read, in steps of 1,000.
    assert extracts.count(EMPTY_EXTRACT) > 1.4 * len(DEFINED * 5) / 1000


def test_of_a_text_of_many_definitions_only_steps_are_read(harness, monkeypatch):
    lengths = []
    parse = parse_leaves.__globals__["parse_blocks"]

    def counted(text, *args, **options):
        lengths.append(len(text))
        return parse(text, *args, **options)

    for module in ("stream", "sections"):
        monkeypatch.setattr(f"ui.transcript.markdown.{module}.parse_blocks", counted)
    row = open_answer(harness, f"Words.\n\n{DEFINED * 5}\n[end][7]\n")
    while (index := row.stack.last_lazy_section()) is not None:
        row.stack.read(index, 0)
    assert [block.plain() for block in row.blocks] == ["Words.", "end"]
    assert max(lengths) < 3000
    assert sum(lengths) < 4 * len(DEFINED * 5)


def test_copying_what_is_half_read_stops_often(harness):
    text = "> said\n>\n" * 4000
    row = open_answer(harness, text)
    while len(row.blocks) < 500:
        row.stack.read(row.stack.last_lazy_section(), 0)
    block = row.blocks[-1]
    read = block._at
    forms = copy_formats_of(row.extracts())
    assert forms.markdown.count("> said") == forms.plain.count("said") == 4000
    assert list(row.extracts()).count(EMPTY_EXTRACT) >= len(text) // 1000
    assert (row.blocks[-1], block._at) == (block, read)
