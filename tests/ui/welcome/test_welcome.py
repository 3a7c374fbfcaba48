import sys
from dataclasses import dataclass
from unittest.mock import MagicMock

import pytest
from pydantic import SecretStr
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QStyle,
    QStyleOptionButton,
    QToolButton,
)
from shiboken6 import delete

from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import CLOUD_PROVIDERS, LOCAL_SERVERS, Endpoint, ModelInfo
from tests.fakes.pseudo_language import PseudoLanguage
from tests.ui.bridge.fake_opener import fake_opener
from ui.style.server_fields import StatusLine
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource
from ui.welcome.server_rows import TypedServer
from ui.welcome.welcome_page import WelcomePage


@dataclass
class Found:
    endpoint: Endpoint
    models: tuple[ModelInfo, ...] | None


class Driver:
    def __init__(self, qtbot):
        self.bot = qtbot
        self.facts = []
        servers, library = MagicMock(endpoints=()), MagicMock()
        servers.saved.id_for.return_value, servers.saved.find.return_value = "typed", None
        servers.connect_endpoint = self.connect
        servers.find_local = lambda: self.facts.append("find")
        library.new_demo = lambda: self.facts.append("demo")
        self.page = WelcomePage(ThemeSource(), servers, library)
        qtbot.addWidget(self.page)
        self.page.resize(800, 900)
        self.page.show()

    def connect(self, endpoint, key, *, session_only):
        typed = TypedServer(endpoint.base_url, endpoint.dialect, endpoint.mirrors, endpoint.models)
        self.facts.append((typed if endpoint.id == "typed" else endpoint.id, key, session_only))

    def part(self, kind, name):
        return next(each for each in self.page.findChildren(kind) if each.accessibleName() == name and each.isVisible())

    def click(self, name, kind=QPushButton):
        self.bot.mouseClick(self.part(kind, name), Qt.MouseButton.LeftButton)

    def is_in_view(self, part):
        viewport = self.page.viewport()
        return viewport.rect().contains(part.mapTo(viewport, part.rect().bottomRight()))

    @property
    def words(self):
        return [each.text() for each in self.page.findChildren(QLabel) if each.isVisible()]


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_running_servers_come_first_and_can_be_used(driver):
    assert any("Looking for model servers" in words for words in driver.words)
    driver.page.set_local_servers([Found(LOCAL_SERVERS[0], None), Found(LOCAL_SERVERS[1], (ModelInfo("m"),))])
    driver.bot.waitUntil(lambda: "not running" in driver.words)
    assert not any("Looking for model servers" in words for words in driver.words)
    assert driver.words.index("running, 1 model") < driver.words.index("not running")
    driver.click("Use LM Studio")
    assert driver.facts == [("lmstudio", None, False)]


def test_a_new_search_replaces_the_old_rows(driver):
    driver.page.set_local_servers([Found(LOCAL_SERVERS[0], ())])
    driver.click("Look again", QToolButton)
    driver.page.set_local_servers([Found(LOCAL_SERVERS[0], None)])
    assert driver.facts == ["find"]
    driver.bot.waitUntil(lambda: "not running" in driver.words)
    assert driver.words.count("Ollama") == 1


@pytest.mark.parametrize("endpoint", CLOUD_PROVIDERS, ids=lambda each: each.id)
def test_every_provider_takes_a_key(driver, endpoint):
    field = driver.part(QLineEdit, f"API key for {endpoint.title}")
    assert field.echoMode() == QLineEdit.EchoMode.Password
    driver.bot.keyClicks(field, "key")
    driver.click(f"Connect {endpoint.title}")
    assert driver.facts == [(endpoint.id, SecretStr("key"), False)]


def test_a_pasted_key_is_submitted(driver):
    QApplication.clipboard().setText("sk-a-long-enough-key")
    driver.part(QLineEdit, "API key for OpenAI").paste()
    driver.bot.waitUntil(lambda: bool(driver.facts))
    assert driver.facts == [("openai", SecretStr("sk-a-long-enough-key"), False)]
    assert "sk-a" not in repr(driver.facts)


