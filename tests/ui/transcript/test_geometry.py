"""The Fenwick tree against plain sums."""

from hypothesis import given
from hypothesis import strategies as st

from ui.transcript.geometry import Heights

operations = st.lists(
    st.tuples(st.sampled_from(["set", "append", "insert", "remove"]), st.integers(0, 60), st.integers(0, 500)),
    max_size=60,
)


@given(st.integers(0, 40), st.integers(0, 200), operations)
def test_sums_and_searches_agree_with_a_plain_list(count, default, done):
    heights, plain = Heights(count, default), [default] * count
    for what, at, value in done:
        if what == "append":
            heights.append(value)
            plain.append(value)
        elif what == "insert":
            index = at % (len(plain) + 1)
            heights.insert(index)
            plain.insert(index, default)
        elif plain and what == "set":
            heights[at % len(plain)] = plain[at % len(plain)] = value
        elif plain:
            first = at % len(plain)
            number = 1 + value % (len(plain) - first)
            heights.remove(first, number)
            del plain[first : first + number]
    assert len(heights) == len(plain)
    assert heights.total == sum(plain)
    assert [heights[index] for index in range(len(plain))] == plain
    for y in range(0, sum(plain) + 2, max(1, sum(plain) // 37)):
        index = heights.find(y)
        if plain:
            assert heights.top(index) <= y
            assert y < heights.top(index) + plain[index] or index == len(plain) - 1 or not plain[index]
