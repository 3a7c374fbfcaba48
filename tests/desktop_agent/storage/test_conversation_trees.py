"""Whole conversations with all their branches, written and read again."""

import base64
from collections.abc import AsyncIterator, Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.storage import conversation_trees
from desktop_agent.storage.connection import DatabaseConnection, connect, transaction
from desktop_agent.storage.conversation_trees import insert_tree
from desktop_agent.storage.store import DATABASE_NAME, Store
from desktop_agent.types.blocks import Base64Source, Image, StoredSource, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import ConversationOrigin, ConversationTree, TreeMessage
from desktop_agent.types.errors import DatabaseDamaged, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role

AT = datetime(2025, 3, 4, 5, 6, 7, 8, tzinfo=UTC)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "data")
    yield store
    await store.close()


def message(id_: str, role: Role, *blocks: object, state: MessageState = MessageState.COMPLETE) -> Message:
    return Message(id=id_, role=role, blocks=blocks, created_at=AT, state=state)  # type: ignore[arg-type]


TREE = ConversationTree(
    id="imported",
    title="Two ways \ud800",
    created_at=AT,
    updated_at=AT,
    model="m",
    workspace="/somewhere",
    origin=ConversationOrigin(program="Another assistant", id="1"),
    title_is_automatic=False,
    head="d",
    messages=(
        TreeMessage(message=message("a", Role.USER, Text(text="look"))),
        TreeMessage(message=message("b", Role.ASSISTANT, ToolUse(id="1", name="read_file")), parent="a"),
        TreeMessage(message=message("c", Role.TOOL, ToolResult(tool_use_id="1")), parent="b"),
        TreeMessage(
            message=message("d", Role.ASSISTANT, Text(text="here"), state=MessageState.INTERRUPTED), parent="c"
        ),
        TreeMessage(message=message("e", Role.ASSISTANT, Thinking(text="hm", provider="p")), parent="a"),
        TreeMessage(message=message("f", Role.USER, Text(text="another beginning"))),
    ),
)


async def test_what_was_written_is_read_again(store: Store) -> None:
    assert await store.import_tree(TREE)
    assert await store.load_tree("imported") == TREE
    (record,) = await store.list_conversations()
    assert (record.title, record.updated_at, record.message_count) == (TREE.title, AT, 4)
    loaded = await store.load("imported")
    assert loaded.messages == TREE.branch()
    assert loaded.part.branch_points == {None: ("a", "f"), "a": ("b", "e")}
    assert await store.integrity_checker.run(full=True) is not None
    part = await store.branch_parts.load_newest_branch("imported", "e")
    assert ([item.id for item in part.messages], part.above) == (["a", "e"], None)


async def test_importing_twice_adds_nothing(store: Store) -> None:
    assert await store.import_tree(TREE)
    assert not await store.import_tree(TREE.model_copy(update={"title": "other"}))
    await store.delete_conversation("imported")
    assert not await store.import_tree(TREE)
    assert await store.list_conversations() == ()
    assert (await store.load_tree("imported")).title == TREE.title


async def test_two_processes_may_import_the_same(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def transaction_after_another(connection: DatabaseConnection) -> Generator[None]:
        monkeypatch.undo()
        empty = TREE.model_copy(update={"messages": (), "head": None})
        with closing(connect(tmp_path / "data" / DATABASE_NAME)) as db:
            assert insert_tree(db, empty, store.pictures, None, {})
        with transaction(connection):
            yield

    monkeypatch.setattr(conversation_trees, "transaction", transaction_after_another)
    assert not await store.import_tree(TREE)
    assert (await store.load_tree(TREE.id)).messages == ()


async def test_pictures_become_files(store: Store) -> None:
    picture = Image(source=Base64Source(media_type="image/png", data=PIXEL))
    tree = ConversationTree(
        id="p",
        title="T",
        created_at=AT,
        updated_at=AT,
        messages=(TreeMessage(message=message("a", Role.USER, picture)),),
        head="a",
    )
    assert await store.import_tree(tree)
    (block,) = (await store.load_tree("p")).messages[0].message.blocks
    assert isinstance(block, Image)
    assert isinstance(block.source, StoredSource)
    assert await store.pictures.get(block.source) == base64.b64decode(PIXEL)


async def test_an_imported_conversation_is_gone_on_with(store: Store) -> None:
    await store.import_tree(TREE)
    await store.commit("imported", message("g", Role.USER, Text(text="and now?")))
    assert [item.id for item in (await store.load("imported")).messages] == ["a", "b", "c", "d", "g"]


async def test_what_was_imported_counts_as_content_from_outside(store: Store) -> None:
    await store.import_tree(TREE)
    (source,) = (await store.load("imported")).record.state.outside
    assert (source.kind, source.name) == ("file", "an imported conversation")


async def test_an_unknown_conversation_is_refused(store: Store) -> None:
    with pytest.raises(WrongUse):
        await store.load_tree("nothing")


@pytest.mark.parametrize(
    "change", ["parent = 99 WHERE id = 'b'", "number = 77 WHERE id = 'd'", "parent = 6 WHERE id = 'b'"]
)
async def test_messages_that_are_no_tree_are_damage(store: Store, tmp_path: Path, change: str) -> None:
    following = TreeMessage(message=message("g", Role.USER, Text(text="thanks")), parent="d")
    await store.import_tree(TREE.model_copy(update={"messages": (*TREE.messages, following)}))
    with closing(connect(tmp_path / "data" / DATABASE_NAME)) as db:
        db.execute(f"UPDATE messages SET {change}")
    with pytest.raises(DatabaseDamaged):
        await store.load_tree("imported")


async def test_a_text_in_the_place_of_a_moment_hides_no_conversation(store: Store, tmp_path: Path) -> None:
    await store.import_tree(TREE)
    with closing(connect(tmp_path / "data" / DATABASE_NAME)) as db:
        db.execute("UPDATE conversations SET updated_at = 'soon', pinned_at = x'00'")
    (record,) = await store.list_conversations()
    assert record.title == TREE.title
    assert (await store.load_tree("imported")).messages == TREE.messages


async def test_a_folder_that_lost_the_one_that_it_is_in_is_read(store: Store, tmp_path: Path) -> None:
    await store.import_tree(TREE.model_copy(update={"folder": ("Work", "Tea")}))
    with closing(connect(tmp_path / "data" / DATABASE_NAME)) as db:
        db.execute("DELETE FROM folders WHERE name = 'Work'")
    assert (await store.load_tree("imported")).folder == ("Tea",)


async def test_nothing_is_stored_with_an_id_of_what_is_in_the_files_of_others(store: Store) -> None:
    with pytest.raises(WrongUse, match="found-"):
        await store.import_tree(TREE.model_copy(update={"id": "found-1"}))
    assert await store.list_conversations() == ()
