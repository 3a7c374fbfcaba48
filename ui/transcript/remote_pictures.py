"""Pictures from the web that the person asked for: never loaded by themselves, remembered until the program ends."""

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from weakref import WeakKeyDictionary

from PySide6.QtCore import QCoreApplication, QObject, QSize, Signal

from ui.transcript.pictures import HeldPicture, size_in_file

_KEPT_BYTES = 128 * 1024 * 1024


class Progress(StrEnum):
    """How far a picture is."""

    UNASKED = "unasked"
    LOADING = "loading"
    FAILED = "failed"
    THERE = "there"


@dataclass(frozen=True, slots=True)
class Remote:
    """A picture of the web as it stands; `size` is in its own pixels.

    `may_insist`: it was refused for where it lies, and the person may insist.
    """

    progress: Progress = Progress.UNASKED
    picture: HeldPicture | None = None
    sentence: str = ""
    remedy: str = ""
    may_insist: bool = False
    size: QSize = field(default_factory=QSize)


class Watcher(Protocol):
    """What shows a picture of the web."""

    def on_remote_change(self) -> None:
        """It stands differently now."""
        ...


class RemotePictures(QObject):
    """`wanted` carries an address, and whether private machines are allowed; `unwanted` an address to give up.

    Whoever hears them answers with `arrived`, `failed` or `given_up`.
    """

    wanted = Signal(str, bool)
    unwanted = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._known: OrderedDict[str, Remote] = OrderedDict()
        self._watchers: WeakKeyDictionary[Watcher, str] = WeakKeyDictionary()
        self._size = 0

    def of(self, address: str) -> Remote:
        """How it stands."""
        found = self._known.get(address)
        if found is None:
            return Remote()
        self._known.move_to_end(address)
        return found

    def loaded(self) -> list[str]:
        """The addresses of the pictures that are there."""
        return [address for address, remote in self._known.items() if remote.progress is Progress.THERE]

    def watch(self, address: str, watcher: Watcher) -> None:
        """Tell this one of every change of the one address that it shows, for as long as it lives."""
        self._watchers[watcher] = address

    def load(self, address: str, *, insists: bool = False) -> None:
        """The person wants it."""
        if self.of(address).progress not in {Progress.LOADING, Progress.THERE}:
            self._set(address, Remote(Progress.LOADING))
            self.wanted.emit(address, insists)

    def cancel(self, address: str) -> None:
        """The person does not want it any more."""
        if self.of(address).progress is Progress.LOADING:
            self._set(address, Remote())
            self.unwanted.emit(address)

    def arrived(self, address: str, data: bytes, name: str) -> None:
        """Here it is. One whose size cannot be read could never be shown."""
        if self.of(address).progress is not Progress.LOADING:
            return
        size = size_in_file(data)
        if size.isEmpty():
            translate = QCoreApplication.translate
            sentence = translate("Transcript", "This picture is damaged: its size cannot be read.")
            remedy = translate("Transcript", "Try again, or open its address in a browser.")
            self._set(address, Remote(Progress.FAILED, None, sentence, remedy))
        else:
            self._set(address, Remote(Progress.THERE, HeldPicture(address, name, data), size=size))

    def failed(self, address: str, sentence: str, remedy: str, *, may_insist: bool = False) -> None:
        """It cannot be shown, and what to do about that."""
        if self.of(address).progress is Progress.LOADING:
            self._set(address, Remote(Progress.FAILED, None, sentence, remedy, may_insist))

    def given_up(self, address: str) -> None:
        """Nobody is loading it any more."""
        if self.of(address).progress is Progress.LOADING:
            self._set(address, Remote())

    def _set(self, address: str, remote: Remote) -> None:
        self._size -= _bytes(self._known.pop(address, None))
        if remote.progress is not Progress.UNASKED:
            self._known[address] = remote
        self._size += _bytes(remote)
        self._tell(address)
        while self._size > _KEPT_BYTES and len(self._known) > 1:
            oldest, gone = self._known.popitem(last=False)
            self._size -= _bytes(gone)
            self._tell(oldest)

    def _tell(self, address: str) -> None:
        for watcher in [each for each, shows in self._watchers.items() if shows == address]:
            watcher.on_remote_change()


def _bytes(remote: Remote | None) -> int:
    return len(remote.picture.data) if remote and remote.picture else 0
