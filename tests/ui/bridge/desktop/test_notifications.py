"""Notifications by a real server on a bus of its own, and whatever may be sent to us in its name."""

from contextlib import ExitStack

from tests.fakes.notification_server import notification_server
from tests.fakes.qt_loop import Heard, until
from ui.bridge.desktop import message_bus as module
from ui.bridge.desktop.notifications import DesktopNotifications
from ui.bridge.event_loop import BackgroundTasks

ACTIONS = [("show", "Show"), ("deny", "Deny")]
FULL = ("actions", "body", "body-markup")


def run(in_loop, work):
    async def whole():
        problems = []
        tasks = BackgroundTasks(problems.append)
        notifications = DesktopNotifications(tasks)
        try:
            await work(notifications)
            await until(lambda: not tasks._running)
        finally:
            await tasks.close()
            await notifications.close()
        assert problems == []

    in_loop(whole())


def test_a_server_gets_what_it_can_show(in_loop, bus):
    async def work(notifications):
        for capabilities, text, actions in (
            ((), "1 < 2 & <b>3</b>", []),
            (("body-markup",), "1 &lt; 2 &amp; &lt;b&gt;3&lt;/b&gt;", []),
            (("actions",), "1 < 2 & <b>3</b>", ["default", "Desktop Agent", "show", "Show", "deny", "Deny"]),
        ):
            with notification_server(bus, *capabilities) as server:
                notifications.show("a", "<i>Title</i>", "1 < 2 & <b>3</b>", ACTIONS)
                await until(lambda server=server: server.shown)
                assert server.shown == [(1, "<i>Title</i>", text, actions)]

    run(in_loop, work)


def test_what_asks_for_a_decision_stays_until_it_is_closed(in_loop, bus):
    async def work(notifications):
        with notification_server(bus, *FULL) as server:
            notifications.show("a", "Call", "It waits.", ACTIONS)
            await until(lambda: len(server.expiries) == 1)
            notifications.show("b", "Answer", "It is done.")
            await until(lambda: len(server.expiries) == 2)
            assert server.expiries == [0, -1]

    run(in_loop, work)


def test_nothing_hidden_comes_into_a_notification(in_loop, bus):
    async def work(notifications):
        with notification_server(bus) as server:
            notifications.show("a", "a\u202eb\nc\u200bd", "e\u2066f\x00\x1b[1m\ud800\n\u2028g\ue000")
            await until(lambda: server.shown)
            (_, title, text, _), *_ = server.shown
            assert title == "a⟨U+202E⟩b c⟨U+200B⟩d"
            assert text == "e⟨U+2066⟩f⟨U+0000⟩⟨U+001B⟩[1m⟨U+D800⟩\n⟨U+2028⟩g⟨U+E000⟩"

    run(in_loop, work)


def test_a_click_counts_once_and_only_for_what_is_offered_by_who_offers_it(in_loop, bus):
    async def work(notifications):
        activated = Heard(notifications.activated)
        with notification_server(bus, *FULL) as server:
            notifications.show("a", "A", "a", ACTIONS)
            notifications.show("b", "B", "b")
            await until(lambda: len(server.shown) == 2)
            numbers = {title: number for number, title, _, _ in server.shown}
            server.forge(numbers["A"], "deny")
            server.click(numbers["A"], "allow")
            server.click(numbers["B"], "deny")
            server.click(99, "deny")
            server.click(numbers["A"], "show")
            server.click(numbers["A"], "show")
            server.click(numbers["A"], "deny")
            server.click(numbers["B"], "default")
            await until(lambda: len(activated) >= 2)
            # What was clicked is removed, also by a server that leaves it.
            await until(lambda: sorted(server.closed) == sorted(numbers.values()))
            assert activated == [("a", "show"), ("b", "show")]

    run(in_loop, work)


def test_what_is_withdrawn_is_closed_and_a_late_click_does_nothing(in_loop, bus):
    async def work(notifications):
        activated = Heard(notifications.activated)
        with notification_server(bus, *FULL) as server:
            notifications.show("a", "A", "a", ACTIONS)
            notifications.withdraw("a")
            await until(lambda: server.closed == [1])
            server.click(1, "deny")
            notifications.show("b", "B", "b", ACTIONS)
            await until(lambda: len(server.shown) == 2)
            server.close(2)
            server.click(2, "deny")
            notifications.show("c", "C", "c", ACTIONS)
            await until(lambda: len(server.shown) == 3)
            server.click(3, "show")
            await until(lambda: activated)
            assert activated == [("c", "show")]

    run(in_loop, work)


def test_the_server_that_takes_the_place_of_another_is_asked_what_it_can(in_loop, bus):
    async def work(notifications):
        activated = Heard(notifications.activated)
        with ExitStack() as stack:
            stack.enter_context(notification_server(bus, "actions"))
            notifications.show("a", "A", "<b>", ACTIONS)
            await until(lambda: not notifications._tasks._running)
        with notification_server(bus, *FULL) as server:
            # Its numbers begin anew: what the other one showed cannot be clicked here.
            server.click(1, "deny")
            notifications.show("b", "B", "<b>", ACTIONS)
            await until(lambda: server.shown)
            assert server.shown[0][2] == "&lt;b&gt;"
            server.click(1, "show")
            await until(lambda: activated)
            assert activated == [("b", "show")]

    run(in_loop, work)


def test_what_a_slow_server_shows_is_not_sent_again(in_loop, bus, monkeypatch):
    async def work(notifications):
        with notification_server(bus) as server:
            notifications.show("a", "A", "a")
            await until(lambda: not notifications._tasks._running)
            server.hold()
            with monkeypatch.context() as patch:
                patch.setattr(module, "_REPLY_SECONDS", 0.2)
                notifications.show("b", "B", "b")
                await until(lambda: not notifications._tasks._running)
            server.release()
            notifications.show("c", "C", "c")
            await until(lambda: [title for _, title, _, _ in server.shown][-1] == "C")
            assert [title for _, title, _, _ in server.shown] == ["A", "B", "C"]

    run(in_loop, work)
