"""Every reader takes everything: no crash, no hang, nothing written, no link followed, bounded memory."""

import json
import os
import random
import shutil
import sqlite3
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers import HISTORY_READERS
from desktop_agent.exchange.readers.reader import HistoryReader, HistoryUnreadable, Limits, Machine
from tests.desktop_agent.exchange.readers import foreign_homes as homes

WRITERS: dict[str, Callable[[Path], object]] = {
    "claude-code": homes.write_claude_code,
    "codex": homes.write_codex,
    "opencode": lambda home: (homes.write_opencode(home), homes.write_older_opencode(home)),
    "gemini-cli": homes.write_gemini,
    "goose": lambda home: (homes.write_goose(home), homes.write_older_goose(home, "20250101_120000")),
    "lm-studio": homes.write_lm_studio,
    "jan": homes.write_jan,
    "open-webui": homes.write_webui,
    "cherry-studio": homes.write_cherry,
}
DATABASES = {"opencode", "goose", "open-webui"}
LINES = ["claude-code", "codex", "gemini-cli", "jan"]
SMALL = Limits(line=200_000, file=20_000_000, document=2_000_000, messages=2_000)

each_program = pytest.mark.parametrize("program", [reader.program for reader in HISTORY_READERS])
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")


def reader_of(program: str, home: Path, limits: Limits = SMALL) -> HistoryReader:
    reader = next(reader for reader in HISTORY_READERS if reader.program == program)
    return reader(Machine(home, {}, "linux"), limits)


def read_all(reader: HistoryReader) -> tuple[int, int]:
    """List and load everything, and return how many conversations and messages there were."""
    conversations = messages = 0
    for found in reader.list_conversations():
        conversations += 1
        assert found.title == found.title.strip()
        assert found.created_at.tzinfo is not None
        assert found.updated_at.tzinfo is not None
        try:
            loaded = reader.load(found.id)
        except HistoryUnreadable:
            continue
        loaded.tree.branch()
        loaded.tree.model_dump_json()
        messages += len(loaded.tree.messages)
        assert loaded.report.notes is not None
    return conversations, messages


def data_files(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path.is_file() and path.name != ".project_root")


