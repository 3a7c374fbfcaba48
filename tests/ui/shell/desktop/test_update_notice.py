"""New versions: nobody is asked unasked, the button asks once, and the daily check says what it found once."""

import json
from datetime import date, datetime

import pytest
from PySide6.QtWidgets import QCheckBox, QPushButton

from tests.fakes.http_server import Loopback, Reply
from tests.fakes.qt_loop import until
from tests.ui.bridge.fake_opener import fake_opener
from ui.bridge.desktop import updates
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.desktop.updates import UpdateSource
from ui.shell.commands.help_dialog import HelpDialog
from ui.style.text_display import format_day

PAGE = "https://example.org/releases/9"
DAY = date(2026, 12, 1)


def news(version="9.0.0", page=PAGE):
    return Reply(json.dumps({"version": version, "date": DAY.isoformat(), "page": page}).encode())


@pytest.fixture(autouse=True)
def at_rest(monkeypatch, qapp):
    """Let the window count as idle at once."""
    monkeypatch.setattr(updates, "IDLE_MS", 0)
    qapp.setApplicationVersion("1.0.0")


async def turn_daily(screen, *, on=True):
    preferences = screen.engine.preferences
    network = preferences.network.model_copy(update={"check_for_updates": on})
    await screen.engine.change_preferences(preferences.model_copy(update={"network": network}))


async def checked(screen, server, requests=1):
    await until(lambda: len(server.requests) == requests and not screen.desk._settings.updates.is_checking)
    await screen.idle()


def ask(screen, server):
    screen.desk._settings.updates.source = UpdateSource(f"{server.root}/newest.json")


async def started(screen):
    checks = screen.desk._settings.updates
    await until(checks._timer.isActive)
    return checks


def about(screen):
    screen.action("About Desktop Agent").trigger()
    return screen.find(HelpDialog, "Help")


def available(version="9.0.0"):
    return f"Desktop Agent {version} of {format_day(DAY, datetime.now().astimezone().date())} is available."


def test_a_build_without_an_address_says_so_and_offers_nothing(on_screen):
    async def work(screen):
        dialog = about(screen)
        assert "This build has no address to ask for new versions." in screen.words(dialog)
        assert screen.find(QPushButton, "Check for a new version") is None
        await turn_daily(screen)
        settings = screen.desk._settings_presenter.show("network")
        box = next(box for box in settings.findChildren(QCheckBox) if box.accessibleName() == "Check for new versions")
        assert not box.isEnabled()
        assert "no address" in box.accessibleDescription()
        settings.close()

    on_screen(work)


def test_the_button_asks_and_about_says_what_there_is(on_screen, monkeypatch, tmp_path):
    opened_pages = fake_opener(tmp_path, monkeypatch, 0)

    async def work(screen):
        async with Loopback(news(), news("1.0.0"), news("0.9.0"), Reply(b"?"), judged=False) as server:
            ask(screen, server)
            dialog = about(screen)
            await screen.idle()
            assert "Not checked for a newer version yet." in screen.words(dialog)
            assert screen.find(QPushButton, "Open its page") is None
            assert server.connections == 0
            screen.press("Check for a new version")
            await until(lambda: available() in screen.words(dialog))
            await checked(screen, server)
            screen.press("Open its page")
            await until(lambda: opened_pages() == [PAGE] and not dialog.findChild(AddressOpener)._running)
            assert screen.banners.keys == []
            for number in (2, 3):
                screen.press("Check for a new version")
                await checked(screen, server, number)
                assert any(text.startswith("This is the newest version") for text in screen.words(dialog))
                assert screen.find(QPushButton, "Open its page") is None
            screen.press("Check for a new version")
            await checked(screen, server, 4)
            assert any("The check failed: The answer of “127.0.0.1”" in text for text in screen.words(dialog))

    on_screen(work)


def test_the_daily_check_asks_once_and_tells_of_a_version_until_it_is_dismissed(on_screen, tmp_path):
    async def first(screen):
        async with Loopback(news(), judged=False) as server:
            checks = await started(screen)
            ask(screen, server)
            checks._timer.start(0)
            await until(lambda: checks._timer.interval() > 0)
            await screen.idle()
            assert server.connections == 0
            await turn_daily(screen)
            await until(lambda: "update" in screen.banners.keys)
            await checked(screen, server)
            assert available() in screen.words(screen.banners)
            for on in (False, True):
                await turn_daily(screen, on=on)
            await screen.idle()
            assert len(server.requests) == 1

    async def told_again(screen):
        async with Loopback(news(), judged=False) as server:
            checks = await started(screen)
            ask(screen, server)
            checks._timer.start(0)
            await until(lambda: "update" in screen.banners.keys)
            screen.press("Close this message")
            await screen.idle()
            assert server.connections == 0

    async def quiet(screen):
        checks = await started(screen)
        async with Loopback(news(), news("9.0.1"), judged=False) as server:
            ask(screen, server)
            await checks._check_daily()
            assert server.connections == 0
            # A day later.
            await checks._remember(asked=None)
            await checks._check_daily()
            await checked(screen, server)
            assert screen.banners.keys == []
            await checks._remember(asked=None)
            await checks._check_daily()
            await until(lambda: available("9.0.1") in screen.words(screen.banners))

    on_screen(first)
    on_screen(told_again, saved=True)
    on_screen(quiet, saved=True)


def test_the_daily_check_is_silent_about_what_went_wrong(on_screen):
    async def work(screen):
        async with Loopback(news(page="javascript:alert(1)"), judged=False) as server:
            ask(screen, server)
            await screen.idle()
            await turn_daily(screen)
            await checked(screen, server)
            assert screen.banners.keys == []
            await until(lambda: any("The check failed:" in text for text in screen.words(about(screen))))

    on_screen(work)


def test_a_damaged_file_of_the_last_check_is_as_none(on_screen, tmp_path):
    (tmp_path / "data").mkdir()
    file = tmp_path / "data/update-check.json"
    for text in ("{", "[" * 60_000, '{"asked": 1e99, "answered": null, "release": null, "dismissed": ""}', "7"):
        file.write_text(text)
        assert updates._read(file) == updates._State()
