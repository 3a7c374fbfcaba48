"""What a real MCP server asks, answered in the window."""

import asyncio
import json

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QComboBox, QDialog, QLineEdit, QPlainTextEdit, QPushButton

from desktop_agent.types.mcp import ElicitationRequest
from desktop_agent.types.provider_events import ContentDelta
from tests.desktop_agent.mcp.reference_servers import node_server
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from tests.ui.shell.mcp.everything import TITLE, calls, command, dialog, result, turn_on

DONE = Turn(ContentDelta("done"))


@pytest.fixture(autouse=True)
def server_is_there():
    """Skip where it cannot be had before the window opens: looking takes longer than a window may wait."""
    node_server("everything")


def click(button):
    assert button.isEnabled()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def texts(inside):
    return [editor.toPlainText() for editor in inside.findChildren(QPlainTextEdit) if editor.isVisible()]


def test_a_form_goes_from_the_server_to_the_person_and_back(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.write("Ask me.")
        screen.press("Send")
        form = await dialog(screen)
        assert form.isModal()
        assert any(TITLE in text for text in screen.words(form))
        fields = {field.accessibleName(): field for field in form.findChildren(QLineEdit)}
        name, email = fields["String"], fields["String with email format"]
        assert name.hasFocus()
        assert not command(form, "Send").isEnabled()
        QTest.keyClicks(name, "Ada")
        assert command(form, "Send").isEnabled()
        QTest.keyClicks(email, "ada at home")
        assert not command(form, "Send").isEnabled()
        assert any("e-mail address" in text for text in screen.words(form))
        email.selectAll()
        QTest.keyClicks(email, "ada@example.org")
        fields["Integer"].selectAll()
        QTest.keyClicks(fields["Integer"], "7")
        instruments = {box.accessibleName(): box for box in form.findChildren(QCheckBox)}
        instruments["Untitled Multiple Select Enum: Piano"].click()
        hero = next(menu for menu in form.findChildren(QComboBox) if menu.accessibleName().startswith("Titled Single"))
        hero.setCurrentIndex(hero.findText("Wonder Woman"))
        click(command(form, "Send"))
        answer_text = await result(screen)
        content = json.loads(answer_text.partition("Raw result: ")[2])["content"]
        assert content["name"] == "Ada"
        assert content["email"] == "ada@example.org"
        assert content["integer"] == 7
        assert content["number"] == 3.14
        assert content["check"] is False
        assert content["untitledMultipleSelectEnum"] == ["Guitar", "Piano"]
        assert content["titledSingleSelectEnum"] == "hero-3"
        assert content["firstLine"] == "It was a dark and stormy night."
        assert "homepage" not in content
        assert not form.isVisible()

    on_screen(work, calls("trigger-elicitation-request"), DONE)


@pytest.mark.parametrize(("way", "outcome"), [("Decline", "declined"), ("Esc", "cancel")])
def test_a_form_is_declined_or_left(on_screen, way, outcome):
    async def work(screen):
        await turn_on(screen)
        screen.write("Ask me.")
        screen.press("Send")
        form = await dialog(screen)
        if way == "Esc":
            QTest.keyClick(form, Qt.Key.Key_Escape)
        else:
            click(command(form, way))
        assert outcome in (await result(screen)).lower()

    on_screen(work, calls("trigger-elicitation-request"), DONE)


def test_stop_takes_the_question_away(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.write("Ask me.")
        screen.press("Send")
        form = await dialog(screen)
        stop = next(button for button in form.findChildren(QPushButton) if button.accessibleName() == "Stop the agent")
        click(stop)
        await until(lambda: not form.isVisible())
        await until(lambda: not screen.conversation.working)
        assert screen.desk.library.requests.waiting == ()
        await screen.engine._sessions[screen.conversation.id].wait_idle()

    on_screen(work, calls("trigger-elicitation-request"))


def test_a_model_answers_once_the_person_agreed_twice(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.write("Let it ask.")
        screen.press("Send")
        request_dialog = await dialog(screen)
        assert any("What is it?" in text for text in texts(request_dialog))
        assert len(screen.provider.requests) == 1
        QTest.keyClick(request_dialog, Qt.Key.Key_A)
        await until(lambda: len(screen.provider.requests) == 2)
        assert screen.provider.requests[1].tools == ()
        assert screen.provider.requests[1].config.max_tokens == 10
        request_dialog = await dialog(screen)
        await until(lambda: "forty-two" in texts(request_dialog))
        assert not any(
            button.text() == "Allow once" for button in request_dialog.findChildren(QPushButton) if button.isVisible()
        )
        QTest.keyClick(request_dialog, Qt.Key.Key_S)
        assert "forty-two" in await result(screen)

    asks = calls("trigger-sampling-request", prompt="What is it?", maxTokens=10)
    on_screen(work, asks, Turn(ContentDelta("forty-two")), DONE)


@pytest.mark.parametrize("is_denied", [True, False])
def test_the_server_hears_nothing_of_what_the_person_keeps(on_screen, is_denied):
    async def work(screen):
        await turn_on(screen)
        screen.write("Let it ask.")
        screen.press("Send")
        request_dialog = await dialog(screen)
        if not is_denied:
            click(command(request_dialog, "Allow once"))
            await until(lambda: request_dialog.isVisible() and "forty-two" in texts(request_dialog))
            request_dialog = await dialog(screen)
        click(command(request_dialog, "Deny" if is_denied else "Do not send"))
        text = await result(screen)
        assert "forty-two" not in text
        assert "did not agree" in text

    asks = calls("trigger-sampling-request", prompt="What is it?", maxTokens=10)
    on_screen(work, asks, *(() if is_denied else (Turn(ContentDelta("forty-two")),)), DONE)


def test_stop_ends_the_model_that_answers_for_a_server(on_screen):
    reached = asyncio.Event()

    async def work(screen):
        await turn_on(screen)
        screen.write("Let it ask.")
        screen.press("Send")
        click(command(await dialog(screen), "Allow once"))
        await reached.wait()
        screen.press("Stop")
        await until(lambda: screen.provider.closed_early == 1)
        await until(lambda: not screen.conversation.working)
        await screen.engine._sessions[screen.conversation.id].wait_idle()

    asks = calls("trigger-sampling-request", prompt="What is it?", maxTokens=10)
    on_screen(work, asks, Turn(Wait(asyncio.Event(), reached)))


class Browser(QObject):
    """A fake of the person's browser."""

    def __init__(self):
        super().__init__()
        self.opened = []

    @Slot(QUrl)
    def open(self, url):
        self.opened.append(url.toString())


@pytest.fixture
def browser(monkeypatch):
    monkeypatch.setattr("ui.bridge.desktop.opening.shutil.which", lambda _: None)
    fake_browser = Browser()
    QDesktopServices.setUrlHandler("https", fake_browser, "open")
    yield fake_browser
    QDesktopServices.unsetUrlHandler("https")


def test_a_page_opens_in_the_browser_at_a_click_and_done_is_told(on_screen, browser):
    address = "https://example.org/sign-in?state=1"

    async def work(screen):
        request = ElicitationRequest("S", "Sign in.", {}, address)
        answer = asyncio.create_task(screen.engine.consent_handlers.elicit(request))
        request_dialog = await dialog(screen)
        assert browser.opened == []
        click(command(request_dialog, "Open the page"))
        assert browser.opened == [address]
        assert not answer.done()
        click(command(request_dialog, "I am done"))
        assert (await answer).action == "accept"

    on_screen(work)


def test_a_window_that_closes_answers_with_cancel(on_screen):
    actions = []

    async def work(screen):
        async def ask():
            handlers = screen.engine.consent_handlers
            actions.append((await handlers.elicit(ElicitationRequest("S", "Well?", {"properties": {}}))).action)
            actions.append((await handlers.elicit(ElicitationRequest("S", "Once more?", {"properties": {}}))).action)

        task = asyncio.create_task(ask())
        await until(lambda: screen.find(QDialog, "An MCP server asks"))
        screen.desk.library.requests.close()
        await task

    on_screen(work)
    assert actions == ["cancel", "cancel"]
