"""Calls, a person, undoing and redoing in any order, over a real folder and a real store, against a plain model."""

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from desktop_agent.engine.checkpoints import RestoreListeners
from desktop_agent.storage.store import Store
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.checkpoints import FileRestorePlan, RestorePlan
from desktop_agent.types.messages import Message
from tests.desktop_agent.engine.test_checkpoints import Desk
from tests.desktop_agent.engine.test_undo_forecast import state

PATHS = ("a", "b", "in/c")
Entry = tuple[bytes, int] | None


@dataclass
class Saved:
    """What the model knows of a checkpoint: before and after of each file."""

    root: int
    message: int
    files: dict[str, tuple[Entry, Entry]]
    redo: bool = False
    restored: bool = False
    note: int = 0


@dataclass
class Model:
    """A plain model of undoing and redoing."""

    tree: dict[str, Entry] = field(default_factory=lambda: dict.fromkeys(PATHS))
    saved: list[Saved] = field(default_factory=list)
    notes: int = 0

    def restore(self, chosen: list[Saved], ticked: set[str]) -> dict[str, Entry]:
        """Restore newest first. Return what was there before of each path that changed."""
        allowed = {path: [self.tree[path]] for path in ticked}
        lost: dict[str, Entry] = {}
        self.notes += 1
        for index, saved in reversed(list(enumerate(chosen))):
            changed: dict[str, tuple[Entry, Entry]] = {}
            for path, (before, after) in saved.files.items():
                now = self.tree[path]
                if now == before:
                    saved.files[path] = (before, before)
                elif now == after or now in allowed.get(path, ()):
                    changed[path] = (now, before)
                    self.tree[path] = before
                    lost.setdefault(path, now)
                    saved.files[path] = (before, before)
                    allowed.get(path, []).append(before)
                elif self.end(path, chosen[: index + 1], ticked=False) == self.end(
                    path, chosen[: index + 1], ticked=True
                ):
                    # What the person wants makes no difference.
                    saved.files[path] = (before, before)
            saved.restored = all(before == after for before, after in saved.files.values())
            if changed:
                self.saved.append(Saved(saved.root, saved.message, changed, not saved.redo, note=self.notes))
        return lost

    def end(self, path: str, chosen: list[Saved], *, ticked: bool) -> Entry:
        """What a path is once these are restored, newest first."""
        now = self.tree[path]
        for saved in reversed(chosen):
            before, after = saved.files.get(path, (now, now))
            now = before if ticked or now == after else now
        return now

    def open(self, *, redo: bool) -> list[Saved]:
        return [saved for saved in self.saved if saved.redo is redo and not saved.restored]


