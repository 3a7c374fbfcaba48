"""The setting “Start with the computer” says what the desktop will do."""

import pytest
from PySide6.QtWidgets import QCheckBox, QLabel

from tests.fakes.qt_loop import until


@pytest.fixture
def entry(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "autostart" / "desktop-agent.desktop"


async def box_of(screen):
    await screen.idle()
    dialog = screen.desk._settings_presenter.show("chat")
    await screen.idle()
    return await until(
        lambda: next(
            (box for box in dialog.findChildren(QCheckBox) if box.accessibleName() == "Start with the computer"), None
        )
    )


def test_the_setting_follows_the_entry_and_the_entry_the_setting(on_screen, entry):
    async def work(screen):
        box = await box_of(screen)
        assert not box.isChecked()
        box.click()
        await until(entry.exists)
        await screen.idle()
        assert box.isChecked()
        # Removed in the settings of the desktop.
        entry.unlink()
        await box_of(screen)
        await until(lambda: not box.isChecked())
        box.click()
        await until(entry.exists)
        await screen.idle()
        box.click()
        await until(lambda: not entry.exists())
        await screen.idle()
        assert not box.isChecked()
        screen.window.findChild(type(box.window())).close()

    on_screen(work)


def test_what_cannot_be_written_is_said_and_the_box_goes_back(on_screen, entry, tmp_path):
    (tmp_path / "config").write_text("a file")

    async def work(screen):
        box = await box_of(screen)
        box.click()
        words = "“Start with the computer” was not changed"
        await until(lambda: any(words in text for text in screen.words(box.window())))
        await until(lambda: not box.isChecked())
        box.window().close()

    on_screen(work)


def test_in_a_sandboxed_package_the_setting_says_why_not(on_screen, entry, monkeypatch):
    monkeypatch.setenv("FLATPAK_ID", "org.example.DesktopAgent")

    async def work(screen):
        box = await box_of(screen)
        assert not box.isEnabled()
        assert any("Not possible in this package" in label.text() for label in box.window().findChildren(QLabel))
        assert "Not possible in this package" in box.accessibleDescription()
        box.window().close()

    on_screen(work)
