"""Actions of a person in the list: names, folders, pins, archive, tags, copies, trash and search."""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import cast

from desktop_agent.engine.exchange.conversation_copies import duplicate_conversation, merge_conversations
from desktop_agent.storage.compaction import compact
from desktop_agent.storage.records import Draft
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.folders import (
    MAX_FOLDER_DEPTH,
    Folder,
    FolderColour,
    Placement,
    PlacementChanges,
    folder_paths,
)
from desktop_agent.types.messages import now
from desktop_agent.types.search import SearchQuery
from tests.soak.history_world import (
    WORD,
    WORDS,
    Action,
    Facts,
    World,
    fact_of,
    fact_of_placement,
    value_of_folder,
    whole_of,
)


async def rename(world: World) -> None:
    session, title = await world.session(), world.words()
    name = f"title/{session.record.id}"
    world.intend({name: title})
    session.change_record(title=title, title_is_automatic=False)
    await session.flush()
    world.confirm({name: title})


async def write_draft(world: World) -> None:
    id_, text = await world.some_id(), world.words()
    world.intend({f"draft/{id_}": text})
    await world.engine.store.save_draft(id_, Draft(text=text))
    world.confirm({f"draft/{id_}": text})


async def trash(world: World) -> None:
    id_ = await world.some_id()
    world.intend({f"place/{id_}": "trash"})
    await world.engine.delete_conversation(id_)
    world.confirm({f"place/{id_}": "trash"})


async def restore_from_trash(world: World) -> None:
    in_trash = await world.ids(in_trash=True)
    if in_trash:
        id_ = world.chance.choice(in_trash)
        world.intend({f"place/{id_}": "list"})
        await world.engine.store.restore_conversation(id_)
        world.confirm({f"place/{id_}": "list"})


async def delete_for_good(world: World) -> None:
    await trash(world)
    id_ = world.chance.choice(await world.ids(in_trash=True))
    world.intend({f"place/{id_}": None})
    await world.engine.store.purge_conversation(id_)
    world.confirm({f"place/{id_}": None})


async def empty_trash(world: World) -> None:
    await trash(world)
    facts = {f"place/{id_}": None for id_ in await world.ids(in_trash=True)}
    world.intend(facts)
    await world.engine.store.empty_trash()
    world.confirm(facts)


async def search(world: World) -> None:
    await world.engine.store.search.index_all()


async def search_while_indexing(world: World) -> None:
    search, (id_, word) = world.engine.store.search, await _known_word(world)
    indexing = asyncio.create_task(search.index_all())
    while not indexing.done():
        await search.find(SearchQuery(f"{word} "))
    await indexing
    results = await search.find(SearchQuery(f"{word} "))
    if results is not None and word and id_ not in {hits.conversation_id for hits in results.conversations}:
        world.tell({"error": f"{word} of {id_} was not found in {results}"})


async def _known_word(world: World) -> tuple[str, str]:
    """Return a word, and the id of a conversation that has it."""
    id_ = await world.some_id()
    tree = await world.engine.store.load_tree(id_)
    candidates = WORD.findall(" ".join([tree.title, *(node.message.text for node in tree.messages)]))
    return id_, world.chance.choice(candidates) if candidates else ""


async def check(world: World) -> None:
    if result := await world.engine.store.integrity_checker.run(full=True):
        world.tell({"said": str(result)})


async def compact_all(world: World) -> None:
    await compact(world.engine.store, world.engine.folder)


async def place(world: World) -> None:
    """Move, pin, archive or tag several conversations at once; sometimes undo it."""
    chance, store = world.chance, world.engine.store
    ids = await world.ids() or [await world.some_id()]
    ids = chance.sample(ids, min(len(ids), chance.randrange(1, 5)))
    before = await store.placements.of(ids)
    world.confirm(dict(map(fact_of_placement, before)))
    folders = [None, *(folder.id for folder in await store.folders.all())]
    drawn: PlacementChanges = {
        "folder": chance.choice(folders),
        "pinned": chance.random() < 0.5,
        "archived": chance.random() < 0.5,
        "add_tags": chance.sample(WORDS, 2),
        "remove_tags": chance.sample(WORDS, 2),
    }
    chosen = chance.sample(sorted(drawn), chance.randrange(1, len(drawn) + 1))
    changes = cast(PlacementChanges, {name: value for name, value in drawn.items() if name in chosen})
    await _change_together(
        world,
        dict(map(fact_of_placement, before)),
        dict(fact_of_placement(_changed(placement, changes)) for placement in before),
        store.placements.change(ids, **changes),
    )
    if chance.random() < 0.3:
        after = dict(map(fact_of_placement, await store.placements.of(ids)))
        await _change_together(world, after, dict(map(fact_of_placement, before)), store.placements.put_back(before))


def _changed(placement: Placement, changes: PlacementChanges) -> Placement:
    tags = set(placement.tags) - {*changes.get("remove_tags", ())} | {*changes.get("add_tags", ())}
    placement = replace(placement, tags=tuple(tags))
    if "folder" in changes:
        placement = replace(placement, folder=changes["folder"])
    if "pinned" in changes:
        placement = replace(placement, pinned_at=now() if changes["pinned"] else None)
    if "archived" in changes:
        placement = replace(placement, archived_at=now() if changes["archived"] else None)
    return placement


