"""Actions with files: exports, imports, backups and restores."""

import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from desktop_agent.engine.exchange.conversation_exchange import ConversationExchange, ExportFormat, ImportResult
from desktop_agent.engine.exchange.found_histories import FoundHistories, load_found, reader_of
from desktop_agent.exchange.archive import write_archive
from desktop_agent.exchange.conversation_json import write_conversations
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.storage.backups.backup import (
    is_backup_due,
    list_backups,
    remove_backup,
    remove_old_backups,
    remove_unfinished_backups,
    restore_backup,
    write_backup,
)
from desktop_agent.types.blocks import Image, Text
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.messages import Message, Role, new_id, now
from tests.desktop_agent.exchange.readers.foreign_homes import claude_entry, write_lines
from tests.desktop_agent.exchange.sample_trees import png, read_picture, stored
from tests.soak.answer_actions import go_on_in
from tests.soak.history_world import (
    ANYTHING,
    BACKUPS,
    ENDPOINT,
    WORDS,
    Action,
    World,
    fact_of,
    fact_of_backup,
    value_of_folder,
    whole_of,
)

_KEPT_BACKUPS = 2
_CLAUDE_CODE = "claude-code"
_FOLDER = "-home-ann-app"


async def import_archive(world: World) -> None:
    trees = [_tree(world) for _ in range(world.chance.randrange(1, 5))]
    await _import_written(world, ".zip", lambda file: write_archive(file, trees, read_picture))


async def import_json(world: World) -> None:
    trees = [_tree(world, with_pictures=False) for _ in range(world.chance.randrange(1, 5))]
    await _import_written(world, ".json", lambda file: write_conversations(trees, file.write))


async def import_chatgpt(world: World) -> None:
    conversations = [_chatgpt_conversation(world) for _ in range(world.chance.randrange(1, 5))]
    await _import_written(world, ".json", lambda file: file.write(json.dumps(conversations).encode()))


async def _import_written(world: World, suffix: str, write: Callable[[IO[bytes]], object]) -> None:
    # The file is written elsewhere, as the disk of the data folder may refuse.
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        write(file)
        file.flush()
        path = Path(file.name)
        with ConversationImport(path) as entries:
            trees = [entry for entry in entries if isinstance(entry, ConversationTree)]
        exchange = ConversationExchange(world.engine.store)
        await _import(world, trees, lambda: exchange.import_file(path))


async def _import(
    world: World, trees: Sequence[ConversationTree], import_all: Callable[[], Awaitable[ImportResult]]
) -> None:
    """Import new conversations, then the same file again."""
    places = {f"place/{tree.id}": "list" for tree in trees}
    messages = [fact_of(tree.id, node.message) for tree in trees for node in tree.messages]
    world.announce(*(whole_of(tree, None) for tree in trees), *(name for tree in trees for name in tree.folder))
    world.intend(places)
    # Messages, titles and heads are stored together with their conversation, or not at all.
    titles = {f"title/{tree.id}": tree.title for tree in trees}
    world.confirm(dict(messages) | titles | {f"head/{tree.id}": tree.head for tree in trees})
    result = await import_all()
    world.confirm(places)
    again = await import_all()
    folders = await world.engine.store.folders.all()
    world.confirm({f"folder/{folder.id}": value_of_folder(folder) for folder in folders})
    world.announce()
    if len(result.added) != len(trees) or again.added or result.skipped:
        world.tell({"error": f"{result} of {len(trees)}, then {again}"})


async def import_found(world: World) -> None:
    """Import the sessions that another assistant left on the disk."""
    conversation_id = _write_found(world)
    tree = load_found(reader_of(_CLAUDE_CODE), conversation_id).tree
    exchange = ConversationExchange(world.engine.store)
    await _import(world, [tree], lambda: exchange.import_found(_CLAUDE_CODE, [conversation_id]))


async def continue_found(world: World) -> None:
    conversation_id = _write_found(world)
    tree = load_found(reader_of(_CLAUDE_CODE), conversation_id).tree
    world.announce(whole_of(tree, ENDPOINT))
    copy = await FoundHistories(world.engine).copy(_CLAUDE_CODE, conversation_id)
    messages = dict(fact_of(copy, node.message) for node in tree.messages)
    title = {f"title/{copy}": tree.title}
    world.confirm({f"place/{copy}": "list", f"head/{copy}": tree.head, **title, **messages})
    world.announce()
    await go_on_in(world, await world.session(copy))


def _write_found(world: World) -> str:
    """Write a session of Claude Code into the home folder; return its id."""
    conversation_id = f"{_FOLDER}/{uuid4()}"
    entries = [
        claude_entry("user", "u1", None, world.words()),
        claude_entry("assistant", "a1", "u1", [{"type": "text", "text": world.words()}], stop_reason="end_turn"),
        claude_entry("user", "u2", "a1", world.words()),
        claude_entry("assistant", "a2", "u2", [{"type": "text", "text": world.words()}], stop_reason="end_turn"),
        claude_entry("user", "u3", "a1", world.words()),
    ]
    write_lines(Path.home() / ".claude" / "projects" / f"{conversation_id}.jsonl", entries)
    return conversation_id


