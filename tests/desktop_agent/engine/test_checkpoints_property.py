"""Calls, a person, crashes and restorings in any order, over a real folder and a real store, against a model."""

import asyncio
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints.checkpointer import RestoreReport
from desktop_agent.tools.checkpoints.snapshots import parse_saved_path, take_snapshot
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.checkpoints import RestorePlan
from desktop_agent.types.engine_events import CheckpointRestored
from desktop_agent.types.messages import Message
from tests.frame.examples import examples

# "a" and "d" are files at one time and folders at another.
PATHS = ("a", "a/x", "a/y", "b", "d", "d/e/f", "d/e/g")
MODES = (0o600, 0o640, 0o644, 0o755)
FOLDER = "folder"
TICKS = st.integers(0, 3).map(lambda number: number == 0)
# Every step writes durably some times: on a disk this would mostly wait for the disk.
MEMORY = Path("/dev/shm")

Entry = tuple[bytes, int] | str | None
Tree = dict[str, Entry]


def tree_of(folder: Path) -> Tree:
    """Every file with its bytes and permissions, and every folder."""
    return {
        path.relative_to(folder).as_posix(): FOLDER
        if path.is_dir()
        else (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
    }


def files_of(tree: Tree) -> Tree:
    return {path: entry for path, entry in tree.items() if entry != FOLDER}


def folders_of(tree: Tree) -> set[str]:
    return set(tree) - set(files_of(tree))


def parents_of(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def has_children(tree: Tree, path: str) -> bool:
    return any(name.startswith(f"{path}/") for name in tree)


@dataclass
class Deed:
    """What the model knows of one call: each path before and after; `ended` is False after a crash."""

    message: int
    before: Tree
    after: Tree
    new_folders: set[str]
    ended: bool
    restored: bool = False
    noted: dict[str, Entry] = field(default_factory=dict[str, Entry])
    """What was put back."""

    def expected(self, path: str) -> Entry:
        """What a path is unless somebody else changed it."""
        return self.noted[path] if path in self.noted else self.after[path] if self.ended else "unknown"

    @property
    def has_effect(self) -> bool:
        return bool(self.new_folders) or any(self.expected(path) != before for path, before in self.before.items())


@dataclass
class Outcome:
    tree: Tree
    restored: set[str] = field(default_factory=set)
    conflicts: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    as_before: set[str] = field(default_factory=set)


Allowed = Callable[[str, Entry], bool]
"""Whether the person ticked a file, as it is now."""


def restored_by_model(tree: Tree, deed: Deed, allowed: Allowed) -> Outcome:
    """Restore in the plainest way, for comparison."""
    out = Outcome(dict(tree))
    todo: list[str] = []
    for path, before in deed.before.items():
        now, expected = tree.get(path), deed.expected(path)
        if now == before or (before == FOLDER and now is None and expected == FOLDER):
            out.as_before.add(path)
        elif now == expected or (before == FOLDER and now is None) or allowed(path, now):
            todo.append(path)
        else:
            out.conflicts.add(path)
    in_the_way = {path for path in todo if not isinstance(deed.before[path], tuple)}
    clear(out, in_the_way, deed.new_folders)
    for path in sorted(todo, key=lambda path: path.count("/")):
        if path not in out.failed:
            put_back(out, path, deed.before[path])
    out.restored = set(todo) - out.failed
    return out


def settle_conflicts(out: Outcome, tree: Tree, deeds: Sequence[Deed]) -> None:
    """Leave as conflicts only those where a tick makes a difference once all of these are restored."""
    plain, willing, failed = tree, tree, set[str]()
    for deed in deeds:
        plain = restored_by_model(plain, deed, lambda _path, _now: False).tree
        ticked = restored_by_model(willing, deed, lambda _path, _now: True)
        willing, failed = ticked.tree, failed | ticked.failed
    settled = {path for path in out.conflicts if plain.get(path) == willing.get(path)}
    out.conflicts -= settled
    out.failed |= settled & failed
    out.as_before |= settled - failed


def clear(out: Outcome, in_the_way: set[str], new_folders: set[str]) -> None:
    for path in sorted(in_the_way | new_folders, key=lambda path: -path.count("/")):
        if out.tree.get(path) == FOLDER and has_children(out.tree, path):
            out.failed |= {path} & in_the_way
        elif path in in_the_way or out.tree.get(path) == FOLDER:
            out.tree.pop(path, None)


def put_back(out: Outcome, path: str, before: Entry) -> None:
    if before is None:
        return
    is_blocked = any(isinstance(out.tree.get(above), tuple) for above in parents_of(path))
    if is_blocked or (out.tree.get(path) == FOLDER and has_children(out.tree, path)):
        out.failed.add(path)
    else:
        out.tree.update(dict.fromkeys(parents_of(path), FOLDER))
        out.tree[path] = before


class CheckpointMachine(RuleBasedStateMachine):
    """One conversation over one folder."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.home = Path(tempfile.mkdtemp(prefix="checkpoints-", dir=MEMORY if MEMORY.is_dir() else None))
        self.folder = self.home / "work"
        self.folder.mkdir()
        self.messages: list[Message] = []
        self.snapshots: dict[int, Tree] = {}  # of messages since which only calls changed anything
        self.deeds: dict[str, Deed] = {}
        self.of_person: set[str] = set()
        self.number = 0
        self.told: list[CheckpointRestored] = []

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        self.store: Store = self.do(Store.open(self.home / "data"))
        self.conversation = self.do(self.store.create_conversation(title="t")).id
        self.make_session()
        self.say()

    def make_session(self) -> None:
        self.workspace = Workspace(self.folder)
        self.checkpoints = Checkpoints(
            self.store,
            self.conversation,
            history=lambda: self.messages,
            refuse=lambda: None,
            emit=self.told.append,
        )
        self.checkpointer = self.checkpoints.checkpointer(self.workspace)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.do(self.store.close())
        self.runner.close()
        shutil.rmtree(self.home)

    @rule()
    def say(self) -> None:
        """A prompt of the person, from which on everything may be taken back."""
        self.messages.append(Message.user("go on"))
        self.snapshots[len(self.messages) - 1] = tree_of(self.folder)

    @rule()
    def reload(self) -> None:
        """The program ends and begins again."""
        self.do(self.store.close())
        self.store = self.do(Store.open(self.home / "data"))
        self.make_session()

    def fresh(self, who: str) -> bytes:
        self.number += 1
        # Now and then nothing, so that empty files are met.
        return b"" if who == "call" and self.number % 7 == 0 else f"{who} {self.number}".encode()

    # What calls do. Each names the paths that it is going to change, as tools do.

    def call(self, paths: set[str], change: Any, *, crash: bool) -> None:
        before = tree_of(self.folder)
        message = self.messages[-1].id
        checkpoint = self.do(self.checkpointer.create_checkpoint("call", message, tuple(sorted(paths))))
        assert checkpoint is not None
        change()
        after = tree_of(self.folder)
        if crash:
            self.reload()
            self.snapshots.clear()
        else:
            checkpoint = self.do(self.checkpointer.complete_checkpoint(checkpoint))
        missing = {folder for path in paths for folder in parents_of(path) if folder not in before}
        self.deeds[checkpoint.id] = Deed(
            len(self.messages) - 1,
            {path: before.get(path) for path in sorted(paths)},
            {path: after.get(path) for path in sorted(paths)},
            missing if crash else missing & folders_of(after),
            not crash,
        )
        self.of_person -= paths

    def write(self, path: str, data: bytes, mode: int | None) -> None:
        file = self.folder / path
        for parent in reversed(file.relative_to(self.folder).parents[:-1]):
            if (self.folder / parent).is_file():
                (self.folder / parent).unlink()
        if file.is_dir():
            shutil.rmtree(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode or 0o644)

    def changed_by_write(self, path: str) -> set[str]:
        """The file, what stands in its way, and what is in a folder that it replaces."""
        tree = tree_of(self.folder)
        above = {parent for parent in parents_of(path) if isinstance(tree.get(parent), tuple)}
        below = {name for name in files_of(tree) if name.startswith(f"{path}/")}
        return {path} | above | below

    @rule(path=st.sampled_from(PATHS), mode=st.sampled_from(MODES), crash=st.integers(0, 9))
    def call_writes(self, path: str, mode: int, crash: int) -> None:
        data = self.fresh("call")
        self.call(self.changed_by_write(path), lambda: self.write(path, data, mode), crash=crash == 0)

    def existing(self) -> list[str]:
        return sorted(files_of(tree_of(self.folder)))

    @precondition(lambda self: self.existing())
    @rule(data=st.data(), crash=st.integers(0, 9))
    def call_deletes(self, data: st.DataObject, crash: int) -> None:
        path = data.draw(st.sampled_from(self.existing()))
        self.call({path}, (self.folder / path).unlink, crash=crash == 0)

    @precondition(lambda self: self.existing())
    @rule(data=st.data(), to=st.sampled_from(PATHS), crash=st.integers(0, 9))
    def call_moves(self, data: st.DataObject, to: str, crash: int) -> None:
        source = data.draw(st.sampled_from(self.existing()))
        if source == to or source.startswith(f"{to}/"):
            return
        content, mode = (self.folder / source).read_bytes(), stat.S_IMODE((self.folder / source).stat().st_mode)

        def move() -> None:
            (self.folder / source).unlink()
            self.write(to, content, mode)

        self.call({source} | self.changed_by_write(to), move, crash=crash == 0)

    @precondition(lambda self: self.existing())
    @rule(data=st.data(), mode=st.sampled_from(MODES))
    def call_changes_permissions(self, data: st.DataObject, mode: int) -> None:
        path = data.draw(st.sampled_from(self.existing()))
        self.call({path}, lambda: (self.folder / path).chmod(mode), crash=False)

    @rule(path=st.sampled_from(PATHS))
    def call_changes_nothing(self, path: str) -> None:
        self.call({path}, lambda: None, crash=False)

    # What the person does.

    @rule(path=st.sampled_from(PATHS))
    def person_writes(self, path: str) -> None:
        lost = self.changed_by_write(path)
        self.write(path, self.fresh("person"), None)
        self.of_person = (self.of_person - lost) | {path}
        self.snapshots.clear()

    @precondition(lambda self: self.existing())
    @rule(data=st.data())
    def person_deletes(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(self.existing()))
        (self.folder / path).unlink()
        self.of_person.discard(path)
        self.snapshots.clear()

    @precondition(lambda self: self.existing())
    @rule(data=st.data(), mode=st.sampled_from(MODES))
    def person_changes_permissions(self, data: st.DataObject, mode: int) -> None:
        (self.folder / data.draw(st.sampled_from(self.existing()))).chmod(mode)
        self.snapshots.clear()

    # Restoring.

    @staticmethod
    def expect(deeds: Sequence[Deed], tree: Tree, ticked: dict[str, list[Entry]]) -> Outcome:
        """What the model says about the first of these, and notes. A tick goes along with what is restored."""
        out = restored_by_model(tree, deeds[0], lambda path, now: now in ticked.get(path, ()))
        settle_conflicts(out, tree, deeds)
        deeds[0].noted.update({path: deeds[0].before[path] for path in out.restored | out.as_before})
        deeds[0].new_folders &= folders_of(out.tree)
        deeds[0].restored = all(deeds[0].expected(path) == before for path, before in deeds[0].before.items())
        for path, entries in ticked.items():
            if tree.get(path) != out.tree.get(path):
                entries.append(out.tree.get(path))
        assert not out.conflicts & set(ticked)
        return out

    @staticmethod
    def agree(real: RestoreReport, model: Outcome) -> None:
        assert set(real.restored) == model.restored
        assert set(real.conflicts) == model.conflicts
        assert set(real.failed) == model.failed

    def nothing_of_the_person_is_lost(self, before: Tree, ticked: Collection[str]) -> None:
        after = tree_of(self.folder)
        self.of_person -= {path for path in ticked if after.get(path) != before.get(path)}
        assert {path: after.get(path) for path in self.of_person} == {path: before[path] for path in self.of_person}

    def unrestored(self) -> list[str]:
        return [id_ for id_, deed in self.deeds.items() if not deed.restored]

    def restore(self, plan: RestorePlan, ticked: Collection[str]) -> tuple[RestoreReport, ...]:
        chosen = [file for file in plan.files if file.name in ticked]
        return self.do(self.checkpoints.restore_forecast(plan, chosen))

    @precondition(unrestored)
    @rule(data=st.data(), ticks=TICKS)
    def restore_one(self, data: st.DataObject, ticks: bool) -> None:
        id_ = data.draw(st.sampled_from(self.unrestored()))
        before = tree_of(self.folder)
        plan = self.do(self.checkpoints.preview(id_))
        conflicts = {file.name for file in plan.files if file.is_conflict}
        unticked = restored_by_model(before, self.deeds[id_], lambda _path, _now: False)
        settle_conflicts(unticked, before, [self.deeds[id_]])
        assert conflicts == unticked.conflicts
        ticked = conflicts if ticks else set[str]()
        expected = self.expect([self.deeds[id_]], before, {path: [before.get(path)] for path in ticked})
        (real,) = self.restore(plan, ticked)
        self.agree(real, expected)
        assert tree_of(self.folder) == expected.tree
        assert self.told[-1] == CheckpointRestored(id_, real.conflicts, real.failed)
        self.nothing_of_the_person_is_lost(before, ticked)

        second = self.restore(plan, ticked)
        assert tree_of(self.folder) == expected.tree
        assert bool(second) is not self.deeds[id_].restored
        for report in second:
            assert report.restored == ()
            assert (set(report.conflicts), set(report.failed)) == (expected.conflicts, expected.failed)
            assert report.checkpoint == real.checkpoint
        self.snapshots.clear()

    @rule(data=st.data(), ticks=TICKS)
    def restore_since(self, data: st.DataObject, ticks: bool) -> None:
        since = data.draw(st.integers(0, len(self.messages) - 1))
        before = tree_of(self.folder)
        plan = self.do(self.checkpoints.preview_since(self.messages[since].id))
        ticked = {file.name: [before.get(file.name)] for file in plan.files if file.is_conflict and ticks}
        tree, expected = before, list[Outcome]()
        later = [deed for deed in self.deeds.values() if deed.message >= since and not deed.restored]
        chosen = [deed for deed in reversed(later) if deed.has_effect]
        for index in range(len(chosen)):
            expected.append(self.expect(chosen[index:], tree, ticked))
            tree = expected[-1].tree
        real = self.restore(plan, ticked)
        assert len(real) == len(expected)
        for one, other in zip(real, expected, strict=True):
            self.agree(one, other)
        for file in plan.files:
            then = file.overwritten_state if ticks else file.restored_state
            assert take_snapshot(self.workspace, parse_saved_path(file.name), CancelToken()).state == then, file
        after = tree_of(self.folder)
        assert after == tree
        self.nothing_of_the_person_is_lost(before, ticked)
        if since in self.snapshots:
            # Only calls were at work since: everything is exactly as it was.
            assert files_of(after) == files_of(self.snapshots[since])
            assert folders_of(after) <= folders_of(self.snapshots[since])
            assert all(not result.skipped for result in real)
        self.snapshots = {number: snapshot for number, snapshot in self.snapshots.items() if number <= since}

    @invariant()
    def the_store_knows_every_checkpoint(self) -> None:
        if not hasattr(self, "store"):
            return
        checkpoints = self.do(self.checkpoints.list())
        assert [checkpoint.id for checkpoint in checkpoints] == list(self.deeds)
        assert [checkpoint.restored for checkpoint in checkpoints] == [deed.restored for deed in self.deeds.values()]


CheckpointMachine.TestCase.settings = settings(
    max_examples=examples(40), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestCheckpoints = CheckpointMachine.TestCase
