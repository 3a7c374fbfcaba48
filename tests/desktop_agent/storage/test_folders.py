"""Folders, pins, the archive and tags of conversations, and how lists are read by them."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.storage import conversation_lists, folder_rows
from desktop_agent.storage.connection import InconsistentData, connect
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import ListScope
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.folders import (
    MAX_FOLDER_DEPTH,
    MAX_FOLDER_INSTRUCTIONS,
    Folder,
    FolderColour,
    FolderLevel,
    folder_paths,
)


async def create_conversations(store: Store, *titles: str) -> list[str]:
    return [(await store.create_conversation(title=title)).id for title in titles]


async def titles(store: Store, scope: ListScope, limit: int = 100) -> list[str]:
    """Return all titles of a list, read in pages of `limit`."""
    page, position = await store.list_page(limit, scope=scope)
    all_titles = [row.title for row in page]
    while position is not None:
        page, position = await store.list_page(limit, position, scope)
        all_titles += [row.title for row in page]
    return all_titles


async def test_conversations_are_listed_in_their_folder_pinned_ones_first(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    ids = await create_conversations(store, "a", "b", "c", "d", "e")
    work = await store.folders.create("Work", FolderColour.BLUE)
    inner = await store.folders.create("Inner", parent=work.id)
    await store.placements.change(ids[1:4], folder=work.id)
    await store.placements.change([ids[3]], folder=inner.id)
    await store.placements.change([ids[0]], pinned=True)
    await store.placements.change([ids[1]], pinned=True)
    assert await titles(store, ListScope()) == ["a", "e"]
    assert await titles(store, ListScope(), 1) == ["a", "e"]
    assert await titles(store, ListScope(folder=work.id)) == ["b", "c"]
    assert await titles(store, ListScope(folder=inner.id)) == ["d"]
    assert await store.folders.level(None) == FolderLevel((), (work,))
    assert await store.folders.level(inner.id) == FolderLevel((work, inner))
    assert await store.folders.level("gone") == FolderLevel((), (work,))
    records = await store.list_conversations(scope=ListScope(folder=work.id))
    assert [(record.title, record.folder) for record in records] == [("d", inner.id), ("c", work.id), ("b", work.id)]
    await store.close()


async def test_the_folder_around_a_conversation_is_that_of_the_level_however_deep(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    top, shallow, deep, archived, deleted = await create_conversations(
        store, "top", "shallow", "deep", "archived", "deleted"
    )
    work = await store.folders.create("Work")
    inner = await store.folders.create("Inner", parent=work.id)
    await store.placements.change([shallow], folder=work.id)
    await store.placements.change([deep, archived, deleted], folder=inner.id)
    await store.placements.change([archived], archived=True)
    await store.delete_conversation(deleted)
    ids = (top, shallow, deep, archived, deleted, "gone")
    assert await store.folders.around(None, ids) == {shallow: work.id, deep: work.id}
    assert await store.folders.around(work.id, ids) == {deep: inner.id}
    assert await store.folders.around(inner.id, ids) == {}
    await store.close()


async def test_the_archive_is_a_list_of_its_own_and_gives_back_what_was_pinned(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    ids = await create_conversations(store, "a", "b", "c")
    await store.placements.change(ids[:2], pinned=True)
    before = await store.placements.change(ids[1:], archived=True)
    assert await titles(store, ListScope()) == ["a"]
    assert await titles(store, ListScope(archived=True)) == ["c", "b"]
    assert (await store.folders.level(None)).has_archive
    assert [record.title for record in await store.list_conversations(scope=ListScope(archived=False))] == ["a"]
    assert len(await store.list_conversations()) == 3
    await store.placements.put_back(before)
    assert await titles(store, ListScope()) == ["b", "a", "c"]
    assert not (await store.folders.level(None)).has_archive
    await store.close()


async def test_pinning_twice_keeps_the_place_and_an_archived_one_in_the_trash_is_in_no_list(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    ids = await create_conversations(store, "a", "b")
    first = await store.placements.change([ids[0]], pinned=True)
    await store.placements.change([ids[1]], pinned=True)
    assert await store.placements.change([ids[0]], pinned=True) == ()
    assert first[0].pinned_at is None
    assert await titles(store, ListScope()) == ["b", "a"]
    await store.placements.change(ids, archived=True)
    await store.delete_conversation(ids[0])
    assert await titles(store, ListScope(archived=True)) == ["b"]
    await store.close()


async def test_tags_are_kept_in_one_spelling_and_found(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    ids = await create_conversations(store, "a", "b", "c")
    await store.placements.change([ids[0]], add_tags=["Paper  one", "later", " "])
    before = await store.placements.change(ids[:2], add_tags=["LATER", "x"], remove_tags=["Paper one"])
    placements = await store.placements.of(ids)
    assert [placement.tags for placement in placements] == [("later", "x"), ("later", "x"), ()]
    assert await store.placements.tags() == ("later", "x")
    assert [record.title for record in await store.list_conversations(scope=ListScope(tag="Later"))] == ["b", "a"]
    page, _ = await store.list_page(10)
    assert [row.tags for row in page] == [(), ("later", "x"), ("later", "x")]
    await store.placements.put_back(before)
    assert [placement.tags for placement in await store.placements.of(ids)] == [("later", "Paper one"), (), ()]
    await store.delete_conversation(ids[0])
    await store.purge_conversation(ids[0])
    assert await store.placements.tags() == ()
    await store.close()


async def test_a_deleted_folder_leaves_everything_one_level_up(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    ids = await create_conversations(store, "a", "archived", "in the trash")
    outer = await store.folders.create("Outer")
    middle = await store.folders.create("Middle", parent=outer.id)
    inner = await store.folders.create("Inner", parent=middle.id)
    await store.placements.change(ids, folder=middle.id)
    before = await store.placements.change([ids[1]], archived=True)
    await store.delete_conversation(ids[2])
    await store.folders.delete(middle.id)
    assert [placement.folder for placement in await store.placements.of(ids)] == [outer.id] * 3
    assert (await store.folders.level(outer.id)).folders == (Folder(inner.id, "Inner", parent=outer.id),)
    await store.placements.put_back(before)
    assert await titles(store, ListScope()) == ["archived"]
    with pytest.raises(WrongUse):
        await store.placements.change(ids, folder=middle.id)
    with pytest.raises(WrongUse):
        await store.list_page(5, scope=ListScope(folder=middle.id))
    await store.close()


async def test_no_folder_gets_into_itself_nor_too_deep(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    chain = [await store.folders.create("0")]
    for number in range(1, MAX_FOLDER_DEPTH):
        chain.append(await store.folders.create(str(number), parent=chain[-1].id))
    other = await store.folders.create("Other")
    for folder, parent in ((chain[0], chain[0]), (chain[0], chain[3]), (other, chain[-1]), (chain[0], other)):
        with pytest.raises(WrongUse):
            await store.folders.move(folder.id, parent.id)
    with pytest.raises(WrongUse):
        await store.folders.create("Deeper", parent=chain[-1].id)
    with pytest.raises(WrongUse):
        await store.folders.create(" \n ")
    assert (await store.folders.move(chain[5].id, None)).parent == chain[4].id
    paths = folder_paths(await store.folders.all())
    assert paths[chain[6].id] == ("5", "6")
    assert len(paths[chain[4].id]) == 5
    before = await store.folders.change(Folder(other.id, " New\nname ", FolderColour.RED))
    assert before == other
    assert Folder(other.id, "New name", FolderColour.RED) in await store.folders.all()
    await store.close()


async def test_another_store_of_the_folder_sees_the_places(tmp_path: Path) -> None:
    store, other = await Store.open(tmp_path), await Store.open(tmp_path)
    ids = await create_conversations(store, "a")
    folder = await other.folders.create("Work")
    assert await other.placements.change([*ids, "gone"], folder=folder.id, pinned=True)
    assert await titles(store, ListScope(folder=folder.id)) == ["a"]
    assert await titles(store, ListScope()) == []
    await store.close()
    await other.close()


async def test_lists_are_read_by_indexes_alone(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    folder = await store.folders.create("Work")
    await create_conversations(store, "a")
    statements: list[str] = []
    with closing(connect(tmp_path / DATABASE_NAME)) as db:
        db.set_trace_callback(statements.append)
        for scope in (ListScope(), ListScope(folder=folder.id), ListScope(archived=True)):
            conversation_lists.list_page(db, 5, None, scope)
            for is_pinned in (True, False):
                conversation_lists.list_page(db, 5, (is_pinned, 5, 5), scope)
        folder_rows.read_level(db, folder.id)
        folder_rows.delete_folder(db, folder.id)
        db.set_trace_callback(None)
        plans = [
            (sql, step)
            for sql in statements
            if sql.lstrip().startswith(("SELECT", "WITH", "UPDATE")) and "NOT INDEXED" not in sql
            for *_, step in db.execute(f"EXPLAIN QUERY PLAN {sql}")
        ]
    assert len(plans) > 10
    # Scans that end with the limit of a page, or read the few rows of a path, are fine.
    harmless = ("path", "CONSTANT ROW", "INDEX conversations_archived")
    scans = [(sql, step) for sql, step in plans if step.startswith("SCAN") and not step.endswith(harmless)]
    assert [sql for sql, _ in scans if "LIMIT 1" not in sql and "ORDER BY depth" not in sql] == []
    assert [sql for sql, step in plans if "TEMP B-TREE" in step and "ORDER BY depth" not in sql] == []
    await store.close()


async def test_an_index_that_lacks_a_conversation_is_noticed(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    ids = await create_conversations(store, "a", "b")
    await store.placements.change(ids[:1], pinned=True)
    await store.close()
    with closing(connect(tmp_path / DATABASE_NAME)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'conversations_pinned'").fetchone()
    with (tmp_path / DATABASE_NAME).open("r+b") as file:
        file.seek((page - 1) * 4096 + 3)
        file.write(b"\0\0")  # as if it had no entries
    with closing(connect(tmp_path / DATABASE_NAME)) as db, pytest.raises(InconsistentData):
        conversation_lists.list_page(db, 5, None, ListScope())


async def test_a_rescue_keeps_folders_and_tags_and_breaks_circles(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    ids = await create_conversations(store, "a", "b")
    outer = await store.folders.create("Outer", FolderColour.TEAL)
    inner = await store.folders.create("Inner", parent=outer.id, instructions="Be brief.")
    await store.placements.change(ids[:1], folder=inner.id, pinned=True, add_tags=["later"])
    await store.close()
    path = tmp_path / DATABASE_NAME
    with closing(connect(path)) as db:
        db.execute("UPDATE folders SET parent = 2 WHERE number = 1")
        db.execute("UPDATE conversations SET folder = 77 WHERE number = 2")
    with path.open("r+b") as file:
        file.write(b"damaged")
    store = await Store.open(tmp_path)
    assert store.notices
    level = await store.folders.level(inner.id)
    assert level.path[-1] == Folder(inner.id, "Inner", parent=level.path[-1].parent, instructions="Be brief.")
    (placement,) = await store.placements.of(ids[:1])
    assert (placement.folder, placement.tags) == (inner.id, ("later",))
    assert placement.pinned_at is not None
    assert await titles(store, ListScope()) == ["b"]
    await store.close()


async def test_an_import_puts_conversations_where_they_were(tmp_path: Path) -> None:
    store, other = await Store.open(tmp_path / "one"), await Store.open(tmp_path / "two")
    (id_,) = await create_conversations(store, "a")
    outer = await store.folders.create("Outer / of all", FolderColour.RED)
    inner = await store.folders.create("Inner", parent=outer.id)
    await store.placements.change([id_], folder=inner.id, pinned=True, archived=True, add_tags=["Zeta", "alpha"])
    tree = await store.load_tree(id_)
    assert (tree.folder, tree.tags) == (("Outer / of all", "Inner"), ("alpha", "Zeta"))
    assert await other.import_tree(tree)
    assert await other.load_tree(id_) == tree
    again = tree.model_copy(update={"id": "another", "folder": ("Outer / of all",), "pinned_at": None})
    assert await other.import_tree(again)
    assert sorted(folder_paths(await other.folders.all()).values()) == [
        ("Outer / of all",),
        ("Outer / of all", "Inner"),
    ]
    await store.close()
    await other.close()


async def test_instructions_are_read_from_the_top_down_also_of_one_that_is_archived_or_begins(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    inside, archived, at_the_top = await create_conversations(store, "inside", "archived", "at the top")
    outer = await store.folders.create("Outer", instructions=" Be brief.\n")
    middle = await store.folders.create("Middle", parent=outer.id)
    inner = await store.folders.create("Inner", parent=middle.id, instructions="Write British English.\ud83d")
    await store.placements.change([inside, archived], folder=inner.id)
    await store.placements.change([archived], archived=True)

    async def instructions(conversation_id: str, begun_in: str | None = None) -> list[str]:
        folders = await store.folders.with_instructions(conversation_id, begun_in)
        return [folder.instructions for folder in folders]

    for conversation_id in (inside, archived):
        assert await instructions(conversation_id) == ["Be brief.", "Write British English.\ufffd"]
    assert await instructions(at_the_top, inner.id) == []
    assert await instructions("not stored yet", middle.id) == ["Be brief."]
    assert await instructions("not stored yet", "gone") == []
    await store.placements.change([inside], folder=middle.id)
    assert await instructions(inside) == ["Be brief."]
    await store.folders.delete(outer.id)
    assert await instructions(inside) == []
    await store.close()


async def test_a_changed_folder_is_changed_back(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    folder = await store.folders.create("Work", FolderColour.TEAL, None, "Be brief.")
    changed = Folder(folder.id, "Import", FolderColour.RED, None, "Be long.")
    assert await store.folders.change(replace(changed, parent=folder.id)) == folder
    assert await store.folders.all() == (changed,)
    await store.folders.change(folder)
    assert await store.folders.all() == (folder,)
    with pytest.raises(WrongUse):
        await store.folders.change(replace(folder, instructions="x" * (MAX_FOLDER_INSTRUCTIONS + 1)))
    with pytest.raises(WrongUse):
        await store.folders.create("More", instructions="x" * (MAX_FOLDER_INSTRUCTIONS + 1))
    assert await store.folders.all() == (folder,)
    await store.close()


async def test_in_a_circle_each_folder_counts_once(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    (id_,) = await create_conversations(store, "a")
    outer = await store.folders.create("Outer", instructions="one")
    inner = await store.folders.create("Inner", parent=outer.id, instructions="two")
    await store.placements.change([id_], folder=inner.id)
    with closing(connect(tmp_path / DATABASE_NAME)) as db:
        db.execute("UPDATE folders SET parent = 2 WHERE number = 1")
    assert [folder.name for folder in await store.folders.with_instructions(id_, None)] == ["Outer", "Inner"]
    assert [folder.name for folder in (await store.folders.level(inner.id)).path] == ["Outer", "Inner"]
    await store.close()
