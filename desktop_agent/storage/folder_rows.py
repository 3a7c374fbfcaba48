"""The rows of folders and tags, and the places of conversations in them.

The writer of a conversation does not hold its place in memory: any process may change it, whoever writes just then.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Unpack

from desktop_agent.storage.connection import RunInDatabase, text_of, text_or_none, transaction
from desktop_agent.storage.conversation_rows import moment_or_none, now_microseconds, to_microseconds
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.folders import (
    MAX_FOLDER_DEPTH,
    MAX_FOLDER_INSTRUCTIONS,
    MAX_FOLDER_NAME,
    Folder,
    FolderColour,
    FolderLevel,
    Placement,
    PlacementChanges,
    clean_instructions,
    clean_name,
    clean_path,
    clean_tags,
)
from desktop_agent.types.messages import new_id

_SELECT_FOLDER = """
    SELECT f.id, f.name, f.colour, (SELECT above.id FROM folders above WHERE above.number = f.parent), f.instructions
    FROM folders f"""
# From the folder up. A cycle, which only a damaged file has, is repeated up to this depth.
_SELECT_PATH = """
    WITH RECURSIVE path (number, depth) AS (
        SELECT number, 0 FROM folders WHERE id = ?
        UNION
        SELECT f.parent, p.depth + 1 FROM path p JOIN folders f ON f.number = p.number
        WHERE f.parent IS NOT NULL AND p.depth < 100
    )
    SELECT number FROM path ORDER BY depth"""
_SELECT_HEIGHT = """
    WITH RECURSIVE below (number, depth) AS (
        SELECT number, 1 FROM folders WHERE number = ?
        UNION
        SELECT f.number, b.depth + 1 FROM below b JOIN folders f ON f.parent = b.number WHERE b.depth < 100
    )
    SELECT max(depth) FROM below"""
# As a list shows them: what is in the archive or in the trash is in no folder.
_SELECT_FOLDER_AROUND = """
    WITH RECURSIVE path (number) AS (
        SELECT folder FROM conversations WHERE id = ? AND deleted_at IS NULL AND archived_at IS NULL
        UNION SELECT f.parent FROM path p JOIN folders f ON f.number = p.number
    )
    SELECT f.id FROM path p JOIN folders f ON f.number = p.number
    WHERE f.parent IS (SELECT number FROM folders WHERE id = ?)"""
SELECT_WITHIN = """
    WITH RECURSIVE within (number) AS (
        SELECT number FROM folders WHERE id = :folder
        UNION SELECT f.number FROM within w JOIN folders f ON f.parent = w.number
    )
    SELECT number FROM within"""
_HAS_ARCHIVE = """
    SELECT EXISTS (SELECT 1 FROM conversations INDEXED BY conversations_archived
        WHERE deleted_at IS NULL AND archived_at IS NOT NULL)"""
_TOO_DEEP = Sentence("Folders can be {most} deep within one another.", {"most": str(MAX_FOLDER_DEPTH)})


class FolderRows:
    """The folders. All methods raise StorageFailed, those that name a folder WrongUse for an unknown one."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def all(self) -> tuple[Folder, ...]:
        """Return every folder, in no order."""
        return await self._run(read_folders)

    async def level(self, folder: str | None) -> FolderLevel:
        """Return a folder with those in it, or the top; for a folder that is gone, the top."""
        return await self._run(lambda db: read_level(db, folder))

    async def around(self, folder: str | None, conversation_ids: Sequence[str]) -> dict[str, str]:
        """Return for each conversation which direct subfolder of a folder, or of the top, it is in, however deep.

        Those that are in none of them, archived or deleted are left out.
        """
        return await self._run(lambda db: _folders_around(db, folder, conversation_ids))

    async def with_instructions(self, conversation_id: str, begun_in: str | None) -> tuple[Folder, ...]:
        """Return the folders around a conversation that have instructions, from the top down.

        `begun_in` is the folder of a conversation that is not stored yet.
        """
        return await self._run(lambda db: _folders_with_instructions(db, conversation_id, begun_in))

    async def create(
        self, name: str, colour: FolderColour = FolderColour.GREY, parent: str | None = None, instructions: str = ""
    ) -> Folder:
        """Create a folder. Raises WrongUse too for an empty name, long instructions, and where it would be too deep."""
        return await self._run(lambda db: create_folder(db, name, colour, parent, instructions))

    async def change(self, folder: Folder) -> Folder:
        """Give the folder with this id this name, colour and instructions; it stays where it is. Return it as it was.

        Raises WrongUse too for an empty name, and for instructions that are too long.
        """
        return await self._run(lambda db: _change_folder(db, folder))

    async def move(self, folder: str, parent: str | None) -> Folder:
        """Move it into another one, or to the top. Return it as it was.

        Raises WrongUse too for one that would be within itself, and for one that would be too deep.
        """
        return await self._run(lambda db: _move_folder(db, folder, parent))

    async def delete(self, folder: str) -> None:
        """Delete it. What is in it moves up into the folder above: nothing else is deleted."""
        await self._run(lambda db: delete_folder(db, folder))


