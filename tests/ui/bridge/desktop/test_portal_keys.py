"""Keys that the desktop gives through its portal, by a real bus and a portal that speaks the documented protocol."""

import asyncio
import os

import pytest

from tests.fakes.desktop_portal import SHORTCUTS, desktop_portal
from tests.fakes.qt_loop import Heard, until
from ui.bridge.desktop.key_names import KeysUnavailable, parse_keys
from ui.bridge.desktop.portal_keys import PortalKeys, has_portal

KEYS = "Ctrl+Alt+Q"


def run(in_loop, work):
    async def whole():
        shortcut = PortalKeys()
        try:
            await work(shortcut, Heard(shortcut.pressed))
        finally:
            await shortcut.release()

    in_loop(whole())


@pytest.mark.parametrize(
    ("keys", "trigger"),
    [(KEYS, "CTRL+ALT+q"), ("Meta+Shift+F5", "SHIFT+LOGO+F5"), ("Ctrl+Space", "CTRL+space"), ("Ctrl+Ä", None)],
)
def test_the_desktop_is_asked_and_its_key_opens(in_loop, bus, keys, trigger):
    async def work(shortcut, pressed):
        with desktop_portal(bus, SHORTCUTS, BindShortcuts="Strg+Alt+Q") as portal:
            assert await shortcut.grab(parse_keys(keys)) == "Strg+Alt+Q"
            # Its words are read by a thread, later than its answer.
            await until(lambda: portal.of("bound"))
            assert portal.of("registered") == ["desktop-agent"]
            assert [options.get("preferred_trigger") for options in portal.of("bound")] == [trigger]
            portal.press()
            await until(lambda: len(pressed) == 1)
            # Of nobody else on the bus.
            renamed = Heard(shortcut.renamed)
            portal.forge()
            portal.rename("Strg+Alt+W")
            await until(lambda: renamed)
            assert len(pressed) == 1
            portal.press()
            await until(lambda: len(pressed) == 2)

    run(in_loop, work)


def test_the_token_that_lets_the_window_come_to_the_front_is_handed_to_qt(in_loop, bus, monkeypatch):
    monkeypatch.setenv("XDG_ACTIVATION_TOKEN", "")

    async def work(shortcut, pressed):
        with desktop_portal(bus, SHORTCUTS) as portal:
            await shortcut.grab(parse_keys(KEYS))
            portal.press("a-token")
            await until(lambda: pressed)
            assert os.environ["XDG_ACTIVATION_TOKEN"] == "a-token"

    run(in_loop, work)


@pytest.mark.parametrize("answer", [None, False])
def test_who_does_not_agree_gets_a_sentence(in_loop, bus, answer):
    async def work(shortcut, pressed):
        with desktop_portal(bus, SHORTCUTS, BindShortcuts=answer) as portal:
            with pytest.raises(KeysUnavailable, match="gave no key for the quick question"):
                await shortcut.grab(parse_keys(KEYS))
            portal.answer("BindShortcuts", "Ctrl+Alt+Q")
            assert await shortcut.grab(parse_keys(KEYS)) == "Ctrl+Alt+Q"

    run(in_loop, work)


def test_other_keys_may_be_chosen_while_the_desktop_still_asks(in_loop, bus):
    async def work(shortcut, pressed):
        with desktop_portal(bus, SHORTCUTS, BindShortcuts=True) as portal:
            first = asyncio.ensure_future(shortcut.grab(parse_keys(KEYS)))
            await until(lambda: portal.of("bound"))
            portal.answer("BindShortcuts", "Ctrl+Alt+W")
            assert await shortcut.grab(parse_keys("Ctrl+Alt+W")) == "Ctrl+Alt+W"
            with pytest.raises(KeysUnavailable):
                await first
            portal.press()
            await until(lambda: pressed)

    run(in_loop, work)


def test_new_keys_in_the_settings_of_the_desktop_and_its_end_are_noticed(in_loop, bus):
    async def work(shortcut, pressed):
        renamed, lost = Heard(shortcut.renamed), Heard(shortcut.lost)
        with desktop_portal(bus, SHORTCUTS) as portal:
            await shortcut.grab(parse_keys(KEYS))
            portal.rename("Super+Q")
            await until(lambda: renamed == ["Super+Q"])
            assert not lost
        await until(lambda: lost)

    run(in_loop, work)


def test_without_a_portal_the_remedy_is_a_command(in_loop, bus, monkeypatch):
    async def work(shortcut, pressed):
        assert not await has_portal()
        with pytest.raises(KeysUnavailable, match="no portal for global shortcuts") as error_info:
            await shortcut.grab(parse_keys(KEYS))
        assert "desktop-agent --quick-ask" in str(error_info.value.remedy)
        with desktop_portal(bus) as portal:
            # One without this interface.
            assert not await has_portal()
            assert portal.of("bound") == []
        with desktop_portal(bus, SHORTCUTS):
            assert await has_portal()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
        assert not await has_portal()

    run(in_loop, work)


@pytest.mark.parametrize("keys", ["Volume Up", "Ctrl+K, Ctrl+B", "nonsense+", "Ctrl"])
def test_what_are_no_keys_for_everywhere_is_said(keys):
    with pytest.raises(KeysUnavailable):
        parse_keys(keys)
