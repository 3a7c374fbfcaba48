"""The model, how it reasons and what it costs, in the whole window."""

import asyncio
import sys

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QToolButton

from desktop_agent.conversation.items import AnswerItem, UserItem
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.types.errors import ConversationInUse, RemedyAction
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.providers import Capabilities, ModelInfo, ReasoningDisabled, ReasoningEffort
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.frame.patience import PATIENCE
from tests.ui.bridge.fake_opener import fake_opener

MAX = ReasoningEffort(level="max")
ABLE = Capabilities(reasoning_modes=frozenset({"disabled", "effort"}), efforts=("low", "max"))
MODELS = (
    ModelInfo("m", None, ABLE),
    ModelInfo("n", None, Capabilities(reasoning_modes=frozenset({"effort"}), efforts=("low",))),
    ModelInfo("plain", None, Capabilities(reasoning=False)),
)
SPENT = UsageUpdate(Usage(input_tokens=100, output_tokens=5, total_tokens=105, cost=0.25))


async def begin(screen, *turns):
    screen.provider = ScriptedProvider(*turns, models=MODELS)
    screen.engine.connections._providers["scripted"] = screen.provider
    screen.desk.servers.refresh_models(again=True)
    await until(lambda: screen.desk.servers.capabilities("scripted", "m") == ABLE)
    await screen.idle()


def switch(screen):
    return screen.window.page.models.reasoning


def figures(screen):
    meter = screen.find(QPushButton, "Tokens and cost")
    return meter.text() if meter is not None else ""


def test_the_choice_goes_with_the_request_and_survives(on_screen, tmp_path):
    async def choose(screen):
        await begin(screen, Turn(ContentDelta("Hi")))
        switch(screen).reasoning_chosen.emit(MAX)
        assert screen.find(QToolButton, "Reasoning").accessibleDescription() == "Maximum"
        await screen.say("Hello")
        assert screen.provider.requests[-1].config.reasoning == MAX

    async def check(screen):
        await begin(screen, Turn(ContentDelta("Hi")))
        assert screen.conversation.reasoning == MAX
        await screen.say("Again")
        assert screen.provider.requests[-1].config.reasoning == MAX
        screen.action("New conversation").trigger()
        await screen.idle()
        assert screen.conversation.reasoning is None

    on_screen(choose, folder=tmp_path / "data")
    on_screen(check, folder=tmp_path / "data")


def test_a_choice_that_the_next_model_lacks_falls_back_and_says_so(on_screen):
    async def work(screen):
        await begin(screen)
        switch(screen).reasoning_chosen.emit(MAX)
        screen.window.page.models.picker.model_chosen.emit("scripted", "n")
        await screen.idle()
        assert screen.conversation.reasoning is None
        assert screen.find(QToolButton, "Reasoning").accessibleDescription() == "Default"
        assert any("“Maximum”" in words and "Default" in words for words in screen.words(screen.banners))
        switch(screen).reasoning_chosen.emit(ReasoningEffort(level="low"))
        screen.window.page.models.picker.model_chosen.emit("scripted", "m")
        await screen.idle()
        assert screen.conversation.reasoning == ReasoningEffort(level="low")
        screen.window.page.models.picker.model_chosen.emit("scripted", "plain")
        await screen.idle()
        assert screen.conversation.reasoning is None
        assert screen.find(QToolButton, "Reasoning") is None

    on_screen(work)


def test_a_new_conversation_begins_as_the_preferences_say(on_screen):
    async def work(screen):
        await begin(screen)
        preferences = screen.engine.preferences
        models = preferences.models.model_copy(update={"reasoning": "off"})
        await screen.engine.change_preferences(preferences.model_copy(update={"models": models}))
        screen.action("New conversation").trigger()
        await screen.idle()
        assert screen.conversation.reasoning == ReasoningDisabled()

    on_screen(work)


