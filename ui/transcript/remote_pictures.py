"""Pictures from the web that the person asked for: never loaded by themselves, remembered until the program ends."""

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from weakref import WeakKeyDictionary

from PySide6.QtCore import QCoreApplication, QObject, QSize, Signal

from ui.transcript.pictures import InMemoryImage, encoded_image_size

_MAX_REMOTE_BYTES = 128 * 1024 * 1024


class LoadState(StrEnum):
    """How far a picture is."""

    UNASKED = "unasked"
    LOADING = "loading"
    FAILED = "failed"
    LOADED = "there"


@dataclass(frozen=True, slots=True)
class RemoteImageState:
    """A picture of the web as it stands; `size` is in its own pixels.

    `may_insist`: it was refused for where it lies, and the person may insist.
    """

    progress: LoadState = LoadState.UNASKED
    picture: InMemoryImage | None = None
    sentence: str = ""
    remedy: str = ""
    may_insist: bool = False
    size: QSize = field(default_factory=QSize)


class RemoteImageObserver(Protocol):
    """What shows a picture of the web."""

    def on_remote_image_change(self) -> None:
        """It stands differently now."""
        ...


class RemoteImages(QObject):
    """`wanted` carries an address, and whether private machines are allowed; `unwanted` an address to give up.

    Whoever hears them answers with `arrived`, `failed` or `given_up`.
    """

    wanted = Signal(str, bool)
    unwanted = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._states: OrderedDict[str, RemoteImageState] = OrderedDict()
        self._observers: WeakKeyDictionary[RemoteImageObserver, str] = WeakKeyDictionary()
        self._size = 0

    def state_of(self, address: str) -> RemoteImageState:
        """How it stands."""
        found = self._states.get(address)
        if found is None:
            return RemoteImageState()
        self._states.move_to_end(address)
        return found

    def loaded(self) -> list[str]:
        """The addresses of the pictures that are there."""
        return [address for address, remote in self._states.items() if remote.progress is LoadState.LOADED]

    def watch(self, address: str, watcher: RemoteImageObserver) -> None:
        """Tell this one of every change of the one address that it shows, for as long as it lives."""
        self._observers[watcher] = address

    def load(self, address: str, *, insists: bool = False) -> None:
        """The person wants it."""
        if self.state_of(address).progress not in {LoadState.LOADING, LoadState.LOADED}:
            self._set(address, RemoteImageState(LoadState.LOADING))
            self.wanted.emit(address, insists)

    def cancel(self, address: str) -> None:
        """The person does not want it any more."""
        if self.state_of(address).progress is LoadState.LOADING:
            self._set(address, RemoteImageState())
            self.unwanted.emit(address)

    def arrived(self, address: str, data: bytes, name: str) -> None:
        """Here it is. One whose size cannot be read could never be shown."""
        if self.state_of(address).progress is not LoadState.LOADING:
            return
        size = encoded_image_size(data)
        if size.isEmpty():
            translate = QCoreApplication.translate
            sentence = translate("Transcript", "This picture is damaged: its size cannot be read.")
            remedy = translate("Transcript", "Try again, or open its address in a browser.")
            self._set(address, RemoteImageState(LoadState.FAILED, None, sentence, remedy))
        else:
            self._set(address, RemoteImageState(LoadState.LOADED, InMemoryImage(address, name, data), size=size))

    def failed(self, address: str, sentence: str, remedy: str, *, may_insist: bool = False) -> None:
        """It cannot be shown, and what to do about that."""
        if self.state_of(address).progress is LoadState.LOADING:
            self._set(address, RemoteImageState(LoadState.FAILED, None, sentence, remedy, may_insist))

    def cancelled(self, address: str) -> None:
        """Nobody is loading it any more."""
        if self.state_of(address).progress is LoadState.LOADING:
            self._set(address, RemoteImageState())

    def _set(self, address: str, remote: RemoteImageState) -> None:
        self._size -= _image_bytes(self._states.pop(address, None))
        if remote.progress is not LoadState.UNASKED:
            self._states[address] = remote
        self._size += _image_bytes(remote)
        self._notify(address)
        while self._size > _MAX_REMOTE_BYTES and len(self._states) > 1:
            oldest, gone = self._states.popitem(last=False)
            self._size -= _image_bytes(gone)
            self._notify(oldest)

    def _notify(self, address: str) -> None:
        for watcher in [each for each, shows in self._observers.items() if shows == address]:
            watcher.on_remote_image_change()


def _image_bytes(remote: RemoteImageState | None) -> int:
    return len(remote.picture.data) if remote and remote.picture else 0