async def _change_together(world: World, before: Facts, after: Facts, change: Awaitable[object]) -> None:
    """Await an operation that changes these facts in one transaction."""
    world.confirm(before)
    world.intend_together({name: value for name, value in after.items() if before[name] != value})
    await change
    world.confirm_together(after)


async def create_folder(world: World) -> None:
    folders = folder_paths(await world.engine.store.folders.all())
    parent = world.chance.choice([None, *(id_ for id_, names in folders.items() if len(names) < MAX_FOLDER_DEPTH)])
    name = world.chance.choice([*WORDS, world.token()])
    world.announce(name)
    colour, instructions = world.chance.choice(tuple(FolderColour)), world.chance.choice(["", world.token()])
    folder = await world.engine.store.folders.create(name, colour, parent, instructions)
    world.confirm({f"folder/{folder.id}": value_of_folder(folder)})
    world.announce()


async def edit_folder(world: World) -> None:
    folder = await _some_folder(world)
    colour, instructions = world.chance.choice(tuple(FolderColour)), world.chance.choice(["", world.token()])
    new = replace(folder, name=world.token(), colour=colour, instructions=instructions)
    await _change_folder(world, folder, new, world.engine.store.folders.change(new))


async def move_folder(world: World) -> None:
    folder = await _some_folder(world)
    other_folders = [other for other in await world.engine.store.folders.all() if other.id != folder.id]
    new = replace(folder, parent=world.chance.choice([None, *(other.id for other in other_folders)]))
    change = world.engine.store.folders.move(folder.id, new.parent)
    with suppress(WrongUse):  # into itself, or too deep
        await _change_folder(world, folder, new, change)


async def _change_folder(world: World, before: Folder, after: Folder, change: Awaitable[object]) -> None:
    name = f"folder/{before.id}"
    await _change_together(world, {name: value_of_folder(before)}, {name: value_of_folder(after)}, change)


async def delete_folder(world: World) -> None:
    """Delete a folder, whose contents move to its parent."""
    store, folder = world.engine.store, await _some_folder(world)
    within = [child for child in await store.folders.all() if child.parent == folder.id]
    ids = [*await world.ids(), *await world.ids(in_trash=True)]
    placed = [placement for placement in await store.placements.of(ids) if placement.folder == folder.id]
    before: dict[str, str | None] = dict(map(fact_of_placement, placed))
    before |= {f"folder/{member.id}": value_of_folder(member) for member in (folder, *within)}
    after: dict[str, str | None] = dict(
        fact_of_placement(replace(placement, folder=folder.parent)) for placement in placed
    )
    after |= {f"folder/{child.id}": value_of_folder(replace(child, parent=folder.parent)) for child in within}
    await _change_together(world, before, after | {f"folder/{folder.id}": None}, store.folders.delete(folder.id))


async def _some_folder(world: World) -> Folder:
    if not await world.engine.store.folders.all():
        await create_folder(world)
    return world.chance.choice(await world.engine.store.folders.all())


async def duplicate(world: World) -> None:
    id_ = await world.some_id()
    tree, record = await world.engine.store.load_tree(id_), await world.engine.record(id_)
    world.announce(whole_of(tree, record.endpoint_id))
    world.copy_words(node.message.text for node in tree.messages)
    copy = await duplicate_conversation(world.engine, id_, "{} again".format)
    world.confirm(dict(fact_of(copy, node.message) for node in tree.messages))
    world.confirm({f"place/{copy}": "list", f"head/{copy}": tree.head, f"title/{copy}": f"{tree.title} again"})
    world.announce()


async def merge(world: World) -> None:
    ids = await world.ids()
    if len(ids) < 2:
        return
    ids = world.chance.sample(ids, min(len(ids), world.chance.randrange(2, 4)))
    records = [await world.engine.record(id_) for id_ in ids]
    trees = [await world.engine.store.load_tree(id_) for id_ in ids]
    latest = max(sorted(records, key=lambda record: record.created_at), key=lambda record: record.updated_at)
    like = trees[records.index(latest)]
    nodes = [node for tree in trees for node in (*tree.branch(), None)]
    expected = like.model_copy(update={"messages": nodes})
    world.announce(whole_of(expected, latest.endpoint_id))
    world.copy_words([*(message.text for tree in trees for message in tree.branch()), *(tree.title for tree in trees)])
    merged = await merge_conversations(world.engine, ids, str)
    world.confirm({f"place/{merged}": "list"})
    world.announce()


LIST_ACTIONS: Mapping[str, Action] = {
    "rename": rename,
    "draft": write_draft,
    "trash": trash,
    "restore from trash": restore_from_trash,
    "delete for good": delete_for_good,
    "empty trash": empty_trash,
    "place": place,
    "create folder": create_folder,
    "edit folder": edit_folder,
    "move folder": move_folder,
    "delete folder": delete_folder,
    "duplicate": duplicate,
    "merge": merge,
    "search": search,
    "search while indexing": search_while_indexing,
    "check": check,
    "compact": compact_all,
}
