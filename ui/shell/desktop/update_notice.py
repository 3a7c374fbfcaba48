"""The notice in the window that there is a newer version."""

from datetime import datetime

from PySide6.QtCore import QCoreApplication, QObject

from desktop_agent.types.errors import Sentence
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.desktop.updates import Release, UpdateChecks
from ui.shell.banners import Banner, BannerArea, BannerButton
from ui.style.text_display import format_day

_KEY = "update"


def release_sentence(release: Release) -> Sentence:
    """Return a sentence with the version and its date."""
    values = {"version": release.version, "date": format_day(release.date, datetime.now().astimezone().date())}
    return Sentence("Desktop Agent {version} of {date} is available.", values)


class UpdateNotice(QObject):
    """Begins the daily check and shows what it finds. Closing the notice dismisses that version."""

    def __init__(self, updates: UpdateChecks, banners: BannerArea, parent: QObject) -> None:
        super().__init__(parent)
        self._updates = updates
        self._banners = banners
        self._version = ""
        self._opener = AddressOpener(self)
        self._opener.failed.connect(banners.show_notice)
        updates.found.connect(self._show)
        banners.closed.connect(self._on_closed)
        updates.start()

    def _show(self, release: Release) -> None:
        self._version = release.version
        text = QCoreApplication.translate("UpdateNotice", "Open its page")
        page = BannerButton(text, lambda: self._opener.open_page(release.page))
        self._banners.show_banner(Banner(_KEY, release_sentence(release), level="remark", buttons=(page,)))

    def _on_closed(self, key: str) -> None:
        if key == _KEY:
            self._updates.dismiss(self._version)
