"""One restoring of one checkpoint: judge every file, save what is there, clear the way, put back what was, note it."""

import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.keeping.looking import is_same_state, parse_saved_path
from desktop_agent.tools.keeping.putting_back import (
    ChangedSinceSnapshot,
    ReplaceConsent,
    RestoreStep,
    SkippedFile,
    clear_path,
    is_replacing_allowed,
    plan_step,
    restore_path,
    skipped_because,
)
from desktop_agent.tools.keeping.saving_first import RedoSaver
from desktop_agent.tools.keeping.sweeping import remove_leftovers, temporary_prefix
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, SavedFile
from desktop_agent.vocabulary.errors import StorageFailed, ToolFailed


class CheckpointRestore:
    """`put_back` and `left_alone` say what became of the files that were not as before the call.

    `saved` is the checkpoint of what it changed, None where that is nothing.
    """

    def __init__(
        self,
        workspace: Workspace,
        checkpoint: Checkpoint,
        read: Callable[[str], Awaitable[bytes]],
        consent: ReplaceConsent,
        saving: RedoSaver,
    ) -> None:
        self._workspace = workspace
        self._checkpoint = checkpoint
        self._read = read
        self._consent = consent
        self._saving = saving
        self.saved: Checkpoint | None = None
        self.restored_steps: list[RestoreStep] = []
        self.left_alone: list[SkippedFile] = []
        # Paths of what was as before the call without this restoring: somebody else put it back, or an earlier one did.
        self._as_before: set[str] = set()

    async def run(self) -> Checkpoint:
        """Do it; the checkpoint as it is to be noted. Raises StorageFailed when nothing was done, or what is `saved`
        could not be noted."""
        await run_in_thread(lambda _token: remove_leftovers(self._workspace, self._checkpoint))
        self.saved, steps, refused = await self._saving.save(self._checkpoint, await self._plan_steps())
        for step, error in refused:
            await self._refused(step, error)
        blocked = await self._clear(steps)
        await self._fill([step for step in steps if step not in blocked])
        if self.saved is not None:
            folders = self.saved.new_folders
            there = await run_in_thread(lambda _token: existing_folders(self._workspace, folders))
            done = [step.file.path for step in self.restored_steps]
            self.saved = await self._saving.finish(self.saved, done, self._as_before, there)
        return await run_in_thread(self._updated_checkpoint)

    async def _plan_steps(self) -> list[RestoreStep]:
        steps: list[RestoreStep] = []
        for file in self._checkpoint.files:
            found = await run_in_thread(partial(self._plan_step, file))
            if isinstance(found, RestoreStep):
                steps.append(found)
            elif found is None:
                self._as_before.add(file.path)
            else:
                self.left_alone.append(found)
        return steps

    def _plan_step(self, file: SavedFile, token: CancelToken) -> RestoreStep | SkippedFile | None:
        return plan_step(self._workspace, file, token, self._consent)

    async def _clear(self, steps: list[RestoreStep]) -> list[RestoreStep]:
        """Take away what was not there, the innermost first; those steps that have nothing more to do."""
        in_the_way = {step.file.path: step for step in steps if not step.wants_file}
        over: list[RestoreStep] = []
        for path in sorted({*in_the_way, *self._new_folders()}, key=_depth, reverse=True):
            step = in_the_way.get(path)
            if step is None:
                await run_in_thread(partial(self._remove_new_folder, path))
            elif not await self._attempt(step, run_in_thread(partial(self._clear_one, step))):
                over.append(step)
            elif not step.wants_folder:
                over.append(step)
                self.restored_steps.append(step)
        return over

    def _clear_one(self, step: RestoreStep, _token: CancelToken) -> None:
        clear_path(self._workspace, step)

    def _new_folders(self) -> tuple[str, ...]:
        """Those that the call certainly made, or all that were not there before it."""
        is_known = all(
            file.after is not None or is_replacing_allowed(self._consent, file.path) for file in self._checkpoint.files
        )
        return self._checkpoint.new_folders if is_known or self._consent is True else ()

    def _remove_new_folder(self, path: str, _token: CancelToken) -> None:
        # What is in it belongs to somebody; then it stays.
        with suppress(ToolFailed):
            self._workspace.remove_folder(parse_saved_path(path))

    async def _fill(self, steps: list[RestoreStep]) -> None:
        for step in sorted(steps, key=lambda step: _depth(step.file.path)):
            if await self._attempt(step, self._fill_one(step)):
                self.restored_steps.append(step)

    async def _fill_one(self, step: RestoreStep) -> None:
        digest = step.file.before.digest
        data = await self._read(digest) if digest is not None else b""
        prefix = temporary_prefix(self._checkpoint.id)
        await run_in_thread(lambda _token: restore_path(self._workspace, step, data, prefix))

    async def _attempt(self, step: RestoreStep, action: Awaitable[None]) -> bool:
        try:
            await action
        except (ToolFailed, StorageFailed) as error:
            await self._refused(step, error)
            return False
        return True

    async def _refused(self, step: RestoreStep, error: ToolFailed | StorageFailed) -> None:
        # Who changed it meanwhile may have put it back.
        changed = isinstance(error, ChangedSinceSnapshot) or isinstance(error.__cause__, FileNotFoundError)
        if changed and await run_in_thread(partial(self._plan_step, step.file)) is None:
            self._as_before.add(step.file.path)
        else:
            self.left_alone.append(skipped_because(step.file.path, error))

    def _updated_checkpoint(self, _token: CancelToken) -> Checkpoint:
        """From now on the files that are as before the call are expected to be so."""
        done = {step.file.path for step in self.restored_steps} | self._as_before
        files = tuple(
            file.model_copy(update={"after": file.before}) if file.path in done else file
            for file in self._checkpoint.files
        )
        return self._checkpoint.model_copy(
            update={
                "files": files,
                "new_folders": existing_folders(self._workspace, self._checkpoint.new_folders),
                "restored": not self._checkpoint.needs_undo
                and all(is_same_state(each.before, each.after) for each in files),
            }
        )


def _depth(path: str) -> int:
    return path.count("/")


def existing_folders(workspace: Workspace, folders: tuple[str, ...]) -> tuple[str, ...]:
    """Those of these places where there is a folder."""
    found: list[str] = []
    for path in folders:
        with suppress(ToolFailed):
            there = workspace.stat(parse_saved_path(path))
            if there is not None and stat.S_ISDIR(there.st_mode):
                found.append(path)
    return tuple(found)
