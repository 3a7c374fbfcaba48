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
    return [each.toPlainText() for each in inside.findChildren(QPlainTextEdit) if each.isVisible()]


def test_a_form_goes_from_the_server_to_the_person_and_back(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.write("Ask me.")
        screen.press("Send")
        shown = await dialog(screen)
        assert shown.isModal()
        assert any(TITLE in each for each in screen.words(shown))
        fields = {each.accessibleName(): each for each in shown.findChildren(QLineEdit)}
        name, email = fields["String"], fields["String with email format"]
        assert name.hasFocus()
        assert not command(shown, "Send").isEnabled()
        QTest.keyClicks(name, "Ada")
        assert command(shown, "Send").isEnabled()
        QTest.keyClicks(email, "ada at home")
        assert not command(shown, "Send").isEnabled()
        assert any("e-mail address" in each for each in screen.words(shown))
        email.selectAll()
        QTest.keyClicks(email, "ada@example.org")
        fields["Integer"].selectAll()
        QTest.keyClicks(fields["Integer"], "7")
        instruments = {each.accessibleName(): each for each in shown.findChildren(QCheckBox)}
        instruments["Untitled Multiple Select Enum: Piano"].click()
        hero = next(each for each in shown.findChildren(QComboBox) if each.accessibleName().startswith("Titled Single"))
        hero.setCurrentIndex(hero.findText("Wonder Woman"))
        click(command(shown, "Send"))
        said = await result(screen)
        sent = json.loads(said.partition("Raw result: ")[2])["content"]
        assert sent["name"] == "Ada"
        assert sent["email"] == "ada@example.org"
        assert sent["integer"] == 7
        assert sent["number"] == 3.14
        assert sent["check"] is False
        assert sent["untitledMultipleSelectEnum"] == ["Guitar", "Piano"]
        assert sent["titledSingleSelectEnum"] == "hero-3"
        assert sent["firstLine"] == "It was a dark and stormy night."
        assert "homepage" not in sent
        assert not shown.isVisible()

    on_screen(work, calls("trigger-elicitation-request"), DONE)


@pytest.mark.parametrize(("how", "said"), [("Decline", "declined"), ("Esc", "cancel")])
def test_a_form_is_declined_or_left(on_screen, how, said):
    async def work(screen):
        await turn_on(screen)
        screen.write("Ask me.")
        screen.press("Send")
        shown = await dialog(screen)
        if how == "Esc":
            QTest.keyClick(shown, Qt.Key.Key_Escape)
        else:
            click(command(shown, how))
        assert said in (await result(screen)).lower()

    on_screen(work, calls("trigger-elicitation-request"), DONE)


def test_stop_takes_the_question_away(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.write("Ask me.")
        screen.press("Send")
        shown = await dialog(screen)
        stop = next(each for each in shown.findChildren(QPushButton) if each.accessibleName() == "Stop the agent")
        click(stop)
        await until(lambda: not shown.isVisible())
        await until(lambda: not screen.conversation.working)
        assert screen.desk._mcp._requests.waiting == ()
        await screen.engine._sessions[screen.conversation.id].wait_idle()

    on_screen(work, calls("trigger-elicitation-request"))


def test_a_model_answers_once_the_person_agreed_twice(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.write("Let it ask.")
        screen.press("Send")
        shown = await dialog(screen)
        assert any("What is it?" in each for each in texts(shown))
        assert len(screen.provider.requests) == 1
        QTest.keyClick(shown, Qt.Key.Key_A)
        await until(lambda: len(screen.provider.requests) == 2)
        assert screen.provider.requests[1].tools == ()
        assert screen.provider.requests[1].config.max_tokens == 10
        shown = await dialog(screen)
        await until(lambda: "forty-two" in texts(shown))
        assert not any(each.text() == "Allow once" for each in shown.findChildren(QPushButton) if each.isVisible())
        QTest.keyClick(shown, Qt.Key.Key_S)
        assert "forty-two" in await result(screen)

    asks = calls("trigger-sampling-request", prompt="What is it?", maxTokens=10)
    on_screen(work, asks, Turn(ContentDelta("forty-two")), DONE)


@pytest.mark.parametrize("at_once", [True, False])
def test_the_server_hears_nothing_of_what_the_person_keeps(on_screen, at_once):
    async def work(screen):
        await turn_on(screen)
        screen.write("Let it ask.")
        screen.press("Send")
        shown = await dialog(screen)
        if not at_once:
            click(command(shown, "Allow once"))
            await until(lambda: shown.isVisible() and "forty-two" in texts(shown))
            shown = await dialog(screen)
        click(command(shown, "Deny" if at_once else "Do not send"))
        said = await result(screen)
        assert "forty-two" not in said
        assert "did not agree" in said

    asks = calls("trigger-sampling-request", prompt="What is it?", maxTokens=10)
    on_screen(work, asks, *(() if at_once else (Turn(ContentDelta("forty-two")),)), DONE)


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
    """Stands where the person's browser would be."""

    def __init__(self):
        super().__init__()
        self.opened = []

    @Slot(QUrl)
    def open(self, url):
        self.opened.append(url.toString())


@pytest.fixture
def browser(monkeypatch):
    monkeypatch.setattr("ui.bridge.desktop.opening.shutil.which", lambda _: None)
    made = Browser()
    QDesktopServices.setUrlHandler("https", made, "open")
    yield made
    QDesktopServices.unsetUrlHandler("https")


def test_a_page_opens_in_the_browser_at_a_click_and_done_is_told(on_screen, browser):
    address = "https://example.org/sign-in?state=1"

    async def work(screen):
        request = ElicitationRequest("S", "Sign in.", {}, address)
        asking = asyncio.create_task(screen.engine.consent_handlers.elicit(request))
        shown = await dialog(screen)
        assert browser.opened == []
        click(command(shown, "Open the page"))
        assert browser.opened == [address]
        assert not asking.done()
        click(command(shown, "I am done"))
        assert (await asking).action == "accept"

    on_screen(work)


def test_a_window_that_closes_answers_with_cancel(on_screen):
    heard = []

    async def work(screen):
        async def ask():
            people = screen.engine.consent_handlers
            heard.append((await people.elicit(ElicitationRequest("S", "Well?", {"properties": {}}))).action)
            heard.append((await people.elicit(ElicitationRequest("S", "Once more?", {"properties": {}}))).action)

        asking = asyncio.create_task(ask())
        await until(lambda: screen.find(QDialog, "An MCP server asks"))
        screen.desk._mcp.close()
        await asking

    on_screen(work)
    assert heard == ["cancel", "cancel"]
