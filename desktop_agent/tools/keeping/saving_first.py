"""Saves what a restoring is about to change, as a checkpoint that belongs to it: nothing is lost."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.keeping.looking import FileSnapshot, parse_saved_path, saved_file, saved_path, take_snapshot
from desktop_agent.tools.keeping.putting_back import ChangedSinceSnapshot, RestoreStep
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, SavedFile
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.messages import new_id


@dataclass(frozen=True, slots=True)
class RedoSaver:
    """`put` keeps bytes and `keep` writes a checkpoint, both durably. `note_id` as in Checkpoint."""

    workspace: Workspace
    put: Callable[[bytes], Awaitable[str]]
    save_checkpoint: Callable[[Checkpoint], Awaitable[None]]
    note_id: str = ""

    async def save(
        self, checkpoint: Checkpoint, steps: Sequence[RestoreStep]
    ) -> tuple[Checkpoint | None, list[RestoreStep], list[tuple[RestoreStep, ToolFailed]]]:
        """Save what these steps would change: the new checkpoint, the steps that may be taken, and why others may not.

        What was let be replaced although it cannot be saved is in no checkpoint.
        Raises StorageFailed: then no step may be taken.
        """
        files: list[SavedFile] = []
        taken: list[RestoreStep] = []
        left: list[tuple[RestoreStep, ToolFailed]] = []
        for step in steps:
            try:
                found = await run_in_thread(partial(self._look, step))
            except ToolFailed as error:
                left.append((step, error))
                continue
            if found.data is not None:
                await self.put(found.data)
            taken.append(step)
            if found.state.unread in {None, "folder"}:
                # How it is expected to be found: so it is told from what anybody makes of it after a crash, too.
                files.append(saved_file(step.file.path, found, step.file.before))
        if not files:
            return None, taken, left
        saved = Checkpoint(
            id=new_id(),
            conversation_id=checkpoint.conversation_id,
            tool_use_id=checkpoint.tool_use_id,
            message_id=checkpoint.message_id,
            workspace=checkpoint.workspace,
            created_at=checkpoint.created_at,
            files=tuple(files),
            new_folders=await run_in_thread(
                lambda _token: missing_folders(self.workspace, [step.place for step in taken])
            ),
            undoes=checkpoint.id,
            is_redo=not checkpoint.is_redo,
            note_id=self.note_id,
        )
        await self.save_checkpoint(saved)
        return saved, taken, left

    async def finish(
        self, saved: Checkpoint, done: Collection[str], untouched: Collection[str], folders: tuple[str, ...]
    ) -> Checkpoint:
        """Leave in it the files that the restoring changed: `done` certainly were, `untouched` were not.

        `folders` are those that it made. Raises StorageFailed.
        """
        doubtful = [file for file in saved.files if file.path not in untouched]
        files = await run_in_thread(
            lambda token: tuple(file for file in doubtful if self._is_changed(file, done, token))
        )
        noted = saved.model_copy(update={"files": files, "new_folders": folders})
        if noted != saved:
            await self.save_checkpoint(noted)
        return noted

    def _look(self, step: RestoreStep, token: CancelToken) -> FileSnapshot:
        found = take_snapshot(self.workspace, step.place, token, with_data=True)
        if (found.stamp, found.state) != (step.now.stamp, step.now.state):
            raise ChangedSinceSnapshot(step.place)
        return found

    def _is_changed(self, file: SavedFile, done: Collection[str], token: CancelToken) -> bool:
        if file.path in done:
            return True
        with suppress(ToolFailed):
            # What failed may have taken effect all the same.
            return take_snapshot(self.workspace, parse_saved_path(file.path), token).state == file.after
        return True


def missing_folders(workspace: Workspace, places: Iterable[WorkspacePath]) -> tuple[str, ...]:
    """The folders on the way to these places that are not there yet."""
    folders = dict.fromkeys(
        WorkspacePath(place.parts[:count]) for place in places for count in range(1, len(place.parts))
    )
    return tuple(saved_path(each) for each in folders if workspace.stat(each) is None)
