"""Heights against a plain list."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from ui.transcript.rows import heights
from ui.transcript.rows.heights import Heights

operations = st.lists(
    st.tuples(
        st.sampled_from(["set", "append", "insert", "remove", "replace"]), st.integers(0, 60), st.integers(0, 500)
    ),
    max_size=60,
)


@given(st.integers(1, 5), st.integers(0, 40), st.integers(0, 200), operations)
def test_sums_and_searches_agree_with_a_plain_list(chunk, count, default, done):
    with patch.object(heights, "_CHUNK", chunk):
        compare(count, default, done)


def compare(count, default, done):
    heights, plain = Heights(count, default), [default] * count
    for what, at, value in done:
        if what == "append":
            heights.append(value)
            plain.append(value)
        elif what == "insert":
            index = at % (len(plain) + 1)
            heights.insert(index)
            plain.insert(index, default)
        elif what == "replace":
            first = at % (len(plain) + 1)
            number, new = value % (len(plain) - first + 1), list(range(value % 13))
            heights.replace(first, number, new)
            plain[first : first + number] = new
        elif plain and what == "set":
            heights[at % len(plain)] = plain[at % len(plain)] = value
        elif plain:
            first = at % len(plain)
            number = 1 + value % (len(plain) - first)
            heights.remove(first, number)
            del plain[first : first + number]
        # What was known before a change must not be believed after it.
        assert heights.top(len(plain) // 2) == sum(plain[: len(plain) // 2])
        assert heights.find(value) <= max(0, len(plain) - 1)
    assert len(heights) == len(plain)
    assert heights.total == sum(plain)
    assert [heights[index] for index in range(len(plain))] == plain
    for y in range(0, sum(plain) + 2, max(1, sum(plain) // 37)):
        index = heights.find(y)
        if plain:
            assert heights.top(index) <= y
            assert y < heights.top(index) + plain[index] or index == len(plain) - 1 or not plain[index]


def test_a_new_list_takes_no_room_for_heights_that_are_alike():
    heights = Heights(100_000, 160)
    assert len({id(chunk) for chunk in heights._chunks}) <= 2
    heights[70_000] = 7
    assert (heights[70_000], heights[70_001], heights[7]) == (7, 160, 160)
    assert len({id(chunk) for chunk in heights._chunks}) <= 3
