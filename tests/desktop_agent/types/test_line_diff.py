import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.types.line_diff import MAX_COMPARED, MAX_LINES, _compare, count_changes, count_lines, diff_texts

LINES = st.lists(st.sampled_from(["a", "b", "c", "same", ""]), max_size=40)


@given(LINES, LINES)
def test_the_diff_rebuilds_both_sides(before, after):
    lines = diff_texts("\n".join(before), "\n".join(after), context=1000)
    old, new = before or [""], after or [""]
    if not old[-1] and not new[-1]:
        old, new = old[:-1], new[:-1]
    if old == new:
        assert [(line.kind, line.text) for line in lines] == ([("gap", str(len(old)))] if old else [])
        return
    assert [line.text for line in lines if line.kind in {"same", "removed"}] == old
    assert [line.text for line in lines if line.kind in {"same", "added"}] == new
    olds = [line.old for line in lines if line.old is not None]
    news = [line.new for line in lines if line.new is not None]
    assert olds == list(range(1, len(olds) + 1))
    assert news == list(range(1, len(news) + 1))


def test_a_line_break_at_the_end_is_no_line():
    assert [(line.kind, line.text) for line in diff_texts("1\n2\n3\n4\n", "1\n2\n3\n4\n")] == [("gap", "4")]
    assert [line.kind for line in diff_texts("1\n", "1")] == ["same", "removed"]


def test_only_the_change_and_its_surroundings_are_shown():
    before = [f"line {i}" for i in range(100)]
    after = [*before[:50], "new", *before[50:]]
    lines = diff_texts("\n".join(before), "\n".join(after))
    assert [(line.kind, line.text) for line in lines] == [
        ("gap", "47"),
        ("same", "line 47"),
        ("same", "line 48"),
        ("same", "line 49"),
        ("added", "new"),
        ("same", "line 50"),
        ("same", "line 51"),
        ("same", "line 52"),
        ("gap", "47"),
    ]


def test_a_moved_block_is_found_through_its_anchors():
    block, rest = [f"block {i}" for i in range(30)], [f"rest {i}" for i in range(200)]
    lines = diff_texts("\n".join(block + rest), "\n".join(rest + block))
    assert sum(line.kind == "added" for line in lines) == 30
    assert sum(line.kind == "removed" for line in lines) == 30


def test_a_hostile_file_costs_no_more_than_its_length():
    # difflib alone takes minutes on this: 20,000 lines, no line unique, nothing in common order.
    before = "\n".join(f"{i % 97}" for i in range(20_000))
    after = "\n".join(f"{(i * 31) % 97}" for i in range(20_000))
    lines = diff_texts(before, after)
    assert {line.kind for line in lines} >= {"added", "removed"}


@given(LINES, LINES, st.integers(0, 4))
def test_what_is_the_same_around_the_changes_needs_no_comparison(before, after, context):
    old, new = "\n".join(before), "\n".join(after)
    assert diff_texts(old, new, context) == _compare(old, new, context)


def test_one_changed_line_of_a_million_is_found():
    before = [f"line {number}" for number in range(1_000_000)]
    after = [*before[:700_000], "new", *before[700_001:]]
    lines = diff_texts("\n".join(before), "\n".join(after))
    assert [(line.kind, line.text) for line in (lines[0], lines[-1])] == [("gap", "699997"), ("gap", "299996")]
    changed = [(line.kind, line.old, line.new) for line in lines[4:6]]
    assert changed == [("removed", 700_001, None), ("added", None, 700_001)]


def test_of_very_many_changed_lines_the_first_are_shown_and_all_are_counted():
    count = MAX_COMPARED
    lines = diff_texts("same\n" + "old\n" * count, "same\n" + "new\n" * (count + 1))
    assert len(lines) <= MAX_LINES + 3
    assert (count_lines(lines, "removed"), count_lines(lines, "added")) == (count, count + 1)
    assert {line.text for line in lines if line.kind == "added"} == {"new"}


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("", "a\nb\n", (2, 0)),
        ("", "a", (1, 0)),
        ("a\nb\n", "", (0, 2)),
        ("a\nb\nc\n", "a\nx\nc\n", (1, 1)),
        ("a\n", "a\n", (0, 0)),
        ("", "", (0, 0)),
        ("old\n" * 30_000, "new\n" * 20_000, (20_000, 30_000)),
    ],
)
def test_changed_lines_are_counted(before, after, counts):
    assert count_changes(before, after) == counts