def state(home: Path) -> dict[str, tuple[Any, ...]]:
    """Return name, kind, size, time and content of all below a folder; of folders, times too."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted(home.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(home))] = (status.st_mode, status.st_mtime_ns, status.st_size, content)
    return found


def test_every_program_has_one_reader_and_a_home() -> None:
    programs = [reader.program for reader in HISTORY_READERS]
    assert len(set(programs)) == len(programs)
    assert set(programs) == set(WRITERS)
    assert len({reader.title for reader in HISTORY_READERS}) == len(programs)


@each_program
def test_an_empty_home_has_nothing(tmp_path: Path, program: str) -> None:
    reader = reader_of(program, tmp_path)
    assert not reader.is_present()
    assert list(reader.list_conversations()) == []
    with pytest.raises(HistoryUnreadable):
        reader.load("any/thing")


@each_program
def test_reading_changes_nothing(tmp_path: Path, program: str) -> None:
    WRITERS[program](tmp_path)
    before = state(tmp_path)
    conversations, messages = read_all(reader_of(program, tmp_path))
    assert conversations
    assert messages > 1
    assert state(tmp_path) == before


@pytest.mark.parametrize("program", sorted(DATABASES))
def test_reading_beside_a_running_program_changes_nothing(tmp_path: Path, program: str) -> None:
    write = {"opencode": homes.write_opencode, "goose": homes.write_goose, "open-webui": homes.write_webui}[program]
    connection: sqlite3.Connection = write(tmp_path, keep_log=True)
    before = state(tmp_path)
    assert any(name.endswith("-wal") for name in before)
    assert read_all(reader_of(program, tmp_path))[1] > 1
    assert state(tmp_path) == before
    connection.execute("CREATE TABLE still_writable (x)")
    connection.close()


@posix_only
@each_program
def test_a_folder_that_may_only_be_read_is_read(tmp_path: Path, program: str) -> None:
    WRITERS[program](tmp_path)
    expected = read_all(reader_of(program, tmp_path))
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    for path in folders:
        path.chmod(0o500)
    try:
        assert read_all(reader_of(program, tmp_path)) == expected
    finally:
        for path in folders:
            path.chmod(0o700)


@each_program
def test_truncated_anywhere_it_is_read_or_refused(tmp_path: Path, program: str) -> None:
    WRITERS[program](tmp_path / "whole")
    for file in data_files(tmp_path / "whole")[:4]:
        data = file.read_bytes()
        for part in range(1, 8):
            file.write_bytes(data[: len(data) * part // 8 + part])
            read_all(reader_of(program, tmp_path / "whole"))
        file.write_bytes(data)


@each_program
def test_bytes_that_are_no_text_are_read_or_refused(tmp_path: Path, program: str) -> None:
    WRITERS[program](tmp_path)
    generator = random.Random(program)
    for file in data_files(tmp_path)[:4]:
        data = bytearray(file.read_bytes())
        for _ in range(6):
            damaged = bytearray(data)
            for _ in range(20):
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
            file.write_bytes(damaged)
            read_all(reader_of(program, tmp_path))
        file.write_bytes(data)


STRANGE: list[Any] = [
    None,
    True,
    -1,
    10**30,
    1.5,
    "",
    "\u202e\x00x",
    [],
    [None],
    {},
    {"type": "text"},
    [[[]]],
    {"a": {"b": []}},
]


def strange_copies(value: Any, generator: random.Random) -> Iterator[Any]:
    """Yield copies in which one part has a type that nobody expects."""
    paths: list[tuple[Any, ...]] = []

    def walk(part: Any, path: tuple[Any, ...]) -> None:
        paths.append(path)
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, inner in items:
            walk(inner, (*path, key))

    walk(value, ())
    for path in generator.sample(paths, min(len(paths), 60)):
        copy = json.loads(json.dumps(value))
        if not path:
            yield generator.choice(STRANGE)
            continue
        place = copy
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = generator.choice(STRANGE)
        yield copy


@pytest.mark.parametrize(
    ("program", "make", "write"),
    [
        ("claude-code", homes.claude_session, homes.write_claude_code),
        ("codex", homes.codex_session, homes.write_codex),
        ("gemini-cli", homes.gemini_session, homes.write_gemini),
        ("jan", homes.jan_messages, homes.write_jan),
        ("lm-studio", homes.lm_studio_chat, homes.write_lm_studio),
        ("cherry-studio", homes.cherry_backup, homes.write_cherry),
        ("open-webui", homes.webui_chat, homes.write_webui),
    ],
)
def test_parts_of_any_type_are_read_or_refused(
    tmp_path: Path, program: str, make: Callable[[], Any], write: Callable[[Path, Any], object]
) -> None:
    for number, copy in enumerate(strange_copies(make(), random.Random(program))):
        home = tmp_path / str(number)
        write(home, copy if isinstance(copy, list) or program not in LINES else [copy])
        read_all(reader_of(program, home))
        shutil.rmtree(home)


@pytest.mark.parametrize("program", ["opencode", "goose"])
def test_rows_of_any_type_are_read_or_refused(tmp_path: Path, program: str) -> None:
    WRITERS[program](tmp_path)
    (path,) = [path for path in data_files(tmp_path) if path.suffix == ".db"]
    original, generator = path.read_bytes(), random.Random(program)
    for _ in range(25):
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        table = generator.choice(
            [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        )
        column = generator.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
        value = generator.choice(
            [None, 1, -1.5, "", "{", "[1]", '"x"', b"\xff\x00", '{"role": [], "type": {}}', "x" * 1000]
        )
        connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (value,))
        connection.close()
        read_all(reader_of(program, tmp_path))
        path.write_bytes(original)


@posix_only
@each_program
def test_links_pipes_and_devices_are_neither_followed_nor_waited_for(tmp_path: Path, program: str) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    WRITERS[program](home)
    WRITERS[program](outside)
    for file in data_files(home):
        file.unlink()
        file.symlink_to(outside / file.relative_to(home))
    assert read_all(reader_of(program, home)) == (0, 0)
    for file in sorted(path for path in home.rglob("*") if path.is_symlink()):
        file.unlink()
        os.mkfifo(file)
    assert read_all(reader_of(program, home)) == (0, 0)
    for file in sorted(path for path in home.rglob("*") if path.is_fifo()):
        file.unlink()
        file.symlink_to("/dev/zero")
    assert read_all(reader_of(program, home)) == (0, 0)


@posix_only
@each_program
def test_a_gigabyte_is_bounded_in_memory(tmp_path: Path, program: str) -> None:
    WRITERS[program](tmp_path)
    for file in data_files(tmp_path)[:2]:
        os.truncate(file, 1_000_000_000)
    tracemalloc.start()
    read_all(reader_of(program, tmp_path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000_000


@pytest.mark.parametrize("program", LINES)
def test_deep_and_long_lines_are_counted_and_the_rest_is_read(tmp_path: Path, program: str) -> None:
    WRITERS[program](tmp_path)
    (path,) = [path for path in data_files(tmp_path) if path.suffix == ".jsonl"]
    expected = read_all(reader_of(program, tmp_path))
    deep = b'{"type":' * 5000 + b"1" + b"}" * 5000
    long = b'{"type": "' + b"x" * 300_000 + b'"}'
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first + b"\n" + deep + b"\n" + long + b"\n" + rest)
    reader = reader_of(program, tmp_path)
    assert read_all(reader) == expected
    (found,) = reader.list_conversations()
    report = reader.load(found.id).report
    assert (report.count(Omission.BAD_LINE), report.count(Omission.LONG_LINE)) == (1, 1)


@pytest.mark.parametrize("program", LINES)
def test_a_file_of_one_entry_again_and_again_ends(tmp_path: Path, program: str) -> None:
    WRITERS[program](tmp_path)
    (path,) = [path for path in data_files(tmp_path) if path.suffix == ".jsonl"]
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join(lines * 200))
    conversations, messages = read_all(reader_of(program, tmp_path))
    assert conversations == 1
    assert messages <= SMALL.messages
