"""What the pages of the settings show and change, with nothing behind it: it records what they ask for."""

from unittest.mock import MagicMock

from desktop_agent.types.preferences import Preferences
from ui.bridge.settings import SettingsSources


def recorded_sources(preferences=None):
    """Return sources whose parts take every call and answer none."""
    settings, disk = MagicMock(), MagicMock()
    settings.preferences = Preferences() if preferences is None else preferences
    disk.folder = ""
    return SettingsSources(settings, MagicMock(), MagicMock(), disk, MagicMock(), MagicMock())
