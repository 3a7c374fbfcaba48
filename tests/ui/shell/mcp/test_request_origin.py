"""What a server asks for one conversation while another is in view; the server answers over its real pipes."""

import sys
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.mcp import ElicitationRequest, McpServer, StdioConnection
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.preferences import McpPreferences
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import Deny
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.ui.shell.mcp.everything import command, dialog

SERVER = Path(__file__).parents[3] / "desktop_agent" / "mcp" / "raw_server.py"
ASKS = Turn(ToolUse(id="c1", name="raw__t0", input={}))
DONE = Turn(ContentDelta("done"))


async def turn_on(screen):
    connection = StdioConnection(command=sys.executable, args=("-B", str(SERVER), "asks"))
    server = McpServer(id="raw", title="Raw", connection=connection)
    await screen.engine.change_preferences(
        screen.engine.preferences.model_copy(update={"mcp": McpPreferences(servers=(server,))})
    )


async def ask(screen, prompt):
    """Have the conversation in view call the server, which asks; returns its id."""
    session = screen.engine._sessions[screen.conversation.id]
    session.permission_policy.add(Rule(effect=RuleEffect.ALLOW, tool="raw__t0", scope=RuleScope.CONVERSATION))
    count = len(screen.desk.library.requests.waiting)
    screen.write(prompt)
    screen.press("Send")
    await until(lambda: len(screen.desk.library.requests.waiting) > count)
    return screen.conversation.id


async def new(screen):
    shown_id = screen.conversation.id
    screen.desk.library.new()
    await until(lambda: screen.conversation.id != shown_id)
    await screen.idle()


def working(screen, conversation_id):
    return screen.engine._sessions[conversation_id].working


def stop_button(shown):
    return next(button for button in shown.findChildren(QPushButton) if button.accessibleName() == "Stop the agent")


def place(conversation_id, screen):
    return f"In the conversation “{screen.engine._sessions[conversation_id].record.title}”."


def badge(screen, conversation_id):
    return screen.window.sidebar._rows._badges.get(conversation_id, "")


def click(button):
    assert button.isVisible()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def test_stop_reaches_the_conversation_that_is_asked_for_not_the_one_in_view(on_screen):
    async def work(screen):
        await turn_on(screen)
        conversation_id = await ask(screen, "Ask me.")
        request_dialog = await dialog(screen)
        assert not any(words.startswith("In the conversation") for words in screen.words(request_dialog))
        await new(screen)
        assert place(conversation_id, screen) in screen.words(request_dialog)
        assert "In the conversation “Ask me.”." in request_dialog.accessibleDescription()
        click(stop_button(request_dialog))
        await until(lambda: not working(screen, conversation_id))
        await until(lambda: not request_dialog.isVisible())
        assert screen.desk.library.requests.waiting == ()

    on_screen(work, ASKS)


def test_the_list_marks_the_conversation_until_it_is_answered(on_screen):
    async def work(screen):
        await turn_on(screen)
        conversation_id = await ask(screen, "Ask me.")
        assert badge(screen, conversation_id) == "attention"
        await new(screen)
        assert badge(screen, conversation_id) == "attention"
        activities = []
        screen.desk.library.activity.changed.connect(lambda id_, _title, activity: activities.append((id_, activity)))
        click(command(await dialog(screen), "Decline"))
        await until(lambda: not working(screen, conversation_id))
        assert activities == [(conversation_id, "working"), (conversation_id, "done")]
        assert badge(screen, conversation_id) == "unread"

    on_screen(work, ASKS, DONE)


def test_the_mark_stays_while_something_else_waits(on_screen):
    async def work(screen):
        await turn_on(screen)
        conversation_id = await ask(screen, "Ask me.")
        session = screen.engine._sessions[conversation_id]
        (approval,) = await until(lambda: session.approvals.open_approvals)
        session.approvals.answer(approval.approval_id, Deny())
        await until(lambda: not session.approvals.open_approvals)
        await screen.idle()
        assert badge(screen, conversation_id) == "attention"
        screen.conversation.stop()
        await until(lambda: not working(screen, conversation_id))

    on_screen(work, Turn(ToolUse(id="c1", name="raw__t0", input={}), ToolUse(id="c2", name="raw__t1", input={})))


def test_of_two_conversations_at_one_server_each_has_its_own_question(on_screen):
    async def work(screen):
        await turn_on(screen)
        first = await ask(screen, "The first.")
        request_dialog = await dialog(screen)
        await new(screen)
        second = await ask(screen, "The second.")
        requests = screen.desk.library.requests.waiting
        # The server may ask for either: its protocol does not say for which call.
        assert [request.request.conversation_id for request in requests] == [first, None]
        assert place(first, screen) in screen.words(request_dialog)
        assert stop_button(request_dialog).isVisible()
        screen.desk._mcp.elicitation.show_request(requests[1].id)
        assert not stop_button(request_dialog).isVisible()
        assert badge(screen, second) == "working"
        screen.desk._mcp.elicitation.show_request(requests[0].id)
        click(stop_button(request_dialog))
        await until(lambda: not working(screen, first))
        await until(lambda: [request.id for request in screen.desk.library.requests.waiting] == [requests[1].id])
        assert working(screen, second)
        screen.conversation.stop()
        await until(lambda: not working(screen, second))
        await until(lambda: not request_dialog.isVisible())

    on_screen(work, ASKS, ASKS)


def test_a_conversation_that_is_deleted_takes_its_question_along(on_screen):
    async def work(screen):
        await turn_on(screen)
        conversation_id = await ask(screen, "Ask me.")
        request_dialog = await dialog(screen)
        await new(screen)
        screen.desk.library.delete(conversation_id)
        await until(lambda: not request_dialog.isVisible())
        await screen.idle()
        assert screen.desk.library.requests.waiting == ()
        assert badge(screen, conversation_id) == ""

    on_screen(work, ASKS)


def test_a_question_outside_of_every_call_stops_nothing_and_marks_nothing(on_screen):
    async def work(screen):
        await turn_on(screen)
        conversation_id = await ask(screen, "Ask me.")
        request_dialog = await dialog(screen)
        handlers = screen.engine.consent_handlers
        screen.desk._tasks.start(handlers.elicit(ElicitationRequest("Other", "Well?", {"properties": {}})))
        await until(lambda: len(screen.desk.library.requests.waiting) == 2)
        screen.desk._mcp.elicitation.show_request(screen.desk.library.requests.waiting[1].id)
        assert not stop_button(request_dialog).isVisible()
        screen.conversation.stop()
        await until(lambda: not working(screen, conversation_id))
        assert request_dialog.isVisible()
        screen.desk.library.requests.close()
        await screen.idle()

    on_screen(work, ASKS)
