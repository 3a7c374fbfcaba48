import io
import json
import tracemalloc
from typing import Any

import pytest

from desktop_agent.exchange import json_stream
from desktop_agent.exchange.json_stream import JsonArrayReader, ReadBytes, UnreadableEntry


def entries(data: bytes | str, size: int | None = None) -> list[Any]:
    file = io.BytesIO(data.encode() if isinstance(data, str) else data)
    read: ReadBytes = file.read if size is None else lambda _: file.read(size)
    reader = JsonArrayReader(read)
    reader.read_head()
    return [str(entry.reason) if isinstance(entry, UnreadableEntry) else entry for entry in reader]


HARD = [
    {"a": 'x\\"]}', "b": [1, {"c": []}]},
    "漢字 \U0001f600 \\u0041",
    123456789012345678901234567890,
    -1.5e3,
    None,
    [],
]


@pytest.mark.parametrize("size", [1, 7, None])
def test_entries_are_what_the_library_reads_at_once(size: int | None) -> None:
    assert entries(json.dumps(HARD, ensure_ascii=False), size) == HARD
    assert entries(json.dumps(HARD, indent=2), size) == HARD
    assert entries(b"\xef\xbb\xbf [ ]", size) == []


@pytest.mark.parametrize("size", [1, None])
def test_an_array_may_be_in_an_object_or_the_object_the_only_entry(size: int | None) -> None:
    assert entries('{"format": "x", "conversations": [1, 2], "more": 3}', size) == [1, 2]
    assert entries('{"title": "x", "mapping": {"a": 1}}', size) == [{"title": "x", "mapping": {"a": 1}}]
    assert entries('{"title": "x"}', size) == [{"title": "x"}]
    reader = JsonArrayReader(io.BytesIO(b'{"format": "x", "version": 1, "conversations": []}').read)
    assert reader.read_head() == {"format": "x", "version": 1}


@pytest.mark.parametrize("data", ["", "   ", "x", "3", '"text"', '{"a" 3}', "\ufeff"])
def test_what_holds_no_entries_says_so(data: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        entries(data)


def test_lone_surrogates_control_characters_and_nan_are_read() -> None:
    assert entries(b'["\\ud800", "a\nb\x00", NaN, "\\ud83d\\ude00"]') == ["\ud800", "a\nb\x00", None, "\U0001f600"]


def test_bytes_that_are_no_text_are_replaced_and_noted() -> None:
    reader = JsonArrayReader(io.BytesIO(b'["a\xffb", "\xe6\xbc\xa2"]').read)
    reader.read_head()
    assert (list(reader), reader.had_bad_bytes) == (["a\ufffdb", "漢"], True)


@pytest.mark.parametrize("size", [1, 50, None])
def test_broken_entries_cost_only_themselves(size: int | None) -> None:
    damaged = "It is damaged: this is not JSON."
    assert entries('[{"a": nul, "b": "]}"}, {"c": [1,, 2]}, 3]', size) == [damaged, damaged, 3]
    assert entries('[1, {"a": 1 "b"}, {"ok": true}]', size) == [1, damaged, {"ok": True}]
    assert entries("[1, wrong, 2]", size) == [1, damaged]


@pytest.mark.parametrize("cut", ['[1, {"a": "b', '[1, {"a"', '[1, {"a": [', "[1,", "[1", '[1, {"a": tr', '[1, "\\u00'])
def test_a_file_that_ends_early_keeps_what_came(cut: str) -> None:
    assert entries(cut) == [1, "The file ends in the middle of it."]
    assert entries(cut, 1) == [1, "The file ends in the middle of it."]


@pytest.mark.parametrize("depth", [201, 990, 100_000])
def test_deep_nesting_costs_only_its_entry(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    assert entries(f'[{deep}, {{"a": {deep}}}, 5]') == ["It is nested too deeply."] * 2 + [5]


def test_an_entry_at_the_limit_of_depth_is_read() -> None:
    value: Any = 1
    for _ in range(json_stream.MAX_DEPTH):
        value = [value]
    assert entries(json.dumps([value])) == [value]


def test_too_large_entries_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_ENTRY_LENGTH", 100_000)
    large = json.dumps({"a": "x" * 90_000, "b": [1] * 100_000})
    assert entries(f"[1, {large}, 2]") == [1, "It is too large to be read.", 2]
    assert entries("[1, " + '"' + "x" * 1_000_000) == [1, "It is too large to be read."]


def test_memory_is_that_of_the_largest_entry() -> None:
    entry = json.dumps({"text": "word " * 10_000}).encode()
    parts = iter([b"[", *[entry + b","] * 399, entry, b"]"])
    reader = JsonArrayReader(lambda _: next(parts, b""))
    reader.read_head()
    tracemalloc.start()
    assert sum(1 for _ in reader) == 400  # 20 MB
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
