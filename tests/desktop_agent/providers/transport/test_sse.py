import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.providers.transport import sse
from desktop_agent.providers.transport.sse import DONE, Frame, SseDecoder
from desktop_agent.types.errors import UnreadableAnswer
from tests.fakes.recordings import cut_at, pieces
from tests.frame.examples import examples


def decoded(*chunks: bytes, limit: int = 1 << 20) -> list[Frame]:
    decoder = SseDecoder(limit)
    return [frame for chunk in chunks for frame in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b'data: {"a":1}\n\n', [("", {"a": 1})]),
        (b'data:{"a":1}\n\n', [("", {"a": 1})]),
        (b'data:  {"a":1}\r\n\r\n', [("", {"a": 1})]),
        (b'data: {"a":1}\r\r', [("", {"a": 1})]),
        (b'\xef\xbb\xbfdata: {"a":1}\n\n', [("", {"a": 1})]),
        (b'event: x\ndata: {"a":1}\n\n', [("x", {"a": 1})]),
        (b'event: x\nevent: y\ndata: {"a":1}\n\n', [("y", {"a": 1})]),
        (b'data: {\ndata: "a":1}\n\n', [("", {"a": 1})]),
        (b"data: [1,2]\n\n", [("", [1, 2])]),
        (b"data: [DONE]\n\n", [("", DONE)]),
        (b"data: [DONE]", [("", DONE)]),
        (b"data: [DONE] \n", [("", DONE)]),
        (b"data\n\ndata:\n\nevent: foo\n\nretry: 3\n\nid: 1\n\n: c\n\n\n", []),
        (b'id: 7\ndata: {"a":1}\nunknown: y\n\n', [("", {"a": 1})]),
        (b'data: {"a":1}\ndata: {"a":2}\n\n', [("", {"a": 1}), ("", {"a": 2})]),
        (b'data: {"a":1}\ndata: {"a":2}\ndata: [DONE]\n\n', [("", {"a": 1}), ("", {"a": 2}), ("", DONE)]),
        (b'event: x\ndata: {"a":1}\nevent: y\ndata: {"a":2}\n\n', [("x", {"a": 1}), ("y", {"a": 2})]),
        (b'data: "a"\ndata: "b"\n\n', [("", "a"), ("", "b")]),
        (b'data: {"a":1}', [("", {"a": 1})]),
        (b'data: {"a":', []),
        (b'error: {"code":400}\n\n', [("error", {"error": {"code": 400}})]),
        (b'error: {"error":{"code":400}}\n\n', [("error", {"error": {"code": 400}})]),
        (b"error: no\n\n", [("error", {"error": "no"})]),
        (b'{"error":{"message":"x"}}', [("", {"error": {"message": "x"}})]),
        (b'\n\n{\n "error": {\n  "m": "a{b\\"}"\n }\n}\n', [("", {"error": {"m": 'a{b"}'}})]),
        (b'{"open":\ndata: {"a":1}\n\n', [("", {"a": 1})]),
        (b'[{"error":{"message":"x"}}]\n', [("", [{"error": {"message": "x"}}])]),
        (b"<html>\n<body>\n", []),
        (b'data: {"a":"x\ty"}\n\n', [("", {"a": "x\ty"})]),
        (b'data: {"a":NaN}\n\n', [("", {"a": None})]),
        (b'data: {"a":"\xff"}\n\n', [("", {"a": "\ufffd"})]),
        ('data: {"a":"\u2028\u0085\x0b\x1c|é🌍"}\n\n'.encode(), [("", {"a": "\u2028\u0085\x0b\x1c|é🌍"})]),
    ],
)
def test_framing(data: bytes, frames: list[Frame]) -> None:
    assert decoded(data) == frames
    for size in (1, 2, 3, 7):
        assert decoded(*pieces(data, size)) == frames
    after = decoded(b'data: {"first":0}\n\n' + data)
    if not data.startswith(b"\xef"):
        assert after == [("", {"first": 0}), *frames]


