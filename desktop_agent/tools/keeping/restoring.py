"""One restoring of one checkpoint: judge every file, save what is there, clear the way, put back what was, note it."""

import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from desktop_agent.tools.in_thread import StopSign, in_thread
from desktop_agent.tools.keeping.looking import is_same, place_of
from desktop_agent.tools.keeping.putting_back import (
    ChangedMeanwhile,
    Consent,
    LeftAlone,
    Step,
    clear,
    consents,
    failed,
    fill,
    judged,
)
from desktop_agent.tools.keeping.saving_first import SavingFirst
from desktop_agent.tools.keeping.sweeping import prefix_of, sweep
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, SavedFile
from desktop_agent.vocabulary.errors import StorageFailed, ToolFailed


class Restoring:
    """`put_back` and `left_alone` say what became of the files that were not as before the call.

    `saved` is the checkpoint of what it changed, None where that is nothing.
    """

    def __init__(
        self,
        workspace: Workspace,
        checkpoint: Checkpoint,
        read: Callable[[str], Awaitable[bytes]],
        consent: Consent,
        saving: SavingFirst,
    ) -> None:
        self._workspace = workspace
        self._checkpoint = checkpoint
        self._read = read
        self._consent = consent
        self._saving = saving
        self.saved: Checkpoint | None = None
        self.put_back: list[Step] = []
        self.left_alone: list[LeftAlone] = []
        # Paths of what was as before the call without this restoring: somebody else put it back, or an earlier one did.
        self._as_before: set[str] = set()

    async def run(self) -> Checkpoint:
        """Do it; the checkpoint as it is to be noted. Raises StorageFailed when nothing was done, or what is `saved`
        could not be noted."""
        await in_thread(lambda _sign: sweep(self._workspace, self._checkpoint))
        self.saved, steps, refused = await self._saving.save(self._checkpoint, await self._judged())
        for step, error in refused:
            await self._refused(step, error)
        blocked = await self._clear(steps)
        await self._fill([step for step in steps if step not in blocked])
        if self.saved is not None:
            folders = self.saved.new_folders
            there = await in_thread(lambda _sign: still_there(self._workspace, folders))
            done = [step.file.path for step in self.put_back]
            self.saved = await self._saving.conclude(self.saved, done, self._as_before, there)
        return await in_thread(self._noted)

    async def _judged(self) -> list[Step]:
        steps: list[Step] = []
        for file in self._checkpoint.files:
            found = await in_thread(partial(self._judge, file))
            if isinstance(found, Step):
                steps.append(found)
            elif found is None:
                self._as_before.add(file.path)
            else:
                self.left_alone.append(found)
        return steps

    def _judge(self, file: SavedFile, sign: StopSign) -> Step | LeftAlone | None:
        return judged(self._workspace, file, sign, self._consent)

    async def _clear(self, steps: list[Step]) -> list[Step]:
        """Take away what was not there, the innermost first; those steps that have nothing more to do."""
        in_the_way = {step.file.path: step for step in steps if not step.wants_file}
        over: list[Step] = []
        for path in sorted({*in_the_way, *self._new_folders()}, key=_depth, reverse=True):
            step = in_the_way.get(path)
            if step is None:
                await in_thread(partial(self._remove_new_folder, path))
            elif not await self._attempt(step, in_thread(partial(self._clear_one, step))):
                over.append(step)
            elif not step.wants_folder:
                over.append(step)
                self.put_back.append(step)
        return over

    def _clear_one(self, step: Step, _sign: StopSign) -> None:
        clear(self._workspace, step)

    def _new_folders(self) -> tuple[str, ...]:
        """Those that the call certainly made, or all that were not there before it."""
        is_known = all(file.after is not None or consents(self._consent, file.path) for file in self._checkpoint.files)
        return self._checkpoint.new_folders if is_known or self._consent is True else ()

    def _remove_new_folder(self, path: str, _sign: StopSign) -> None:
        # What is in it belongs to somebody; then it stays.
        with suppress(ToolFailed):
            self._workspace.remove_folder(place_of(path))

    async def _fill(self, steps: list[Step]) -> None:
        for step in sorted(steps, key=lambda step: _depth(step.file.path)):
            if await self._attempt(step, self._fill_one(step)):
                self.put_back.append(step)

    async def _fill_one(self, step: Step) -> None:
        digest = step.file.before.digest
        data = await self._read(digest) if digest is not None else b""
        prefix = prefix_of(self._checkpoint.id)
        await in_thread(lambda _sign: fill(self._workspace, step, data, prefix))

    async def _attempt(self, step: Step, deed: Awaitable[None]) -> bool:
        try:
            await deed
        except (ToolFailed, StorageFailed) as error:
            await self._refused(step, error)
            return False
        return True

    async def _refused(self, step: Step, error: ToolFailed | StorageFailed) -> None:
        # Who changed it meanwhile may have put it back.
        changed = isinstance(error, ChangedMeanwhile) or isinstance(error.__cause__, FileNotFoundError)
        if changed and await in_thread(partial(self._judge, step.file)) is None:
            self._as_before.add(step.file.path)
        else:
            self.left_alone.append(failed(step.file.path, error))

    def _noted(self, _sign: StopSign) -> Checkpoint:
        """From now on the files that are as before the call are expected to be so."""
        done = {step.file.path for step in self.put_back} | self._as_before
        files = tuple(
            file.model_copy(update={"after": file.before}) if file.path in done else file
            for file in self._checkpoint.files
        )
        return self._checkpoint.model_copy(
            update={
                "files": files,
                "new_folders": still_there(self._workspace, self._checkpoint.new_folders),
                "restored": not self._checkpoint.owes_undo and all(is_same(each.before, each.after) for each in files),
            }
        )


def _depth(path: str) -> int:
    return path.count("/")


def still_there(workspace: Workspace, folders: tuple[str, ...]) -> tuple[str, ...]:
    """Those of these places where there is a folder."""
    found: list[str] = []
    for path in folders:
        with suppress(ToolFailed):
            there = workspace.stat(place_of(path))
            if there is not None and stat.S_ISDIR(there.st_mode):
                found.append(path)
    return tuple(found)
