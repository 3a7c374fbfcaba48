"""What histories and exports point to in the web is never fetched: not read, stored, searched nor exported."""

import json
import re
import socket
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine.exchange.conversation_exchange import ConversationExchange, ExportFormat
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.exchange.readers import HISTORY_READERS
from desktop_agent.exchange.readers.reader import HistoryUnreadable
from desktop_agent.storage.store import Store
from desktop_agent.types.conversation_tree import ConversationTree
from tests.desktop_agent.exchange.readers.test_hostile_histories import WRITERS, data_files, reader_of
from tests.desktop_agent.exchange.test_hostile_imports import KINDS, export_of, saved

PROGRAMS = [reader.program for reader in HISTORY_READERS]


class Lure:
    """A server that nobody should ask, and texts and addresses that lead there."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}/picture.png"
        self.used = 0

    @property
    def was_asked(self) -> bool:
        with suppress(BlockingIOError):
            self._listener.accept()[0].close()
            return True
        return False

    def put(self, value: Any) -> Any:
        """Return the same JSON, with the address in every text and in the place of every other address."""
        if isinstance(value, dict):
            return {key: self.put(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self.put(member) for member in value]
        if not isinstance(value, str):
            return value
        if value[:1] in {"{", "["}:
            return self.put_into_text(value)
        if re.match(r"https?://|file-service://|sediment://|data:", value):
            self.used += 1
            return self.address
        if " " in value:
            self.used += 1
            return f'{value} ![picture]({self.address}) <img src="{self.address}">'
        return value

    def put_into_text(self, text: str) -> str:
        """Do so in JSON, in lines of JSON, and leave other text alone."""
        with suppress(ValueError):
            return json.dumps(self.put(json.loads(text)))
        lines: list[str] = []
        for line in text.splitlines(keepends=True):
            try:
                lines.append(json.dumps(self.put(json.loads(line))) + "\n")
            except ValueError:
                lines.append(line)
        return "".join(lines)

    def put_into_file(self, path: Path) -> None:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
            with zipfile.ZipFile(path, "w") as archive:
                for name, data in members.items():
                    archive.writestr(name, self.put_into_text(data.decode()))
        elif path.read_bytes().startswith(b"SQLite"):
            self._put_into_database(path)
        else:
            with suppress(UnicodeDecodeError):
                path.write_text(self.put_into_text(path.read_text(encoding="utf-8")), encoding="utf-8")

    def _put_into_database(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            db.create_function("lure", 1, lambda value: self.put_into_text(value) if isinstance(value, str) else value)
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")') if not row[5]]
                for column in columns:
                    db.execute(f'UPDATE "{table}" SET "{column}" = lure("{column}")')


@pytest.fixture
def lure() -> Iterator[Lure]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield Lure(listener)


async def used_everywhere(folder: Path, trees: list[ConversationTree]) -> str:
    """Store them, search in them, export them in every format; return the HTML."""
    store = await Store.open(folder / "data")
    try:
        for tree in trees:
            await store.import_tree(tree)
        assert await store.search.index_all()
        ids = [record.id for record in await store.list_conversations()]
        for export_format in ExportFormat:
            await ConversationExchange(store).export(ids[:1], folder / f"out.{export_format}", export_format)
        return (folder / f"out.{ExportFormat.HTML}").read_text(encoding="utf-8")
    finally:
        await store.close()


def test_the_lure_notices_who_asks(lure: Lure) -> None:
    assert not lure.was_asked
    with socket.create_connection(("127.0.0.1", int(lure.address.split(":")[2].split("/")[0]))):
        assert lure.was_asked


@pytest.mark.parametrize("kind", KINDS)
async def test_an_import_fetches_nothing(kind: str, tmp_path: Path, lure: Lure) -> None:
    with ConversationImport(saved(tmp_path, json.dumps(lure.put(export_of(kind))))) as export:
        trees = [entry for entry in export if isinstance(entry, ConversationTree)]
    assert trees
    html = await used_everywhere(tmp_path, trees)
    assert lure.used
    assert f'src="{lure.address}' not in html
    assert not lure.was_asked


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_reader_fetches_nothing(program: str, tmp_path: Path, lure: Lure) -> None:
    home = tmp_path / "home"
    WRITERS[program](home)
    for path in data_files(home):
        lure.put_into_file(path)
    reader, trees = reader_of(program, home), list[ConversationTree]()
    for found in reader.list_conversations():
        with suppress(HistoryUnreadable):
            trees.append(reader.load(found.id).tree)
    assert any(lure.address in node.message.model_dump_json() for tree in trees for node in tree.messages)
    html = await used_everywhere(tmp_path, trees)
    assert f'src="{lure.address}' not in html
    assert not lure.was_asked
