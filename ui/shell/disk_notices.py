"""What there is to say about the disk, for as long as it is so."""

from PySide6.QtCore import QObject, Slot

from desktop_agent.vocabulary.errors import AgentError, Sentence, StorageFailed
from ui.bridge.disk import DiskMonitor
from ui.shell.banners import Banner, BannerArea

DISK_BANNER_KEY = "disk"
_REMARK_MS = 12_000


class DiskBanner(QObject):
    """One banner for whatever the disk refuses; it leaves when the disk takes everything again."""

    def __init__(self, disk: DiskMonitor, banners: BannerArea, parent: QObject) -> None:
        super().__init__(parent)
        self._disk = disk
        self._banners = banners
        disk.noticed.connect(banners.show_notice)
        disk.trouble_changed.connect(self._show)
        disk.checked.connect(self._show_check)

    @Slot(object, bool)
    def _show_check(self, result: Sentence, is_whole: bool) -> None:  # noqa: FBT001  a slot
        # What is wrong is shown as any other error.
        if is_whole:
            self._banners.show_banner(Banner("check", result, level="remark", duration_ms=_REMARK_MS))

    def show(self) -> None:
        """Say what is so at the moment."""
        self._show(self._disk.trouble)

    def covers(self, error: AgentError) -> bool:
        """Whether an error is what the banner says; where the person closed it, it is shown again."""
        trouble = self._disk.trouble
        if trouble is None or str(error) != str(trouble):
            return False
        if DISK_BANNER_KEY not in self._banners.keys:
            self._show(trouble)
        return True

    @Slot(object)
    def _show(self, trouble: StorageFailed | None) -> None:
        if trouble is None:
            self._banners.remove(DISK_BANNER_KEY)
        else:
            self._banners.show_banner(Banner(DISK_BANNER_KEY, trouble.sentence, trouble.remedy))