_ARRAYS = (
    b'[{"a":1}\n,\r\n{"a":"]}"}\n]',
    b'[\n  {"a":\n 1},\n  {"a":"]}"}\n]\n',
    b'[{"a":1}, {"a":\n"]}"}]\n',
    b'\xef\xbb\xbf[{\n"a": 1\n}, {\n"a": "]}"\n}\n]\n',
)


@pytest.mark.parametrize("data", _ARRAYS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_elements_of_an_array_do_not_wait_for_its_end(data: bytes, size: int) -> None:
    decoder = SseDecoder()
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert [frame for chunk in chunks for frame in decoder.feed(chunk)][:1] == [("", {"a": 1})]
    for behind in (b"", b"]", b'\n,{"a'):
        cut = SseDecoder()
        end = data.index(b'"]}"') + 4
        while b"}" not in data[end - 1 : end]:
            end += 1
        frames = [*cut.feed(data[:end] + behind), *cut.finish(is_cut=True)]
        assert (frames, cut.bad_events) == ([("", {"a": 1}), ("", {"a": "]}"})], 0)
    assert decoded(*chunks, b'\ndata: {"b":1}\n\n') == [("", {"a": 1}), ("", {"a": "]}"}), ("", {"b": 1})]


def test_a_damaged_element_of_an_array_is_counted_and_the_rest_goes_on() -> None:
    decoder = SseDecoder()
    frames = decoder.feed(b'[{"a":1},\n{"a" 2},\n{"a":3},\n{"a":') + decoder.finish()
    assert (frames, decoder.bad_events) == ([("", {"a": 1}), ("", {"a": 3})], 2)


def test_what_is_not_json_is_counted_and_the_rest_goes_on() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b'data: {nope\n\ndata: {"a":1}\n\n') == [("", {"a": 1})]
    assert decoder.bad_events == 1


def test_depth_bombs_are_bad_events() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: " + b"[" * 100_000 + b"\n\n") == []
    assert decoder.bad_events == 1


def test_strange_text_is_remembered() -> None:
    decoder = SseDecoder()
    decoder.feed(b"<!doctype html>\n<p>Sign in</p>\n")
    assert decoder.unexpected_line == "<!doctype html>"


@pytest.mark.parametrize(
    "data",
    [
        b"x" * 2000,
        b"data: " + b"x" * 2000 + b"\n\n",
        b"data: 1\n" * 1100 + b"\n",
        b"data:\n" * 1000,  # lines without content cost memory all the same
        b"[\n" + b"\n" * 1000,
    ],
)
@pytest.mark.parametrize("size", [0, 1, 700])
def test_size_limit(data: bytes, size: int) -> None:
    with pytest.raises(UnreadableAnswer, match="larger than"):
        decoded(*pieces(data, size), limit=1024)


@pytest.mark.parametrize("size", [0, 1, 20, 700])
@pytest.mark.parametrize("end", [b"", b"\n\n"])
def test_what_was_complete_before_the_limit_is_handed_out_first(size: int, end: bytes) -> None:
    decoder = SseDecoder(1024)
    frames: list[Frame] = []
    with pytest.raises(UnreadableAnswer, match="larger than"):  # noqa: PT012
        for piece in [*pieces(b'data: {"a":1}\n\ndata: {"a":2}\n\ndata: ' + b"x" * 2000 + end, size), b"x"]:
            frames += decoder.feed(piece)
    assert frames == [("", {"a": 1}), ("", {"a": 2})]


def test_a_limit_that_was_passed_at_the_end_is_told_there() -> None:
    decoder = SseDecoder(1024)
    assert decoder.feed(b'data: {"a":1}\n\n' + b"x" * 2000) == [("", {"a": 1})]
    with pytest.raises(UnreadableAnswer, match="larger than"):
        decoder.finish()


def test_an_event_of_many_lines_that_are_not_json_is_given_up_at_the_first() -> None:
    # Parsing three million lines one by one would block for half a minute.
    decoder = SseDecoder()
    decoder.feed(b"data: {\n" * 100_000)
    calls = 0

    def loads(_: bytes) -> None:
        nonlocal calls
        calls += 1
        raise ValueError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sse, "loads", loads)
        assert decoder.feed(b"\n") == []
    assert calls <= 3
    assert decoder.bad_events == 1


