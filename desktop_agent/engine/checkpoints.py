"""What can be put back of one conversation's calls."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from desktop_agent.storage.store import Store
from desktop_agent.tools.file_keeper import FileKeeper, Restored
from desktop_agent.tools.in_thread import in_thread
from desktop_agent.tools.keeping.putting_back import failed
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.engine_events import CheckpointRestored
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import Message


class Checkpoints:
    """Lists checkpoints and restores them, one restoring at a time and none while a run is under way.

    `history` is the branch in view, `is_working` whether a run is under way, `tell` hears of what was restored.
    """

    def __init__(
        self,
        store: Store,
        conversation_id: str,
        *,
        history: Callable[[], Sequence[Message]],
        is_working: Callable[[], bool],
        tell: Callable[[CheckpointRestored], None],
    ) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._history = history
        self._is_working = is_working
        self._tell = tell
        self._lock = asyncio.Lock()

    def keeper(self, workspace: Workspace) -> FileKeeper:
        """What saves the files of this workspace before calls change them."""
        return FileKeeper(workspace, self._store.blobs, self._store.checkpoints.save, self._conversation_id)

    async def list(self) -> tuple[Checkpoint, ...]:
        """All of them, oldest first. Raises StorageFailed."""
        return await self._store.checkpoints.of(self._conversation_id)

    async def restore(self, checkpoint_id: str, *, even_if_changed: bool = False) -> Restored:
        """Put back the files of one call; those that were changed since only when `even_if_changed` says so.

        What was left alone is in the answer. Raises WrongUse while working or for an unknown one, and StorageFailed.
        """
        async with self._lock:
            for checkpoint in await self.list():
                if checkpoint.id == checkpoint_id:
                    return await self._restored(checkpoint, even_if_changed=even_if_changed)
        raise WrongUse("There is no such checkpoint in this conversation.", "Choose one from the list.")

    async def restore_since(self, message_id: str, *, even_if_changed: bool = False) -> tuple[Restored, ...]:
        """Put back, newest first, what the calls of this message and of all after it changed; as `restore`.

        What was restored before is left out.
        """
        async with self._lock:
            later = self._since(message_id, await self.list())
            return tuple(
                [await self._restored(each, even_if_changed=even_if_changed) for each in later if not each.restored]
            )

    def _since(self, message_id: str, checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
        history = self._history()
        ids = [message.id for message in history]
        if message_id not in ids:
            raise WrongUse("There is no such message in this conversation.", "Choose one that is shown.")
        at = ids.index(message_id)
        # Messages of specialists and of other branches are not in the history: time tells.
        return [
            each
            for each in reversed(checkpoints)
            if each.message_id in ids[at:] or (each.message_id not in ids and each.created_at >= history[at].created_at)
        ]

    async def _restored(self, checkpoint: Checkpoint, *, even_if_changed: bool) -> Restored:
        if self._is_working():
            raise WrongUse("The model is still working.", "Wait, or press Stop first.")
        try:
            workspace = await in_thread(lambda _sign: Workspace(Path(checkpoint.workspace)))
            restored = await self.keeper(workspace).restore(checkpoint, even_if_changed=even_if_changed)
        except WrongUse as error:
            # The folder is gone, or another one stands in its place.
            restored = Restored(checkpoint, left_alone=tuple(failed(file.path, error) for file in checkpoint.files))
        self._tell(CheckpointRestored(checkpoint.id, restored.conflicts, restored.failed))
        return restored
