"""Heights against a plain list."""

from itertools import accumulate
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ui.transcript.rows import heights
from ui.transcript.rows.heights import Heights

operations = st.lists(
    st.tuples(
        st.sampled_from(["set", "append", "insert", "remove", "replace"]), st.integers(0, 60), st.integers(0, 500)
    ),
    max_size=60,
)


# In a list that was just made, all full chunks are one.
@example(2, 4, 3, [("append", 0, 5), ("insert", 0, 0)])
@example(2, 6, 3, [("append", 0, 5), ("set", 1, 7), ("remove", 2, 1)])
@given(st.integers(1, 5), st.integers(0, 40), st.integers(0, 200), operations)
def test_sums_and_searches_agree_with_a_plain_list(chunk, count, default, done):
    with patch.object(heights, "_CHUNK", chunk):
        compare(count, default, done)


def compare(count, default, done):
    heights, plain = Heights(count, default), [default] * count
    for operation, position, value in done:
        if operation == "append":
            heights.append(value)
            plain.append(value)
        elif operation == "insert":
            index = position % (len(plain) + 1)
            heights.insert(index)
            plain.insert(index, default)
        elif operation == "replace":
            first = position % (len(plain) + 1)
            number, new_heights = value % (len(plain) - first + 1), list(range(value % 13))
            heights.replace(first, number, new_heights)
            plain[first : first + number] = new_heights
        elif plain and operation == "set":
            heights[position % len(plain)] = plain[position % len(plain)] = value
        elif plain:
            first = position % len(plain)
            number = 1 + value % (len(plain) - first)
            heights.remove(first, number)
            del plain[first : first + number]
        # What was known before a change must not be believed after it.
        assert heights.top(len(plain) // 2) == sum(plain[: len(plain) // 2])
        assert heights.find(value) <= max(0, len(plain) - 1)
    assert len(heights) == len(plain)
    assert heights.total == sum(plain)
    assert [heights[index] for index in range(len(plain))] == plain
    bottoms = list(accumulate(plain))
    assert [heights.top(index) for index in range(len(plain) + 1)] == [0, *bottoms]
    edges = {y for bottom in bottoms[-5:] for y in (bottom - 1, bottom)}
    for y in (*range(-1, sum(plain) + 2, max(1, sum(plain) // 37)), *edges):
        last = max(0, len(plain) - 1)
        assert heights.find(y) == next((index for index, bottom in enumerate(bottoms) if y < bottom), last)


def test_a_new_list_takes_no_room_for_heights_that_are_alike():
    heights = Heights(100_000, 160)
    assert len({id(chunk) for chunk in heights._chunks}) <= 2
    heights[70_000] = 7
    assert (heights[70_000], heights[70_001], heights[7]) == (7, 160, 160)
    assert len({id(chunk) for chunk in heights._chunks}) <= 3


def test_where_nothing_is_said_a_list_is_empty_and_what_comes_has_no_height():
    heights = Heights()
    assert (len(heights), heights.total) == (0, 0)
    heights.insert(0)
    assert [heights[0], Heights(3).total] == [0, 0]


def insert_thousands(heights):
    for number in range(3000):
        heights.insert(number // 2)


def append_thousands(heights):
    for number in range(3000):
        heights.append(number)


@pytest.mark.parametrize(
    "grow",
    [insert_thousands, append_thousands, lambda heights: heights.replace(5, 0, range(3000))],
    ids=["inserted", "appended", "at once"],
)
def test_a_long_list_consists_of_many_short_ones_however_it_grew(grow):
    heights = Heights(10, 20)
    grow(heights)
    lengths = [len(chunk) for chunk in heights._chunks]
    assert sum(lengths) == len(heights) == 3010
    assert max(lengths) <= 512
    assert len(lengths) <= 40