def test_a_long_line_in_small_pieces_is_read() -> None:
    text = "y" * 300_000
    assert decoded(*pieces(f'data: {{"a":"{text}"}}\n\n'.encode(), 1000)) == [("", {"a": text})]


def test_a_line_of_unclosed_strings_is_read_once() -> None:
    # Read again from each quote, this would take hours.
    assert decoded(b"{" + b'"\\' * 500_000 + b'\n\ndata: {"a":1}\n\n')[-1] == ("", {"a": 1})


LINES = st.sampled_from(
    [
        b'data: {"a":1}',
        b'data: {"b":',
        b"data: 2}",
        b"data: [DONE]",
        b": c",
        b"event: n",
        b"",
        b"",
        b"x",
        b'{"q":1}',
        b"{",
        b"}",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(LINES, ENDS), max_size=14), st.lists(st.integers(0, 200), max_size=8))
def test_any_chunking_gives_the_same(lines: list[tuple[bytes, bytes]], offsets: list[int]) -> None:
    data = b"".join(line + end for line, end in lines)
    frames = decoded(data)
    assert decoded(*cut_at(data, [offset for offset in offsets if offset < len(data)])) == frames
    assert decoded(*pieces(data, 1)) == frames


@settings(max_examples=examples(100), deadline=None)
@given(
    st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=5)
)
def test_every_json_value_survives(value: object) -> None:
    data = json.dumps({"v": value}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    ((_, parsed),) = decoded(b"data: " + data + b"\n\n")
    assert json.dumps(parsed["v"]).encode() is not None


@pytest.mark.parametrize(
    ("tail", "is_cut"),
    [
        (b"", False),
        (b": ping", False),
        (b'data: {"b":2}', False),
        (b"data: [DONE]", False),
        (b"d", True),
        (b"data:", True),
        (b"data: ", True),
        (b'data: {"b"', True),
        (b"event: x", True),
        (b"event: x\n", True),
        (b"data:\n", False),
    ],
)
def test_a_body_that_ends_in_the_middle_of_an_event_is_known(tail: bytes, is_cut: bool) -> None:
    decoder = SseDecoder()
    decoder.feed(b'data: {"a":1}\n\n' + tail)
    decoder.finish()
    assert decoder.ended_mid_event is is_cut


@pytest.mark.parametrize("size", [1, 7, 20, 1000])
def test_events_behind_a_page_do_not_count_however_it_is_cut(size: int) -> None:
    page = b'<html>\ndata: {"a":1}\n\ndata: {"a":2}\n\n'
    decoder = SseDecoder()
    frames = [frame for start in range(0, len(page), size) for frame in decoder.feed(page[start : start + size])]
    assert [*frames, *decoder.finish()] == []
    assert (decoder.is_web_page, decoder.unexpected_line) == (True, "<html>")


def test_a_tag_behind_an_event_makes_no_page_of_it() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b'data: {"a":1}\n\n<b>\ndata: {"a":2}\n\n') == [("", {"a": 1}), ("", {"a": 2})]
    assert not decoder.is_web_page


def test_an_event_with_too_many_objects_is_damaged_and_brackets_in_text_are_not_counted() -> None:
    decoder = SseDecoder()
    decoder.feed(b"data: {}\n\n")
    code = b'data: {"text": "' + b'{[\\"' * 100_000 + b'"}\n\n'
    frames = decoder.feed(code + b'data: {"choices": [' + b"{}," * 100_000 + b"{}]}\n\ndata: 1\n\n")
    assert [frame[1] if isinstance(frame[1], int) else frame[1].keys() for frame in frames] == [{"text"}, 1]
    assert decoder.bad_events == 1


def test_what_was_too_large_is_not_read_at_the_end() -> None:
    decoder = SseDecoder(limit=1000)
    with pytest.raises(UnreadableAnswer):
        decoder.feed(b"data: 1\n" * 100)
    with pytest.raises(UnreadableAnswer):
        decoder.finish(is_cut=True)