class PlacementRows:
    """The places of conversations. All methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def change(
        self, conversation_ids: Sequence[str], **changes: Unpack[PlacementChanges]
    ) -> tuple[Placement, ...]:
        """Change where these conversations are, all or none; return the old places of those that were changed.

        Those that are gone are left out. Raises WrongUse for an unknown folder.
        """
        return await self._run(lambda db: _change_placements(db, conversation_ids, changes))

    async def put_back(self, placements: Sequence[Placement]) -> None:
        """Put conversations where they were. What was in a folder that is gone comes to the top."""
        await self._run(lambda db: _put_back(db, placements))

    async def of(self, conversation_ids: Sequence[str]) -> tuple[Placement, ...]:
        """Return where they are. Those that are gone are left out."""
        return await self._run(lambda db: tuple(place for _, place in _placements(db, conversation_ids)))

    async def tags(self) -> tuple[str, ...]:
        """Return every tag in use, in the order of the alphabet."""
        return await self._run(read_tags)


def read_level(connection: sqlite3.Connection, folder: str | None) -> FolderLevel:
    """Return a folder with those in it, or the top; for a folder that is gone, the top."""
    path = _read_path(connection, folder)
    number = connection.execute("SELECT number FROM folders WHERE id = ?", (folder,)).fetchone() if path else None
    inside = connection.execute(f"{_SELECT_FOLDER} WHERE f.parent IS ?", number or (None,))
    folders = sorted(map(_folder_from, inside), key=lambda row: (row.name.casefold(), row.id))
    return FolderLevel(path, tuple(folders), bool(connection.execute(_HAS_ARCHIVE).fetchone()[0]))


def _read_path(connection: sqlite3.Connection, folder: str | None) -> tuple[Folder, ...]:
    """Return the folders from the top to this one, each once; none for the top and for one that is gone."""
    numbers = dict.fromkeys(number for (number,) in connection.execute(_SELECT_PATH, (folder,)))
    rows = [connection.execute(f"{_SELECT_FOLDER} WHERE f.number = ?", (number,)).fetchone() for number in numbers]
    # In a damaged file one of them may be missing.
    return tuple(_folder_from(row) for row in reversed(rows) if row is not None)


def read_folders(connection: sqlite3.Connection) -> tuple[Folder, ...]:
    """Return every folder, in no order."""
    return tuple(map(_folder_from, connection.execute(_SELECT_FOLDER)))


def read_tags(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return every tag in use, in the order of the alphabet."""
    names = connection.execute("SELECT DISTINCT name FROM tags")
    return tuple(sorted((text_of(name) for (name,) in names), key=str.casefold))


def conversations_in(connection: sqlite3.Connection, folder: str | None, tag: str | None) -> tuple[int, ...]:
    """Return the row numbers of what is in a folder or within it, and has a tag; None is any."""
    placed = f"SELECT number FROM conversations WHERE folder IN ({SELECT_WITHIN})"  # noqa: S608  a constant
    tagged = "SELECT conversation FROM tags WHERE name = :tag"
    selects = [sql for sql, value in ((placed, folder), (tagged, tag)) if value is not None]
    rows = connection.execute(" INTERSECT ".join(selects), {"folder": folder, "tag": tag})
    return tuple(int(number) for (number,) in rows)


def folder_number(connection: sqlite3.Connection, folder: str | None) -> int | None:
    """Return the row number of a folder, None for the top. Raises WrongUse for an unknown one."""
    if folder is None:
        return None
    row = connection.execute("SELECT number FROM folders WHERE id = ?", (folder,)).fetchone()
    if row is None:
        raise WrongUse("There is no such folder any more.", "Choose another one.")
    return int(row[0])


def folder_path(connection: sqlite3.Connection, folder: str | None) -> tuple[str, ...]:
    """Return the names from the top to a folder."""
    return tuple(row.name for row in _read_path(connection, folder))


