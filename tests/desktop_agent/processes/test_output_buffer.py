import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.processes.run_process import OutputBuffer


def fed(data: bytes, limit: int, size: int) -> tuple[str, bool, str]:
    """What is kept and what was told, when the bytes come in pieces of `size`."""
    told: list[str] = []
    output = OutputBuffer(limit, told.append)
    for start in range(0, len(data), size):
        output.add(data[start : start + size])
    output.add(b"", final=True)
    return (*output.excerpt(), "".join(told))


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_bytes_that_are_no_text_are_replaced_and_characters_are_never_torn(size: int) -> None:
    data = "Grüße 🎈".encode() + b" \xff\xfe \xc3"
    assert fed(data, 100, size) == ("Grüße 🎈 �� �", False, "Grüße 🎈 �� �")


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_too_much_leaves_out_the_middle_and_says_how_much(size: int) -> None:
    kept, truncated, told = fed(b"begin" + b"." * 90 + b"finis", 10, size)
    assert (kept, truncated) == ("begin\n[90 characters are left out here.]\nfinis", True)
    assert told == "begin....."


def test_exactly_the_limit_is_not_too_much() -> None:
    assert fed(b"0123456789", 10, 3) == ("0123456789", False, "0123456789")
    assert fed(b"01", 1, 1) == ("0\n[1 characters are left out here.]\n", True, "0")
    assert fed(b"01", 0, 1) == ("\n[2 characters are left out here.]\n", True, "")


@given(st.binary(max_size=300), st.integers(0, 40), st.integers(1, 50))
def test_pieces_make_no_difference(data: bytes, limit: int, size: int) -> None:
    assert fed(data, limit, size) == fed(data, limit, 1000)


def test_a_listener_that_raises_is_told_no_more_and_the_text_is_kept() -> None:
    heard: list[str] = []

    def listen(text: str) -> None:
        heard.append(text)
        raise LookupError

    output = OutputBuffer(100, listen)
    output.add(b"one")
    output.add(b"two")
    assert heard == ["one"]
    assert isinstance(output.failure, LookupError)
    assert output.excerpt() == ("onetwo", False)
