"""Loads the pictures of the web that the person asked for in a transcript."""

import asyncio
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from PySide6.QtCore import QObject

from desktop_agent.vocabulary.errors import ImageRefused
from ui.bridge.contents.web_pictures import WebPictures
from ui.bridge.tasks import BackgroundTasks
from ui.look.sentences import translate_sentence
from ui.transcript.remote_pictures import RemoteImages


class WebPictureLoader(QObject):
    """Between what a transcript wants and what fetches it."""

    def __init__(self, remote: RemoteImages, tasks: BackgroundTasks, parent: QObject) -> None:
        super().__init__(parent)
        self._remote = remote
        self._tasks = tasks
        self._web = WebPictures()
        self._loading: dict[str, asyncio.Task[bytes]] = {}
        remote.wanted.connect(self._load)
        remote.unwanted.connect(self._cancel)

    def _load(self, address: str, insists: bool) -> None:  # noqa: FBT001  what the signal carries
        self._tasks.start(self._fetch(address, insists=insists))

    def _cancel(self, address: str) -> None:
        if task := self._loading.pop(address, None):
            task.cancel()

    async def _fetch(self, address: str, *, insists: bool) -> None:
        task = asyncio.get_running_loop().create_task(self._web.load(address, insists=insists))
        self._loading[address] = task
        try:
            await asyncio.wait({task})
        finally:
            if self._loading.get(address) is task:
                del self._loading[address]
            if not task.done():
                task.cancel()
                # To its end, so that its connection is closed when this one is.
                with suppress(asyncio.CancelledError, ImageRefused):
                    await task
        self._show_outcome(address, task)

    def _show_outcome(self, address: str, task: asyncio.Task[bytes]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._remote.arrived(address, task.result(), unquote(urlsplit(address).path.rpartition("/")[2]))
        elif isinstance(error, ImageRefused):
            may_insist = error.kind == "private_address"
            self._remote.failed(
                address, translate_sentence(error.sentence), translate_sentence(error.remedy), may_insist=may_insist
            )
        else:
            self._remote.cancelled(address)
            raise error
