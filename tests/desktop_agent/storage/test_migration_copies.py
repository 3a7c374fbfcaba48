"""The copies that are made before a migration can be opened."""

from pathlib import Path

from desktop_agent.storage.backups.backup import StoredCounts
from desktop_agent.storage.backups.migration_copies import list_migration_copies, note_program, open_migration_copy
from desktop_agent.storage.files import delete_with_logs
from desktop_agent.storage.migrations import MIGRATIONS
from desktop_agent.storage.opening import open_database
from desktop_agent.storage.store import DATABASE_NAME, Store
from desktop_agent.types.messages import Message

NEXT = (*MIGRATIONS, "CREATE TABLE later (a);")


async def migrated(folder: Path, version: str) -> None:
    store = await Store.open(folder)
    await note_program(store, version)
    await store.create_conversation(title="t", id_="c")
    await store.commit("c", Message.user("Hello"))
    await store.close()
    opened = open_database(folder, NEXT)
    opened.connection.close()
    assert opened.presence is not None
    opened.presence.end()


async def test_a_copy_names_its_version_and_is_opened_in_a_new_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert await list_migration_copies(data) == ()
    await migrated(data, "1.20.3")
    (data / f"{DATABASE_NAME}.before-version-99").write_bytes(b"unreadable")
    (copy,) = await list_migration_copies(data)
    assert (copy.program, copy.schema) == ("1.20.3", len(MIGRATIONS))
    assert copy.counts == StoredCounts(conversations=1, in_trash=0, messages=1)
    (data / "preferences.json").write_text("{}")
    before, after = await open_migration_copy(copy.path, data, tmp_path / "again")
    assert before == after == copy.counts
    assert (tmp_path / "again" / "preferences.json").exists()
    again = await Store.open(tmp_path / "again")
    assert [message.text for message in (await again.load("c")).messages] == ["Hello"]
    await again.close()
    delete_with_logs(copy.path)
    assert await list_migration_copies(data) == ()


async def test_a_version_that_is_none_is_not_noted(tmp_path: Path) -> None:
    await migrated(tmp_path, "0 (not installed)")
    (copy,) = await list_migration_copies(tmp_path)
    assert copy.program == ""
