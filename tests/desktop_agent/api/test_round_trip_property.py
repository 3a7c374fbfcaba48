"""Random conversations, exported from one data folder, imported into another, and exported from there.

More of it: python -m tests.desktop_agent.api.test_round_trip_property --worlds 100
"""

import argparse
import asyncio
import io
import json
import random
import tempfile
import zipfile
from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.api.history import History
from desktop_agent.engine.exchange.conversation_exchange import ExportFormat
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Base64Source, Block, Image, Json, Text, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import MAX_TITLE_LENGTH, ConversationOrigin, ConversationTree, TreeMessage
from desktop_agent.types.folders import FolderColour
from desktop_agent.types.messages import Message, MessageState, Role, new_id
from tests.desktop_agent.exchange.sample_trees import GREEN, RED, START, full_tree, stored

DROPPED = "workspace"
"""What an import leaves out: a file from anywhere must not say where tools may work."""
NAMES = ["Work", "Home", "work", "Straße", "Ärger 2", "漢字", "a b"]
TEXTS = ["tea", "Half \ud83d a pair", "\ude00\ud83d", "\x00 nul \x1f", "\u202eback\u202c", "é é", "x" * 5000, ""]


class World:
    """Conversations as chance has it, in a data folder of their own."""

    def __init__(self, chance: random.Random, store: Store) -> None:
        self.chance = chance
        self.store = store

    async def make(self) -> str:
        """Store a conversation, most of it as a person does it; return its id."""
        tree = self.tree()
        await self.store.import_tree(tree)
        if self.chance.random() < 0.5:
            title = self.chance.choice(TEXTS)[:MAX_TITLE_LENGTH]
            await self.store.update_conversation(tree.id, title=title, title_is_automatic=self.chance.random() < 0.5)
        if self.chance.random() < 0.5:
            folders = [folder.id for folder in await self.store.folders.all()]
            parent = self.chance.choice([None, *folders])
            colour = self.chance.choice(tuple(FolderColour))
            folder = await self.store.folders.create(self.chance.choice(NAMES), colour, parent)
            await self.store.placements.change(
                [tree.id],
                folder=self.chance.choice([folder.id, None]),
                pinned=self.chance.random() < 0.5,
                archived=self.chance.random() < 0.5,
                add_tags=self.chance.sample(NAMES, 2),
            )
        return tree.id

    def tree(self) -> ConversationTree:
        nodes: list[TreeMessage] = []
        for number in range(self.chance.randrange(9)):
            parent = self.chance.choice([None, *nodes[-3:]])
            message = self.message(number, parent and parent.message)
            nodes.append(TreeMessage(message=message, parent=parent and parent.message.id))
        begun = START + timedelta(microseconds=self.chance.randrange(10**12))
        return full_tree(new_id()).model_copy(
            update={
                "title": self.chance.choice(TEXTS),
                "created_at": begun,
                "updated_at": begun + timedelta(seconds=self.chance.randrange(10**6)),
                "messages": tuple(nodes),
                "head": self.chance.choice([None, *(node.message.id for node in nodes)]),
                "workspace": self.chance.choice([None, "/home/ann/app"]),
                "origin": self.chance.choice([None, ConversationOrigin(program="codex", id=new_id())]),
                "title_is_automatic": self.chance.random() < 0.5,
                "folder": tuple(self.chance.choices(NAMES, k=self.chance.randrange(3))),
                "tags": tuple(self.chance.sample(NAMES, self.chance.randrange(3))),
            }
        )

    def message(self, number: int, above: Message | None) -> Message:
        """Return one of those that have everything, or one that fits behind the one above."""
        moment = START + timedelta(seconds=number, microseconds=self.chance.randrange(10**6))
        if self.chance.random() < 0.3:
            sample = self.chance.choice(full_tree().messages).message
            return sample.model_copy(update={"id": new_id(), "created_at": moment})
        calls = above.tool_uses if above is not None else ()
        if calls:
            content = (Json(value=self.value()), self.picture())
            results = [ToolResult(tool_use_id=call.id, content=content) for call in calls]
            return Message(id=new_id(), role=Role.TOOL, blocks=results, created_at=moment)
        if number % 2 == 0:
            blocks: list[Block] = [Text(text=self.chance.choice(TEXTS)), self.picture()]
            return Message(id=new_id(), role=Role.USER, blocks=blocks, created_at=moment)
        call = ToolUse(id=new_id(), name="read_file", input={"path": self.chance.choice(TEXTS), "x": self.value()})
        blocks = [Text(text=self.chance.choice(TEXTS)), *([call] if self.chance.random() < 0.5 else [])]
        state = self.chance.choice(tuple(MessageState))
        return Message(id=new_id(), role=Role.ASSISTANT, blocks=blocks, created_at=moment, state=state)

    def picture(self) -> Image:
        data = self.chance.choice([GREEN, RED])
        source = self.chance.choice([stored(data), Base64Source(media_type="image/png", data=b64encode(data).decode())])
        return Image(source=source, name=self.chance.choice(["tea.png", None]))

    def value(self) -> Any:
        plain = [None, True, 0, -1, 1.5, 1e300, 10**40, float("nan"), float("inf"), *TEXTS]
        return {self.chance.choice(TEXTS): [self.chance.choice(plain) for _ in range(3)]}