def create_folder(
    connection: sqlite3.Connection, name: str, colour: FolderColour, parent: str | None, instructions: str = ""
) -> Folder:
    """Create a folder. Raises WrongUse as FolderRows.create, and for an unknown parent."""
    folder = Folder(new_id(), _checked_name(name), colour, parent, _checked_instructions(instructions))
    with transaction(connection):
        if parent is not None and _folder_depth(connection, parent) >= MAX_FOLDER_DEPTH:
            raise WrongUse(_TOO_DEEP, "Put it somewhere else.")
        _insert_folder(connection, folder, folder_number(connection, parent))
    return folder


def find_or_create_path(connection: sqlite3.Connection, names: Iterable[str]) -> int | None:
    """Return the row number of the folder with these names from the top on, inside the caller's transaction."""
    number: int | None = None
    for name in clean_path(names):
        row = connection.execute(
            "SELECT number FROM folders WHERE parent IS ? AND name = ? ORDER BY number", (number, name)
        ).fetchone()
        number = int(row[0]) if row else _insert_folder(connection, Folder(new_id(), name), number)
    return number


def copy_place(connection: sqlite3.Connection, source: int, target: int) -> None:
    """Give a conversation the folder and the tags of another one, inside the caller's transaction."""
    folder = "UPDATE conversations SET folder = (SELECT folder FROM conversations WHERE number = ?) WHERE number = ?"
    connection.execute(folder, (source, target))
    tags = "INSERT INTO tags (conversation, name) SELECT ?, name FROM tags WHERE conversation = ?"
    connection.execute(tags, (target, source))


def set_tags(connection: sqlite3.Connection, conversation: int, names: Iterable[str]) -> None:
    """Give a conversation these tags and no others, inside the caller's transaction."""
    rows: list[tuple[int, str]] = []
    for name in clean_tags(names):
        # In the spelling that it has in other conversations.
        known = connection.execute("SELECT name FROM tags WHERE name = ? LIMIT 1", (name,)).fetchone()
        rows.append((conversation, text_of(known[0]) if known else name))
    connection.execute("DELETE FROM tags WHERE conversation = ?", (conversation,))
    for row in rows:
        connection.execute("INSERT OR IGNORE INTO tags (conversation, name) VALUES (?, ?)", row)


def _insert_folder(connection: sqlite3.Connection, folder: Folder, parent: int | None) -> int:
    sql = "INSERT INTO folders (id, name, colour, parent, instructions) VALUES (?, ?, ?, ?, ?)"
    values = folder.id, folder.name, folder.colour.value, parent, folder.instructions
    number = connection.execute(sql, values).lastrowid
    assert number is not None  # noqa: S101  an INSERT of one row has a number
    return number


def _folder_from(row: Sequence[object]) -> Folder:
    id_, name, colour, parent, instructions = row
    known = text_of(colour)
    return Folder(
        text_of(id_),
        text_of(name),
        FolderColour(known) if known in set(FolderColour) else FolderColour.GREY,
        text_or_none(parent),
        text_of(instructions),
    )


def _folder_at(connection: sqlite3.Connection, number: int | None) -> Folder:
    return _folder_from(connection.execute(f"{_SELECT_FOLDER} WHERE f.number = ?", (number,)).fetchone())


def _checked_name(name: str) -> str:
    clean = clean_name(name, MAX_FOLDER_NAME)
    if not clean:
        raise WrongUse("A folder needs a name.", "Type one.")
    return clean


def _checked_instructions(text: str) -> str:
    clean = clean_instructions(text)
    if len(clean) > MAX_FOLDER_INSTRUCTIONS:
        raise WrongUse("The instructions of this folder are too long.", "Shorten them.")
    return clean


def _folder_depth(connection: sqlite3.Connection, folder: str) -> int:
    return len(connection.execute(_SELECT_PATH, (folder,)).fetchall())


def _folders_around(connection: sqlite3.Connection, folder: str | None, ids: Iterable[str]) -> dict[str, str]:
    rows = {id_: connection.execute(_SELECT_FOLDER_AROUND, (id_, folder)).fetchone() for id_ in ids}
    return {id_: text_of(row[0]) for id_, row in rows.items() if row is not None}


def _folders_with_instructions(
    connection: sqlite3.Connection, conversation_id: str, begun_in: str | None
) -> tuple[Folder, ...]:
    sql = "SELECT f.id FROM conversations c LEFT JOIN folders f ON f.number = c.folder WHERE c.id = ?"
    row = connection.execute(sql, (conversation_id,)).fetchone()
    path = _read_path(connection, begun_in if row is None else text_or_none(row[0]))
    return tuple(folder for folder in path if folder.instructions)