def test_an_error_that_no_model_is_chosen_leads_to_the_models_and_is_gone_then(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        page = screen.window.page
        page.models.choose_model("scripted", "")
        await screen.say("Hello")
        _, error, _ = notices = list(screen.conversation.transcript)
        assert error.action is RemedyAction.CHOOSE_MODEL
        page.transcript.remedy_requested.emit(notices[2].id, notices[2].action)
        await until(lambda: error.times == 2 and not screen.conversation.working)
        assert list(screen.conversation.transcript)[:2] == notices[:2]
        assert len(screen.conversation.transcript) == 3
        page.transcript.remedy_requested.emit(error.id, error.action)
        assert page.models.picker._popup.isVisible()
        page.models.picker._popup.hide()
        page.models.choose_model("scripted", "m")
        prompt, offer = screen.conversation.transcript
        assert (prompt, offer.action) == (notices[0], RemedyAction.RETRY)
        page.transcript.remedy_requested.emit(offer.id, offer.action)
        await until(lambda: [type(item) for item in screen.conversation.transcript] == [UserItem, AnswerItem])

    on_screen(work, Turn(ContentDelta("Hi.")))


def test_the_menu_opens_by_keyboard(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        await begin(screen)
        action = screen.action("Choose reasoning")
        assert action.shortcut().toString() == "Ctrl+Shift+R"
        action.trigger()
        menu = switch(screen)._menu
        assert menu.isVisible()
        QTest.keyClick(menu, Qt.Key.Key_Escape)

    on_screen(work)


def test_the_cost_of_a_conversation_grows_and_is_there_again(on_screen, tmp_path):
    async def spend(screen):
        await begin(screen, Turn(ContentDelta("Hi"), SPENT), Turn(ContentDelta("Ho"), SPENT))
        await screen.say("Hello")
        await until(lambda: figures(screen) == "105 tokens · $0.25")
        await screen.say("Hello again")
        await until(lambda: figures(screen) == "105 tokens · $0.50")

    async def check(screen):
        await until(lambda: figures(screen) == "105 tokens · $0.50")

    on_screen(spend, folder=tmp_path / "data")
    on_screen(check, folder=tmp_path / "data")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="xdg-open is Linux's")
def test_a_link_opens_in_the_browser_and_nothing_else_does(on_screen, monkeypatch, tmp_path):
    opened = fake_opener(tmp_path, monkeypatch, 0)

    async def work(screen):
        for target in ("file:///etc/passwd", "javascript:x", "https://a.example/b", "mailto:me@a.example"):
            screen.window.page.transcript.link_activated.emit(target)
        await until(lambda: not screen.window.page._opener._running)
        assert sorted(opened()) == ["https://a.example/b", "mailto:me@a.example"]
        assert screen.words(screen.banners) == []

    on_screen(work)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="xdg-open is Linux's")
def test_a_link_that_nothing_opens_is_said(on_screen, monkeypatch, tmp_path):
    fake_opener(tmp_path, monkeypatch, 3)

    async def work(screen):
        screen.window.page.transcript.link_activated.emit("https://a.example/b")
        await until(lambda: any("“https://a.example/b” could not be opened." in text for text in screen.words()))

    on_screen(work)


@pytest.mark.parametrize("can_open", [True, False])
def test_without_xdg_open_qt_opens_it_or_it_is_said(on_screen, monkeypatch, can_open):
    urls = []

    def open_url(url):
        urls.append(url.toString())
        return can_open

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    monkeypatch.setattr("ui.bridge.desktop.opening.shutil.which", lambda _: None)

    async def work(screen):
        screen.window.page.transcript.link_activated.emit("https://a.example/b")
        assert urls == ["https://a.example/b"]
        assert any("could not be opened" in text for text in screen.words()) is not can_open

    on_screen(work)


def test_settings_lead_to_the_welcome_page(on_screen):
    async def work(screen):
        screen.desk._settings_presenter.show()
        dialog = screen.desk._settings_presenter._dialog
        await screen.idle()
        dialog.show_page("providers")
        dialog.providers.connect_requested.emit()
        assert dialog.isHidden()
        assert screen.window._welcome.isVisible()
        await screen.idle()

    on_screen(work)


def test_what_another_process_works_in_is_shown_and_not_changed(on_screen, tmp_path):
    async def work(screen):
        await begin(screen, Turn(ContentDelta("Hi")), Turn(ContentDelta("Ho")))
        await screen.say("First")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.say("Second")
        second = screen.conversation.id
        # As good as another process: locks of its own, connections of its own.
        other = await Engine.open(tmp_path / "data", RunDefaults(program="ask"))
        session = await let_go(other, first)
        session.change_record(reasoning=MAX, model="plain")
        await session.flush()
        screen.write("for the second")
        await until(lambda: screen.kept_draft() == "for the second")

        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        assert screen.conversation.held_by is not None
        assert "desktop-agent ask" in screen.editor.accessibleDescription()
        await until(lambda: screen.kept_draft() == "")
        assert screen.editor.toPlainText() == ""
        assert screen.find(QToolButton, "Reasoning") is None or not switch(screen).isEnabled()
        # By the palette.
        screen.window.page.models.choose_model("scripted", "n")
        await until(lambda: any("desktop-agent ask" in words for words in screen.words(screen.banners)))
        assert (session.record.model, session.record.reasoning) == ("plain", MAX)

        screen.desk.library.open(second)
        await until(lambda: screen.editor.toPlainText() == "for the second")
        assert screen.editor.accessibleDescription() == ""

        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        assert screen.conversation.held_by is not None
        await other.close()
        await until(lambda: screen.conversation.held_by is None)
        assert screen.editor.accessibleDescription() == ""

    on_screen(work, folder=tmp_path / "data")


async def let_go(engine, conversation_id):
    """Return the conversation, once the window has released it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await engine.session(conversation_id)
            except ConversationInUse:
                await asyncio.sleep(0.01)