async def exported(folder: Path, ids: list[str], target: Path, export_format: ExportFormat) -> bytes:
    async with History(folder) as history:
        result = await history.export(ids, target, export_format)
    assert result.lost_pictures == 0
    return target.read_bytes()  # noqa: ASYNC240


async def imported(folder: Path, *files: Path) -> None:
    """Import into a new data folder."""
    await (await Store.open(folder)).close()
    async with History(folder) as history:
        for file in files:
            result = await history.import_file(file)
            assert result.skipped == []


def without_dropped(data: bytes) -> bytes:
    """The same file, as it is when no conversation worked in a folder."""
    lines = []
    for line in data.decode().split("\n"):
        if line.startswith('{"id"'):
            conversation = json.loads(line.removesuffix(","))
            old = f'"{DROPPED}":{json.dumps(conversation[DROPPED], ensure_ascii=False)}'
            assert line.count(old) == 1
            line = line.replace(old, f'"{DROPPED}":null')  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines).encode()


async def live(place: Path, seed: int, count: int, export_format: ExportFormat) -> None:
    store = await Store.open(place / "0")
    for data in (GREEN, RED):
        store.pictures.write(stored(data).digest, "image/png", data)
    world = World(random.Random(seed), store)
    ids = [await world.make() for _ in range(count)]
    await store.close()
    files = [place / f"{number}.{export_format.value}" for number in range(3)]
    exports = [await exported(place / "0", ids, files[0], export_format)]
    for number in (1, 2):
        await imported(place / str(number), files[number - 1])
        exports.append(await exported(place / str(number), ids, files[number], export_format))
    assert exports[1] == exports[2]
    assert contents(exports[1], export_format) == {
        name: without_dropped(data) if name.endswith(".json") else data
        for name, data in contents(exports[0], export_format).items()
    }


def contents(data: bytes, export_format: ExportFormat) -> dict[str, bytes]:
    """Return the files of an export."""
    if export_format is ExportFormat.JSON:
        return {".json": data}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize(("seed", "export_format"), [(0, ExportFormat.ARCHIVE), (1, ExportFormat.JSON)])
async def test_what_is_imported_is_exported_as_it_came(tmp_path: Path, seed: int, export_format: ExportFormat) -> None:
    await live(tmp_path, seed, 6, export_format)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    for seed in range(arguments.first, arguments.first + arguments.worlds):
        with tempfile.TemporaryDirectory() as folder:
            try:
                for export_format in (ExportFormat.ARCHIVE, ExportFormat.JSON):
                    place = Path(folder, export_format.value)
                    place.mkdir()
                    asyncio.run(live(place, seed, 20, export_format))
            except BaseException:
                print(f"world {seed}")
                raise
    print(f"{arguments.worlds} worlds of 20 conversations")


if __name__ == "__main__":
    main()
