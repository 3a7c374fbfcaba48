"""The disk for the screens: what it refuses, and what was found and repaired on it."""

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.errors import StorageFailed


class Disk(QObject):
    """`noticed` carries a Sentence about what was found and repaired."""

    trouble_changed = Signal(object)
    """A StorageFailed, or None when the disk takes everything again."""
    recovered = Signal()
    """The same as None: what is listed may be another file now."""
    noticed = Signal(object)

    def __init__(self, engine: Engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = engine.store
        self._store.on_notice(self.noticed.emit)
        self._store.disk.on_change(self._on_change)

    @property
    def trouble(self) -> StorageFailed | None:
        """What the disk refused last; None while it takes everything."""
        return self._store.disk.trouble

    def _on_change(self, trouble: StorageFailed | None) -> None:
        self.trouble_changed.emit(trouble)
        if trouble is None:
            self.recovered.emit()