def test_states_are_said_in_words(driver):
    field = driver.part(QLineEdit, "API key for OpenAI")
    field.setText("wrong")
    driver.page.set_endpoint_state("openai", "busy", "Asking…")
    assert "Asking…" in driver.words
    assert field.isReadOnly()
    driver.page.set_endpoint_state("openai", "error", Sentence("The key {how}.", {"how": "is wrong"}))
    assert "The key is wrong." in driver.words
    assert field.text() == "wrong"
    driver.page.set_endpoint_state("openai", "ok", "Connected.")
    assert field.text() == ""


def test_the_next_key_takes_the_place_of_a_refused_one(driver):
    field = driver.part(QLineEdit, "API key for OpenAI")
    driver.bot.keyClicks(field, "wrong")
    driver.click("Connect OpenAI")
    driver.page.set_endpoint_state("openai", "busy", "Asking…")
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    driver.page.set_endpoint_state("openai", "error", "The key is wrong.")
    assert QApplication.focusWidget() is field
    QApplication.clipboard().setText("right")
    field.paste()
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    assert driver.facts == [("openai", SecretStr(key), False) for key in ("wrong", "right")]


def test_the_key_for_an_address_keeps_the_keyboard_while_it_is_tried(driver):
    driver.part(QLineEdit, "Address of the server").setText("https://models.example/v1")
    field = driver.part(QLineEdit, "API key, if the server needs one")
    driver.bot.keyClicks(field, "wrong")
    driver.click("Connect this address")
    driver.page.set_endpoint_state("", "busy", "Asking…")
    driver.page.set_endpoint_state("", "error", "The key is wrong.")
    assert QApplication.focusWidget() is field
    assert field.selectedText() != ""


def test_without_a_keyring_the_key_can_stay_in_memory(driver):
    driver.bot.keyClicks(driver.part(QLineEdit, "API key for Groq"), "key")
    driver.page.set_endpoint_state("groq", "no_keyring", "There is no keyring.")
    driver.click("Keep it in memory until the program is closed")
    assert driver.facts == [("groq", SecretStr("key"), True)]


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("https://models.example/v1/", "https://models.example/v1"),
        ("localhost:8080/v1", "http://localhost:8080/v1"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("127.0.0.2", "http://127.0.0.2"),
        ("models.example/v1", "https://models.example/v1"),
    ],
)
def test_any_address(driver, typed, url):
    field = driver.part(QLineEdit, "Address of the server")
    field.setText(typed)
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    assert driver.facts == [(TypedServer(url, "openai-chat"), None, False)]


def test_an_address_with_a_key(driver):
    driver.part(QLineEdit, "Address of the server").setText("https://models.example/v1")
    driver.part(QLineEdit, "API key, if the server needs one").setText("a long key indeed")
    driver.click("Connect this address")
    server = TypedServer("https://models.example/v1", "openai-chat")
    assert driver.facts == [(server, SecretStr("a long key indeed"), False)]


def test_an_address_may_speak_another_dialect_and_have_mirrors(driver):
    driver.part(QLineEdit, "Address of the server").setText("https://models.example")
    speaks = driver.part(QComboBox, "API of the server")
    assert [speaks.itemText(row) for row in range(speaks.count())] == [
        "OpenAI Chat Completions", "OpenAI Responses", "Anthropic Messages", "Google Gemini",
    ]  # fmt: skip
    speaks.setCurrentIndex(2)
    driver.click("Further addresses…")
    mirrors = driver.part(QPlainTextEdit, "Further addresses")
    assert any("with the same key" in words for words in driver.words)
    mirrors.setPlainText("https://one.example/\n\nftp://two")
    driver.click("Connect this address")
    assert driver.facts == []
    assert any("“ftp://two” is not a web address" in words for words in driver.words)
    mirrors.setPlainText("https://one.example/\nhttps://one.example\n two.example ")
    driver.click("Connect this address")
    wanted = TypedServer("https://models.example", "anthropic", ("https://one.example", "https://two.example"))
    assert driver.facts == [(wanted, None, False)]