class World:
    """A conversation over a folder, and the model of it."""

    def __init__(self, store: Store, conversation_id: str, place: Path, chance: random.Random) -> None:
        self.place, self.store, self.conversation_id, self.chance = place, store, conversation_id, chance
        self.model = Model()
        self.notes: list[Message] = []
        self.messages: list[Message] = [Message.user("go")]
        self.note_of: dict[int, str] = {}
        self.number = 0
        self.make_desk()

    def make_desk(self) -> None:
        self.desk = Desk(self.store, self.conversation_id, self.place / "work")
        self.desk.messages = self.messages
        self.desk.checkpoints._listeners = RestoreListeners(on_note=self.notes.append)

    def tree(self) -> dict[str, Entry]:
        files = {path: self.desk.folder / path for path in PATHS}
        return {
            path: (file.read_bytes(), file.stat().st_mode & 0o777) if file.is_file() else None
            for path, file in files.items()
        }

    def change(self, path: str) -> None:
        file = self.desk.folder / path
        self.number += 1
        if self.chance.random() < 0.25:
            file.unlink(missing_ok=True)
        elif self.chance.random() < 0.2 and file.exists():
            file.chmod(self.chance.choice((0o600, 0o644, 0o755)))
        else:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(f"{self.number}".encode())
        self.model.tree = self.tree()

    async def call(self) -> None:
        paths = self.chance.sample(PATHS, self.chance.randint(1, 2))
        before, checkpointer = self.tree(), self.desk.checkpoints.checkpointer(Workspace(self.desk.folder))
        checkpoint = await checkpointer.create_checkpoint(
            f"call {len(self.model.saved)}", self.messages[-1].id, tuple(paths)
        )
        assert checkpoint is not None
        for path in paths:
            self.change(path)
        await checkpointer.complete_checkpoint(checkpoint)
        after, index = self.tree(), len(self.model.saved)
        files = {path: (before[path], after[path]) for path in paths}
        self.model.saved.append(Saved(index, len(self.messages) - 1, files))

    async def restore(self) -> None:
        """Undo or redo, of one call, of all since a message, or of one undoing."""
        redo = self.chance.random() < 0.5
        open_ = self.model.open(redo=redo)
        if not open_:
            return
        one = self.chance.choice(open_)
        all_checkpoints = await self.desk.checkpoints._all()
        checkpoints = self.desk.checkpoints
        if self.chance.random() < 0.4:
            chosen = [saved for saved in open_ if saved.root == one.root]
            ids = [all_checkpoints[self.model.saved.index(saved)].id for saved in chosen]
            forecast = await (checkpoints.preview_redo(*ids) if redo else checkpoints.preview(*ids))
        elif redo:
            chosen = [saved for saved in open_ if saved.note == one.note]
            note = all_checkpoints[self.model.saved.index(one)].note_id
            assert note in {message.id for message in self.notes}
            forecast = await checkpoints.preview_redo(note)
        else:
            later = [saved for saved in open_ if saved.message >= one.message]
            chosen = [saved for saved in later if any(before != after for before, after in saved.files.values())]
            forecast = await checkpoints.preview_since(self.messages[one.message].id)
        await self.restore_so(forecast, chosen)

    async def restore_so(self, forecast: RestorePlan, chosen: list[Saved]) -> None:
        ticked = [file for file in forecast.files if file.is_conflict and self.chance.random() < 0.5]
        lost = self.model.restore(chosen, {file.name for file in ticked})
        done = await self.desk.checkpoints.restore_forecast(forecast, ticked)
        assert self.tree() == self.model.tree
        self.as_foreseen(forecast.files, ticked)
        for path, entry in lost.items():
            # Nothing of what was there is gone: it lies in a checkpoint of this restoring.
            if entry is not None:
                states = [
                    file.before for result in done if result.saved for file in result.saved.files if file.path == path
                ]
                contents = [
                    (await self.store.blobs.get(snapshot.digest or ""), snapshot.mode)
                    for snapshot in states
                    if snapshot.digest
                ]
                assert entry in contents

    def as_foreseen(self, files: tuple[FileRestorePlan, ...], ticked: list[FileRestorePlan]) -> None:
        for file in files:
            assert state(self.desk, file.name) == (file.overwritten_state if file in ticked else file.restored_state), (
                file
            )

    async def agree(self) -> None:
        checkpoints = await self.desk.checkpoints._all()
        expected = [(set(saved.files), saved.redo, saved.restored) for saved in self.model.saved]
        assert [
            ({file.path for file in checkpoint.files}, checkpoint.is_redo, checkpoint.restored)
            for checkpoint in checkpoints
        ] == expected
        assert self.tree() == self.model.tree


@pytest.mark.parametrize("seed", range(40))
async def test_undoing_and_redoing_in_any_order_is_what_the_model_says(tmp_path: Path, seed: int) -> None:
    store = await Store.open(tmp_path / "data")
    chance = random.Random(seed)
    world = World(store, (await store.create_conversation(title="t")).id, tmp_path, chance)
    for _ in range(16):
        deed = chance.choices(("call", "person", "restore", "say", "restart"), (4, 2, 7, 1, 1))[0]
        if deed == "call":
            await world.call()
        elif deed == "person":
            world.change(chance.choice(PATHS))
        elif deed == "restore":
            await world.restore()
        elif deed == "say":
            world.messages.append(Message.user("more"))
        else:
            await store.close()
            store = world.store = await Store.open(tmp_path / "data")
            world.make_desk()
        await world.agree()
    await store.close()