def _change_folder(connection: sqlite3.Connection, folder: Folder) -> Folder:
    values = _checked_name(folder.name), folder.colour.value, _checked_instructions(folder.instructions)
    with transaction(connection):
        number = folder_number(connection, folder.id)
        before = _folder_at(connection, number)
        sql = "UPDATE folders SET name = ?, colour = ?, instructions = ? WHERE number = ?"
        connection.execute(sql, (*values, number))
    return before


def _move_folder(connection: sqlite3.Connection, folder: str, parent: str | None) -> Folder:
    with transaction(connection):
        number, above = folder_number(connection, folder), folder_number(connection, parent)
        before = _folder_at(connection, number)
        path = [row[0] for row in connection.execute(_SELECT_PATH, (parent,))]
        if number in path:
            raise WrongUse("A folder cannot be moved into itself.", "Choose another one.")
        (height,) = connection.execute(_SELECT_HEIGHT, (number,)).fetchone()
        if len(path) + height > MAX_FOLDER_DEPTH:
            raise WrongUse(_TOO_DEEP, "Put it somewhere else.")
        connection.execute("UPDATE folders SET parent = ? WHERE number = ?", (above, number))
    return before


def delete_folder(connection: sqlite3.Connection, folder: str) -> None:
    """Delete a folder. What is in it moves up into the folder above. Raises WrongUse for an unknown one."""
    with transaction(connection):
        number = folder_number(connection, folder)
        (parent,) = connection.execute("SELECT parent FROM folders WHERE number = ?", (number,)).fetchone()
        connection.execute("UPDATE conversations SET folder = ? WHERE folder = ?", (parent, number))
        connection.execute("UPDATE folders SET parent = ? WHERE parent = ?", (parent, number))
        connection.execute("DELETE FROM folders WHERE number = ?", (number,))


def _placements(connection: sqlite3.Connection, ids: Iterable[str]) -> list[tuple[int, Placement]]:
    placements: list[tuple[int, Placement]] = []
    for id_ in dict.fromkeys(ids):
        row = connection.execute(
            "SELECT number, (SELECT id FROM folders WHERE folders.number = conversations.folder), pinned_at,"
            " archived_at FROM conversations WHERE id = ?",
            (id_,),
        ).fetchone()
        if row is not None:
            tags = connection.execute("SELECT name FROM tags WHERE conversation = ? ORDER BY name", (row[0],))
            names = tuple(text_of(name) for (name,) in tags)
            placement = Placement(id_, text_or_none(row[1]), moment_or_none(row[2]), moment_or_none(row[3]), names)
            placements.append((row[0], placement))
    return placements


def _change_placements(
    connection: sqlite3.Connection, ids: Sequence[str], changes: PlacementChanges
) -> tuple[Placement, ...]:
    now = now_microseconds()
    values: dict[str, int | None] = {}
    if "pinned" in changes:
        values["pinned_at"] = now if changes["pinned"] else None
    if "archived" in changes:
        values["archived_at"] = now if changes["archived"] else None
    removed = {name.casefold() for name in changes.get("remove_tags", ())}
    with transaction(connection):
        if "folder" in changes:
            values["folder"] = folder_number(connection, changes["folder"])
        placements = _placements(connection, ids)
        for number, placement in placements:
            for column, value in values.items():
                # What is pinned or archived already keeps the time, and with it its place in the list.
                is_kept = value is not None and column.endswith("_at")
                new = f"coalesce({column}, ?)" if is_kept else "?"
                connection.execute(f"UPDATE conversations SET {column} = {new} WHERE number = ?", (value, number))  # noqa: S608  constants
            if "add_tags" in changes or "remove_tags" in changes:
                kept = (name for name in placement.tags if name.casefold() not in removed)
                set_tags(connection, number, (*kept, *changes.get("add_tags", ())))
        after = dict(_placements(connection, ids))
    return tuple(placement for number, placement in placements if placement != after[number])


def _put_back(connection: sqlite3.Connection, placements: Sequence[Placement]) -> None:
    with transaction(connection):
        for placement in placements:
            row = connection.execute(
                "UPDATE conversations SET folder = (SELECT number FROM folders WHERE id = ?), pinned_at = ?,"
                " archived_at = ? WHERE id = ? RETURNING number",
                (
                    placement.folder,
                    None if placement.pinned_at is None else to_microseconds(placement.pinned_at),
                    None if placement.archived_at is None else to_microseconds(placement.archived_at),
                    placement.conversation_id,
                ),
            ).fetchone()
            if row is not None:
                set_tags(connection, row[0], placement.tags)
