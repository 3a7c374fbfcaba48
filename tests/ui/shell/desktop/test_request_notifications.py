"""What servers ask while another program is in front: notifications, and the dialog once the program is in front."""

import asyncio
from dataclasses import replace

import pytest
from PySide6.QtGui import QWindow
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from desktop_agent.types.mcp import ElicitationAnswer, ElicitationRequest, SamplingModel, SamplingRequest
from tests.fakes.notification_server import notification_server
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from ui.approval.server_requests.request_dialog import ServerRequestDialog
from ui.shell import approvals
from ui.shell.desktop import request_notifications, waiting_notifications

FULL = ("actions", "body", "body-markup")
FORM = {"properties": {"name": {"type": "string", "title": "Name"}}}
ASKED = ElicitationRequest("Tickets", "Who travels?", FORM)
SAMPLING = SamplingRequest("Notes", (("user", "What is it?"),), None, 10, SamplingModel("Here", "m", "Model M"))


class Front:
    """Whether the program is in front, for all who ask."""

    def __init__(self, monkeypatch):
        self.is_active = False
        for module in (approvals, request_notifications, waiting_notifications):
            monkeypatch.setattr(module, "is_active", lambda: self.is_active)

    def come(self):
        self.is_active = True
        app = QApplication.instance()
        app.applicationStateChanged.emit(app.applicationState())


@pytest.fixture
def front(monkeypatch):
    return Front(monkeypatch)


def ask(screen, request=ASKED):
    handlers = screen.engine.consent_handlers
    answer = handlers.elicit(request) if isinstance(request, ElicitationRequest) else handlers.approve_sampling(request)
    return asyncio.create_task(answer)


def dialog(screen):
    return screen.find(ServerRequestDialog, "An MCP server asks")


def test_a_question_waits_behind_and_is_asked_when_the_window_comes(on_screen, bus, front):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            answer = ask(screen)
            await until(lambda: server.shown)
            number, title, text, _ = server.shown[0]
            assert title == "“Tickets” asks you to fill in a form"
            assert text == "The server says: Who travels?"
            assert server.shown[0][3][3::2] == ["Show", "Decline"]
            await until(lambda: server.expiries == [0])
            assert dialog(screen) is None
            front.come()
            await until(lambda: dialog(screen))
            await until(lambda: number in server.closed)
            assert not answer.done()
            screen.desk.library.requests.close()
            await answer

    on_screen(work)


def test_the_window_that_asks_calls_for_whoever_is_in_another_one(on_screen, front, monkeypatch):
    alerted = []
    monkeypatch.setattr(QWindow, "alert", lambda window, _ms: alerted.append(window))

    async def work(screen):
        front.is_active = True
        other_window = QWidget()
        other_window.show()
        other_window.activateWindow()
        await until(other_window.isActiveWindow)
        answer = ask(screen)
        await until(lambda: alerted)
        assert alerted == [screen.window.windowHandle()]
        assert dialog(screen).isVisible()
        screen.desk.library.requests.close()
        await answer
        other_window.close()

    on_screen(work)


@pytest.mark.parametrize(("request_", "refused"), [(ASKED, ElicitationAnswer("decline")), (SAMPLING, False)])
def test_it_is_refused_in_its_notification(on_screen, bus, front, request_, refused):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            answer = ask(screen, request_)
            await until(lambda: server.shown)
            server.click(server.shown[0][0], "refuse")
            assert await answer == refused
            await until(lambda: server.closed)
            assert dialog(screen) is None

    on_screen(work)


def test_a_click_shows_the_question_that_was_clicked(on_screen, bus, front):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            answers = [ask(screen), ask(screen, ElicitationRequest("Hotel", "How long?", FORM))]
            await until(lambda: len(server.shown) == 2)
            server.click(server.shown[1][0], "default")
            request_dialog = await until(lambda: dialog(screen))
            assert request_dialog.windowTitle() == "“Hotel” asks you to fill in a form"
            await until(lambda: screen.find(QPushButton, "Decline").isEnabled())
            screen.press("Decline")
            assert await answers[1] == ElicitationAnswer("decline")
            assert request_dialog.windowTitle() == "“Tickets” asks you to fill in a form"
            assert request_dialog.isVisible()
            screen.desk.library.requests.close()
            await answers[0]

    on_screen(work)