def _chatgpt_conversation(world: World) -> dict[str, Any]:
    """A prompt with two answers."""
    id_ = new_id()

    def node(name: str, role: str, parent: str | None, *children: str) -> dict[str, Any]:
        message = {
            "id": f"{id_}{name}",
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": 1767225601.5,
            "content": {"content_type": "text", "parts": [world.words()]},
            "status": "finished_successfully",
            "recipient": "all",
            "metadata": {},
        }
        return {"id": name, "parent": parent, "children": [*children], "message": message}

    nodes = [
        {"id": "root", "parent": None, "children": ["q"], "message": None},
        node("q", "user", "root", "a", "b"),
        node("a", "assistant", "q"),
        node("b", "assistant", "q"),
    ]
    return {
        "title": world.words(),
        "create_time": 1767225600.0,
        "update_time": 1767225700.25,
        "conversation_id": id_,
        "current_node": "b",
        "mapping": {node_fields["id"]: node_fields for node_fields in nodes},
    }


def _tree(world: World, *, with_pictures: bool = True) -> ConversationTree:
    nodes: list[TreeMessage] = []
    for number in range(world.chance.randrange(1, 12)):
        picture = Image(source=stored(png()), name="tea.png")
        role = Role.ASSISTANT if number % 2 else Role.USER
        blocks = [Text(text=world.words()), *([picture] if with_pictures and number % 4 == 0 else [])]
        parent = world.chance.choice(nodes[-3:]).message.id if nodes else None
        nodes.append(TreeMessage(message=Message(id=new_id(), role=role, blocks=blocks), parent=parent))
    moment = now()
    return ConversationTree(
        id=new_id(),
        title=world.words(),
        created_at=moment,
        updated_at=moment,
        messages=nodes,
        head=nodes[-1].message.id,
        folder=world.chance.choices(WORDS, k=world.chance.randrange(3)),
        tags=world.chance.sample(WORDS, world.chance.randrange(3)),
    )


async def export(world: World) -> None:
    ids = await world.ids() or [await world.some_id()]
    chosen = world.chance.sample(ids, min(len(ids), world.chance.randrange(1, 5)))
    export_format = world.chance.choice(tuple(ExportFormat))
    is_folder = len(chosen) > 1 and export_format in {ExportFormat.MARKDOWN, ExportFormat.HTML}
    path = world.free_path("export" if is_folder else f"export.{export_format.value}")
    world.intend({f"export/{path.name}": ANYTHING if is_folder else str(len(chosen))})
    await ConversationExchange(world.engine.store).export(chosen, path, export_format)
    world.confirm({f"export/{path.name}": str(len(chosen))})


async def back_up(world: World) -> None:
    backup = await write_backup(world.engine.store, world.engine.folder, world.place / BACKUPS)
    world.confirm(dict([fact_of_backup(backup)]))


async def back_up_automatically(world: World) -> None:
    """Back up on schedule, as the window does."""
    backups = world.place / BACKUPS
    await remove_unfinished_backups(backups)
    if not await is_backup_due(world.engine.folder, backups, timedelta(0)):
        return
    backup = await write_backup(world.engine.store, world.engine.folder, backups, is_automatic=True)
    world.confirm(dict([fact_of_backup(backup)]))
    automatic = [backup for backup in await list_backups(backups) if backup.is_automatic]
    old = {f"backup/{backup.folder.name}": None for backup in automatic[_KEPT_BACKUPS:]}
    world.intend(old)
    await remove_old_backups(backups, _KEPT_BACKUPS)
    world.confirm(old)


async def thin_out_backups(world: World) -> None:
    await back_up(world)
    backups = await list_backups(world.place / BACKUPS)
    old = {f"backup/{backup.folder.name}": None for backup in backups[_KEPT_BACKUPS:]}
    world.intend(old)
    for backup in backups[_KEPT_BACKUPS:]:
        await remove_backup(backup.folder)
    world.confirm(old)


async def restore_from_backup(world: World) -> None:
    backups = await list_backups(world.place / BACKUPS)
    if not backups:
        await back_up(world)
        backups = await list_backups(world.place / BACKUPS)
    backup, path = world.chance.choice(backups), world.free_path("restored")
    world.intend({f"restored/{path.name}": str(backup.counts)})
    before, after = await restore_backup(backup.folder, path)
    world.confirm({f"restored/{path.name}": str(backup.counts)})
    if not backup.counts == before == after:
        world.tell({"error": f"{backup.counts} restored as {after}"})


EXCHANGE_ACTIONS: Mapping[str, Action] = {
    "import": import_archive,
    "import JSON": import_json,
    "import ChatGPT": import_chatgpt,
    "import found": import_found,
    "continue found": continue_found,
    "export": export,
    "back up": back_up,
    "automatic backup": back_up_automatically,
    "thin out backups": thin_out_backups,
    "restore from backup": restore_from_backup,
}