@pytest.mark.parametrize("width", [800, 360])
def test_what_is_said_of_a_typed_server_moves_nothing(driver, width):
    driver.page.resize(width, 300)
    connect = driver.part(QPushButton, "Connect this address")
    bar = driver.page.verticalScrollBar()

    def place():
        """Return where it is once nothing is laid out any more."""
        places = []
        while len(places) < 3 or len(set(places[-3:])) > 1:
            QApplication.processEvents()
            places.append(connect.mapTo(driver.page, connect.rect().topLeft()).toTuple())
        return places[-1]

    for state, words in (("busy", "Asking…"), ("error", "It is not there. " * 20), ("busy", "Asking…")):
        place()
        # They read what is below.
        bar.setValue(bar.maximum())
        before = place()
        driver.page.set_endpoint_state("typed", state, words)
        assert place() == before


@pytest.mark.parametrize("typed", ["ftp://x", "[models", "https://", "file:///etc/passwd"])
def test_what_is_no_address_is_said(driver, typed):
    driver.part(QLineEdit, "Address of the server").setText(typed)
    driver.click("Connect this address")
    assert driver.facts == []
    assert any("not a web address" in words for words in driver.words)


def test_the_state_of_the_typed_address_stands_under_it(driver):
    driver.page.set_endpoint_state("custom-1", "error", "Nobody answered.")
    assert "Nobody answered." in driver.words


def test_a_locked_keyring_is_no_dead_end_for_a_typed_address(driver):
    driver.part(QLineEdit, "Address of the server").setText("https://models.example/v1")
    driver.part(QLineEdit, "API key, if the server needs one").setText("a long key indeed")
    driver.click("Connect this address")
    server, key = TypedServer("https://models.example/v1", "openai-chat"), SecretStr("a long key indeed")
    assert driver.facts.pop() == (server, key, False)
    driver.page.set_endpoint_state("custom:x", "busy", "Asking…")
    driver.page.set_endpoint_state("custom:x", "no_keyring", "The keyring is locked.")
    assert "The keyring is locked." in driver.words
    driver.click("Connect this address")  # it is unlocked by now
    assert driver.facts.pop() == (server, key, False)
    driver.click("Keep it in memory until the program is closed")
    assert driver.facts == [(server, key, True)]
    driver.page.set_endpoint_state("custom:x", "ok", "Connected.")
    assert driver.part(QLineEdit, "API key, if the server needs one").text() == ""


def test_the_demo_is_plainly_a_demo(driver):
    assert any("offline demo" in words and "no real model" in words for words in driver.words)
    driver.click("Try the demo")
    assert driver.facts == ["demo"]


def test_who_comes_from_a_conversation_to_connect_a_model_is_not_led_to_the_demo(driver):
    demo = driver.part(QPushButton, "Try the demo")
    driver.page.set_back_button(is_there=True)
    assert not demo.isVisible()
    driver.page.set_back_button(is_there=False)
    assert demo.isVisible()


def test_a_link_beside_the_servers_of_this_computer_leads_to_the_address_of_any_other(driver):
    driver.page.resize(800, 500)
    address, connect = driver.part(QLineEdit, "Address of the server"), driver.part(QPushButton, "Connect this address")
    assert not driver.is_in_view(address)
    driver.click("Any other server…")
    assert driver.page.focusWidget() is address
    driver.bot.waitUntil(lambda: driver.is_in_view(address))
    assert driver.is_in_view(connect)


def test_a_page_that_is_opened_again_says_nothing_of_earlier_connections(driver):
    driver.page.set_endpoint_state("typed", "ok", "Connected.")
    driver.page.set_endpoint_state("openai", "error", "The key was not accepted.")
    driver.page.set_endpoint_state("anthropic", "busy", "Connecting…")
    driver.page.resize(700, 400)
    bar = driver.page.verticalScrollBar()
    bar.setValue(bar.maximum())
    assert bar.value() > 0
    driver.page.begin_anew()
    assert bar.value() == 0
    said = [line.text for line in driver.page.findChildren(StatusLine) if line.isVisible()]
    assert said == ["Connecting…"]


@pytest.mark.parametrize("field", ["Address of the server", "API key for xAI"])
def test_what_became_of_a_connection_is_scrolled_into_sight(driver, field):
    driver.page.resize(800, 400)
    driver.page.activateWindow()
    driver.part(QLineEdit, field).setFocus()
    driver.bot.waitUntil(lambda: driver.is_in_view(driver.part(QLineEdit, field)))
    driver.page.set_endpoint_state("xai" if "xAI" in field else "custom:x", "error", "Nobody answered. " * 20)
    said = next(line for line in driver.page.findChildren(StatusLine) if line.isVisible())
    driver.bot.waitUntil(lambda: driver.is_in_view(said))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="xdg-open is Linux's")
