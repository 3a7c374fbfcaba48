"""Over which of several windows a server's question opens; the server asks over its real pipes."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from desktop_agent.types.mcp import ElicitationRequest
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from tests.fakes.qt_loop import until
from tests.fakes.window import Screen
from tests.ui.shell.mcp.everything import command
from tests.ui.shell.mcp.test_request_origin import ASKS, DONE, click, place, stop_button, turn_on, working
from tests.ui.shell.test_side_windows import answers, editor, open_beside
from ui.approval.server_requests.request_dialog import ServerRequestDialog
from ui.shell.side_windows.conversation_window import ConversationWindow


def dialogs(screen: Screen) -> list[ServerRequestDialog]:
    request_dialogs = [
        window for window in screen.front.app.topLevelWidgets() if isinstance(window, ServerRequestDialog)
    ]
    return [window for window in request_dialogs if window.isVisible()]


async def dialog(screen: Screen) -> ServerRequestDialog:
    (request_dialog,) = await until(lambda: dialogs(screen))
    await until(lambda: not request_dialog.current.bar.is_input_delayed)
    return request_dialog


async def two_windows(screen: Screen) -> tuple[str, ConversationWindow]:
    """Show a conversation in a window of its own and another one in the main window; allow its call of the server."""
    await turn_on(screen)
    await screen.say("One")
    beside = screen.conversation.id
    rule = Rule(effect=RuleEffect.ALLOW, tool="raw__t0", scope=RuleScope.CONVERSATION)
    screen.engine._sessions[beside].permission_policy.add(rule)
    window = await open_beside(screen, beside)
    screen.desk.library.new()
    await until(lambda: screen.conversation.id != beside)
    await screen.idle()
    return beside, window


async def activate(window) -> None:
    window.activateWindow()
    await until(window.isActiveWindow)


def send(window: ConversationWindow) -> None:
    QTest.keyClicks(editor(window), "Ask me.")
    QTest.keyClick(editor(window), Qt.Key.Key_Return)


def requests(screen: Screen):
    return screen.desk.library.requests.waiting


@pytest.mark.parametrize("active", ["main", "beside"])
def test_it_opens_over_the_window_that_shows_the_conversation(on_screen, active):
    async def work(screen):
        conversation_id, window = await two_windows(screen)
        send(window)
        await activate(window if active == "beside" else screen.window)
        request_dialog = await dialog(screen)
        assert request_dialog.parentWidget() is window
        # The conversation is in view there.
        assert place(conversation_id, screen) not in screen.words(request_dialog)
        click(command(request_dialog, "Decline"))
        await until(lambda: not working(screen, conversation_id))
        assert dialogs(screen) == []

    on_screen(work, answers(), ASKS, DONE)


def test_of_two_windows_that_show_it_the_active_one_has_the_question(on_screen):
    async def work(screen):
        conversation_id, window = await two_windows(screen)
        screen.desk.library.open(conversation_id)
        await until(lambda: screen.conversation.id == conversation_id)
        await activate(window)
        send(window)
        request_dialog = await dialog(screen)
        assert request_dialog.parentWidget() is window
        click(command(request_dialog, "Decline"))
        await until(lambda: not working(screen, conversation_id))

    on_screen(work, answers(), ASKS, DONE)


def test_one_that_no_window_shows_is_asked_over_the_active_one(on_screen):
    async def work(screen):
        conversation_id, window = await two_windows(screen)
        await activate(window)
        question = ElicitationRequest("Other", "Well?", {"properties": {}}, conversation_id=None)
        screen.desk._tasks.start(screen.engine.consent_handlers.elicit(question))
        request_dialog = await dialog(screen)
        assert request_dialog.parentWidget() is window
        click(command(request_dialog, "Decline"))
        await until(lambda: not dialogs(screen))
        await activate(screen.window)
        screen.desk._tasks.start(screen.engine.consent_handlers.elicit(question))
        request_dialog = await dialog(screen)
        assert request_dialog.parentWidget() is screen.window
        click(command(request_dialog, "Decline"))
        await screen.idle()
        assert not working(screen, conversation_id)

    on_screen(work, answers())


def test_what_is_written_in_it_stays_when_its_window_goes(on_screen):
    async def work(screen):
        conversation_id, window = await two_windows(screen)
        await activate(window)
        send(window)
        request_dialog = await dialog(screen)
        field = request_dialog.current.view.rows[0].findChild(QLineEdit)
        QTest.keyClicks(field, "kept")
        screen.desk._desktop.windows.close_window(window)
        await screen.idle()
        (remaining,) = dialogs(screen)
        assert remaining is request_dialog
        assert request_dialog.parentWidget() is screen.window
        assert place(conversation_id, screen) in screen.words(request_dialog)
        assert field.text() == "kept"
        click(stop_button(request_dialog))
        await until(lambda: not working(screen, conversation_id))
        assert dialogs(screen) == []

    on_screen(work, answers(), ASKS)


def test_a_notification_leads_to_the_window_that_shows_the_conversation(on_screen):
    async def work(screen):
        conversation_id, window = await two_windows(screen)
        await activate(window)
        send(window)
        await until(lambda: requests(screen))
        (request_dialog,) = dialogs(screen)
        shown_id = screen.conversation.id
        request_dialog.hide()
        await activate(screen.window)
        screen.desk._show_request(requests(screen)[0])
        assert dialogs(screen) == [request_dialog]
        assert request_dialog.parentWidget() is window
        await screen.idle()
        assert screen.conversation.id == shown_id
        screen.engine._sessions[conversation_id].interrupt()
        await until(lambda: not working(screen, conversation_id))

    on_screen(work, answers(), ASKS)
