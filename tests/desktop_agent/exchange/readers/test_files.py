"""Other programs' files are opened only to read them: bounded, behind no link, and never waited for."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.exchange.readers.files import NotReadable, file_id, locate, open_file, parse_json, read_tail
from desktop_agent.exchange.readers.reader import LIMITS, Limits, Reading

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")


def objects(path: Path, limits: Limits = LIMITS) -> tuple[list[dict[str, Any]], ImportReport]:
    reading = Reading(limits)
    with open_file(path) as file:
        return list(reading.objects(file)), reading.report


@posix_only
def test_links_pipes_devices_and_folders_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "link", tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "none"):
        with pytest.raises(NotReadable):
            open_file(path)


@posix_only
def test_no_link_is_walked_or_named_by_an_id(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    (outside / "deep").mkdir(parents=True)
    (outside / "a.jsonl").write_text("{}")
    (root / "own").mkdir(parents=True)
    (root / "own" / "b.jsonl").write_text("{}")
    (root / "folder").symlink_to(outside)
    (root / "c.jsonl").symlink_to(outside / "a.jsonl")
    reading = Reading()
    assert list(reading.walk(root, 3, lambda _: True)) == [root / "own" / "b.jsonl"]
    assert reading.report.omissions == {(Omission.LINK, ""): 2}
    with pytest.raises(NotReadable):
        locate((root,), "folder/a", (".jsonl",))
    with pytest.raises(NotReadable):
        open_file(locate((root,), "c", (".jsonl",))[0])


@posix_only
def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "own").mkdir(parents=True)
    (tmp_path / "real" / "own" / "b.jsonl").write_text("{}")
    root = tmp_path / "root"
    root.symlink_to(tmp_path / "real")
    (path,) = Reading().walk(root, 1, lambda _: True)
    assert file_id(root, path, ".jsonl") == "own/b"
    assert locate((root,), "own/b", (".jsonl",)) == (path, root)


def test_too_many_files_are_counted(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}").write_text("")
    reading = Reading(Limits(files=3))
    assert len(list(reading.walk(tmp_path, 0, lambda _: True))) == 3
    assert reading.report.count(Omission.TOO_MANY) == 1


def test_a_line_that_is_too_long_is_skipped_alone(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b'{"a": 1}\n{"b": "' + b"x" * 500_000 + b'"}\n{"c": 3}\n')
    found, report = objects(path, Limits(line=1000))
    assert found == [{"a": 1}, {"c": 3}]
    assert report.omissions == {(Omission.LONG_LINE, ""): 1}


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b'{"a": 1}\n' * 100)
    found, report = objects(path, Limits(file=20))
    assert len(found) == 2
    assert report.count(Omission.TOO_LARGE) == 1


def test_a_file_of_very_many_lines_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "many"
    path.write_bytes(b'{"a": 1}\n' * 100)
    found, report = objects(path, Limits(entries=30))
    assert len(found) == 30
    assert report.omissions == {(Omission.TOO_MANY, ""): 1}


@posix_only
def test_a_gigabyte_without_a_line_end_takes_neither_memory_nor_long(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.write_bytes(b'{"a": 1}\n')
    os.truncate(path, 1_000_000_000)
    found, report = objects(path, Limits(file=50_000_000, line=1_000_000))
    assert found == [{"a": 1}]
    assert report.count(Omission.LONG_LINE) == report.count(Omission.TOO_LARGE) == 1


def test_a_file_that_grows_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_text('{"n": 0}\n' * 3)
    with open_file(path) as file:
        found = []
        for value in Reading().objects(file):
            found.append(value)
            with path.open("a") as more:
                more.write('{"n": 1}\n' * 1000)
    assert found == [{"n": 0}] * 3


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(b'{"a": 1}\n\n[1]\nnull\n{"a": \n\x00\x01\n{"b": NaN}\n' + b'{"x":' * 5000 + b"\n" + b'{"c": 3')
    found, report = objects(path)
    assert found == [{"a": 1}]
    assert report.omissions == {(Omission.BAD_LINE, ""): 7}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a": "\xff\xfe!"}', {"a": "\ufffd\ufffd!"}),
        (b'{"a": "\\ud83d"}', {"a": "?"}),
        (b'{"a": "\\ud83d\\ude00 \\ude00"}', {"a": "\U0001f600 ?"}),
        (b'{"a": "\\\\ud83d \\udc00"}', {"a": "\\ud83d ?"}),
        (b"[" * 300 + b"]" * 300, None),
        (b"1" * 6000, None),
        (b'{"a": Infinity}', None),
    ],
)
def test_text_that_is_no_text_is_repaired_and_the_rest_refused(raw: bytes, value: object) -> None:
    found = parse_json(raw)
    assert found == value
    json.dumps(found, ensure_ascii=False).encode()


def test_a_document_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_text(json.dumps(["x" * 100]))
    assert Reading().document(path) == ["x" * 100]
    with pytest.raises(NotReadable, match="too large"):
        Reading(Limits(document=50)).document(path)
    path.write_text("[")
    with pytest.raises(NotReadable, match="no JSON"):
        Reading().document(path)


def test_the_tail_has_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "tail"
    path.write_bytes(b"first\nsecond\nthird\n")
    with open_file(path) as file:
        assert read_tail(file, 9) == [b"third", b""]
        assert read_tail(file, 100) == [b"first", b"second", b"third", b""]


def test_a_file_that_cannot_be_read_does_not_end_the_list(tmp_path: Path) -> None:
    reading = Reading()
    files = [("one", tmp_path / "none"), ("two", tmp_path)]
    assert list(reading.describe_files(files, lambda _id, _file, _changed: None)) == []
    assert reading.report.count(Omission.UNREADABLE_FILE) == 2


def test_files_that_are_too_large_together_are_left_out(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(b"x" * 10)
    reading = Reading(Limits(file=25))
    assert list(reading.within_size(paths)) == paths[:2]
    assert reading.report.omissions == {(Omission.TOO_LARGE, ""): 1}
    assert list(Reading(Limits(file=30)).within_size(paths)) == paths