def test_of_what_the_server_says_there_is_a_line_that_is_no_markup(on_screen, bus, front):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            message = "Your\n\n<b>desktop</b> \u202easks " + "x" * 1_000
            answer = ask(screen, ElicitationRequest("A “very\n<i>long</i>” " + "name " * 15, message))
            await until(lambda: server.shown)
            _, title, text, _ = server.shown[0]
            assert title.startswith("“A 'very <i>long</i>' name")
            assert title.endswith("…” asks you to fill in a form")
            assert text.startswith("The server says: Your &lt;b&gt;desktop&lt;/b&gt; ⟨U+202E⟩asks x")
            assert text.endswith("x…")
            assert len(text) < 200
            screen.desk.library.requests.close()
            await answer

    on_screen(work)


def test_a_model_s_answer_names_the_model_and_none_of_the_words(on_screen, bus, front):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            answer = ask(screen, SAMPLING)
            await until(lambda: server.shown)
            assert server.shown[0][1:3] == ("“Notes” wants a model to answer", "Model M on Here would answer")
            screen.desk.library.requests.close()
            await answer

    on_screen(work)


def test_while_a_conversation_is_not_stored_the_desktop_learns_no_words(on_screen, bus, front):
    async def work(screen):
        screen.desk.library.new(in_memory=True)
        await screen.idle()
        with notification_server(bus, *FULL) as server:
            answer = ask(screen)
            await until(lambda: server.shown)
            assert server.shown[0][2] == "A question waits for your answer."
            screen.desk.library.requests.close()
            await answer
            screen.desk.library.close_unstored(screen.conversation.id)
            await screen.idle()

    on_screen(work)


@pytest.mark.parametrize("is_stored", [True, False])
def test_what_is_asked_for_a_stored_conversation_names_it_and_no_other(on_screen, bus, front, is_stored):
    async def work(screen):
        if not is_stored:
            screen.desk.library.new(in_memory=True)
            await screen.idle()
        screen.write("Plan it.")
        screen.press("Send")
        await until(lambda: screen.conversation.working)
        asking_id = screen.conversation.id
        screen.desk.library.new(in_memory=is_stored)
        await screen.idle()
        unstored_id = screen.conversation.id if is_stored else asking_id
        with notification_server(bus, *FULL) as server:
            answer = ask(screen, replace(ASKED, conversation_id=asking_id))
            await until(lambda: server.shown)
            words = "The server says: Who travels?\nIn the conversation “Plan it.”"
            assert server.shown[0][2] == (words if is_stored else "A question waits for your answer.")
            server.click(server.shown[0][0], "default")
            request_dialog = await until(lambda: dialog(screen))
            await until(lambda: screen.conversation.id == asking_id)
            assert not any(words.startswith("In the conversation") for words in screen.words(request_dialog))
            screen.desk.library.requests.close()
            await answer
        screen.conversation.stop()
        await screen.engine._sessions[asking_id].wait_idle()
        screen.desk.library.close_unstored(unstored_id)
        await screen.idle()

    on_screen(work, Turn(Wait(asyncio.Event())))


def test_one_server_does_not_fill_the_screen(on_screen, bus, front):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            answers = [ask(screen) for _ in range(5)]
            await until(lambda: len(server.shown) == 3)
            await screen.idle()
            assert len(server.shown) == 3
            server.click(server.shown[0][0], "refuse")
            await until(lambda: len(server.shown) == 4)
            screen.desk.library.requests.close()
            await asyncio.gather(*answers)
            await until(lambda: len(set(server.closed)) == 4)

    on_screen(work)