def test_a_page_with_keys_that_nothing_opens_is_said_in_its_row(driver, monkeypatch, tmp_path):
    opened = fake_opener(tmp_path, monkeypatch, 3)
    openai = next(each for each in CLOUD_PROVIDERS if each.id == "openai")
    driver.click(f"Get a key for {openai.title}")
    driver.bot.waitUntil(lambda: any("could not be opened" in each for each in driver.words))
    assert opened() == [openai.key_page]


@pytest.fixture
def longer_words(qapp):
    language = PseudoLanguage()
    qapp.installTranslator(language)
    yield
    qapp.removeTranslator(language)


@pytest.mark.parametrize(("zoom", "width", "words"), [(229, 460, ""), (100, 548, "longer_words")])
def test_in_a_narrow_window_nothing_goes_sideways(qtbot, qapp, request, zoom, width, words):
    if words:
        request.getfixturevalue(words)
    themes = ThemeSource(zoom=zoom)
    before = qapp.styleSheet()
    apply_theme(qapp, themes)
    try:
        welcome = WelcomePage(themes, MagicMock(), MagicMock())
        qtbot.addWidget(welcome)
        welcome.resize(width, 600)
        welcome.show()
        welcome.set_endpoint_state(CLOUD_PROVIDERS[0].id, "no_keyring")
        qtbot.waitUntil(lambda: welcome.horizontalScrollBar().maximum() == 0)
    finally:
        apply_theme(qapp, ThemeSource())
        qapp.setStyleSheet(before)


def test_a_link_below_others_begins_where_they_do(qtbot, qapp):
    before = qapp.styleSheet()
    apply_theme(qapp, ThemeSource())
    try:
        welcome = WelcomePage(ThemeSource(), MagicMock(), MagicMock())
        qtbot.addWidget(welcome)
        welcome.show()
        link = next(each for each in welcome.findChildren(QPushButton) if each.text() == "Run a model file…")
        option = QStyleOptionButton()
        option.initFrom(link)
        contents = link.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, link)
        # The line around it when it has the keyboard.
        assert contents.left() == 1
    finally:
        apply_theme(qapp, ThemeSource())
        qapp.setStyleSheet(before)


def test_a_page_that_is_gone_follows_no_theme(qtbot):
    themes = ThemeSource()
    page = WelcomePage(themes, MagicMock(), MagicMock())
    delete(page)
    with qtbot.capture_exceptions() as raised:
        themes.changed.emit()
    assert raised == []


def test_one_thing_is_suggested_the_demo_where_no_server_here_has_a_model(driver):
    def suggested():
        buttons = driver.page.findChildren(QPushButton)
        return [each.accessibleName() for each in buttons if each.property("kind") == "primary"]

    assert suggested() == ["Try the demo"]
    driver.page.set_local_servers([Found(LOCAL_SERVERS[0], ()), Found(LOCAL_SERVERS[1], None)])
    assert suggested() == ["Try the demo"]
    driver.page.set_local_servers([Found(server, (ModelInfo("m"),)) for server in LOCAL_SERVERS[:2]])
    assert suggested() == ["Use Ollama"]


def test_what_is_beside_the_titles_begins_at_one_edge(driver):
    driver.page.set_local_servers([Found(LOCAL_SERVERS[0], (ModelInfo("m"),))])
    fields = [driver.part(QLineEdit, f"API key for {each.title}") for each in CLOUD_PROVIDERS]
    driver.bot.waitUntil(lambda: len({each.mapTo(driver.page, each.rect().topLeft()).x() for each in fields}) == 1)


def test_the_page_scrolls_to_what_assistive_technology_gives_the_keyboard(driver):
    driver.page.resize(800, 300)
    driver.page.activateWindow()
    last = driver.part(QLineEdit, "Address of the server")
    last.setFocus(Qt.FocusReason.OtherFocusReason)
    viewport = driver.page.viewport()
    driver.bot.waitUntil(lambda: viewport.rect().contains(last.mapTo(viewport, last.rect().bottomRight())))
