"""Content blocks of unknown types are replaced by text."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.mcp.limits import replace_unknown_content

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["text", "image", "content"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["content", "messages", "type", "role", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_a_server_says_is_taken_and_left_as_it_was(value):
    before = copy.deepcopy(value)
    replaced = replace_unknown_content(value)
    assert value == before
    assert replace_unknown_content(replaced) == replaced


def test_known_blocks_stay_and_others_become_words():
    known_block = {"type": "text", "text": "x", "more": 1}
    odd = {"type": "hologram" * 100, "data": "x"}
    (first, second) = replace_unknown_content({"content": [known_block, odd], "isError": False})["content"]
    assert first == known_block
    assert second["type"] == "text"
    assert len(second["text"]) < 200
    (message,) = replace_unknown_content({"messages": [{"role": "user", "content": odd}]})["messages"]
    assert (message["role"], message["content"]) == ("user", second)


def test_what_is_read_and_not_called_is_left_alone():
    contents = {"contents": [{"type": "odd", "uri": "x://y"}]}
    assert replace_unknown_content(contents) == contents
