import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLineEdit, QListView, QMenu, QPushButton, QToolButton

from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import (
    CLOUD_PROVIDERS,
    DEMO_ENDPOINT,
    DEMO_MODEL,
    LOCAL_SERVERS,
    Capabilities,
    Endpoint,
    ModelInfo,
    Price,
)
from ui.composer.pickers import ModelPicker, WorkspacePicker, model_rows
from ui.style.list_rows import ResultModel, RowRole
from ui.style.theme import ThemeSource


@dataclass
class Group:
    endpoint: Endpoint
    models: tuple[ModelInfo, ...] = ()
    problem: Sentence | None = None


CLOUD = {provider.id: provider for provider in CLOUD_PROVIDERS}
GROUPS = [
    Group(LOCAL_SERVERS[0], (ModelInfo("llama:8b"), ModelInfo("qwen-vl", None, Capabilities(images=True)))),
    Group(CLOUD["openai"], (ModelInfo("gpt-9", "GPT Nine", Capabilities(context_window=400_000)),)),
    Group(CLOUD["openrouter"], (), Sentence("The API key was not accepted.")),
]


class Driver:
    def __init__(self, qtbot, qt_messages):
        self.messages = qt_messages
        self.bot = qtbot
        self.picker = ModelPicker(ThemeSource())
        qtbot.addWidget(self.picker)
        self.picker.show()
        self.chosen = []
        self.picker.model_chosen.connect(lambda *args: self.chosen.append(args))
        self.picker.set_models(GROUPS)

    def open(self):
        # The offscreen platform says so of every popup.
        self.messages.expect("grabbing the keyboard")
        self.bot.mouseClick(self.picker, Qt.MouseButton.LeftButton)
        return self

    def part(self, kind, name):
        return next(widget for widget in self.picker.findChildren(kind) if widget.accessibleName() == name)

    @property
    def search(self):
        return self.part(QLineEdit, "Search models")

    @property
    def rows(self):
        model = self.part(QListView, "Models").model()
        return [model.index(i, 0).data() for i in range(model.rowCount())]

    def key(self, key):
        self.bot.keyClick(self.search, key)


@pytest.fixture
def driver(qtbot, qt_messages):
    return Driver(qtbot, qt_messages)


def test_the_picker_is_named_and_shows_the_model(driver):
    assert driver.picker.accessibleName() == "Model"
    assert driver.picker.text() == "Choose a model"
    driver.picker.set_current("openai", "gpt-9")
    assert driver.picker.text() == "GPT Nine"
    driver.picker.set_current("openai", "unlisted")
    assert driver.picker.text() == "unlisted"
    assert driver.picker.accessibleName() == "Model"


def test_the_picker_tells_the_server_of_a_model_that_two_have(driver):
    driver.picker.set_models([*GROUPS, Group(LOCAL_SERVERS[1], (ModelInfo("llama:8b"),))])
    driver.picker.set_current("ollama", "qwen-vl")
    assert (driver.picker.text(), driver.picker.accessibleDescription()) == ("qwen-vl", "qwen-vl")
    assert "qwen-vl · Ollama" in driver.picker.toolTip()
    texts = set()
    for server in LOCAL_SERVERS[:2]:
        driver.picker.set_current(server.id, "llama:8b")
        assert driver.picker.accessibleDescription() == f"llama:8b · {server.title}"
        texts.add(driver.picker.text())
    assert texts == {f"llama:8b · {server.title}" for server in LOCAL_SERVERS[:2]}


def test_models_stand_under_their_servers(driver):
    driver.open()
    assert driver.rows == [
        "Ollama", "llama:8b", "qwen-vl", "OpenAI", "GPT Nine", "OpenRouter", "The API key was not accepted.",
        "Demo (offline)", "Demo",
    ]  # fmt: skip


def test_keys_walk_over_headings_and_choose(driver):
    driver.open()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Return):
        driver.key(key)
    assert driver.chosen == [("openai", "gpt-9")]
    assert not driver.search.isVisible()


def test_the_list_opens_at_the_model_in_use(driver):
    driver.picker.set_current("ollama", "qwen-vl")
    driver.open()
    driver.key(Qt.Key.Key_Return)
    assert driver.chosen == [("ollama", "qwen-vl")]


@pytest.mark.parametrize("typed", ["openai", "OpenAI nine"])
def test_search_finds_the_models_of_a_server_by_its_name(driver, typed):
    driver.open()
    driver.bot.keyClicks(driver.search, typed)
    assert driver.rows[:2] == ["OpenAI", "GPT Nine"]
    driver.key(Qt.Key.Key_Return)
    assert driver.chosen == [("openai", "gpt-9")]


def test_search_finds_ids_and_titles(driver):
    driver.open()
    driver.bot.keyClicks(driver.search, "NINE")
    assert "GPT Nine" in driver.rows
    assert "llama:8b" not in driver.rows


def test_an_unlisted_model_can_be_typed(driver):
    driver.open()
    driver.bot.keyClicks(driver.search, "my-model")
    assert driver.rows.count("Use “my-model”") == 3
    driver.key(Qt.Key.Key_Down)
    driver.key(Qt.Key.Key_Return)
    assert driver.chosen == [("openai", "my-model")]


def test_headings_cannot_be_chosen(driver):
    driver.open()
    view = driver.part(QListView, "Models")
    driver.bot.mouseClick(
        view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(view.model().index(0, 0)).center()
    )
    assert driver.chosen == []


def test_refresh_and_connect(driver):
    driver.open()
    with driver.bot.waitSignal(driver.picker.refresh_requested):
        driver.bot.mouseClick(driver.part(QToolButton, "Refresh models"), Qt.MouseButton.LeftButton)
    with driver.bot.waitSignal(driver.picker.connect_requested):
        driver.bot.mouseClick(driver.part(QPushButton, "Connect a model…"), Qt.MouseButton.LeftButton)


def test_capabilities_are_said(driver):
    driver.open()
    model = driver.part(QListView, "Models").model()
    texts = [model.index(i, 0).data(Qt.ItemDataRole.AccessibleTextRole) for i in range(model.rowCount())]
    assert "qwen-vl, pictures" in texts
    assert "GPT Nine, 400k" in texts


def test_price_and_retirement_are_said(qtbot):
    capabilities = Capabilities(
        images=True, tools=True, reasoning=True, context_window=200_000, outputs=("image", "text")
    )
    price = Price(input=3, output=0.075)
    models = (
        ModelInfo("soon", None, capabilities, price, date(2999, 11, 30)),
        ModelInfo("gone", None, Capabilities(), Price(input=3), date(2001, 1, 2)),
    )
    rows = ResultModel()
    rows.show_rows(model_rows([Group(LOCAL_SERVERS[0], models)], "", ("ollama", "soon")))
    retiring, retired = rows.index(1), rows.index(2)
    facts = ["200k", "pictures", "makes pictures", "tools", "reasoning", "$3 / $0.075", "retires 2999-11-30"]
    assert retiring.data(RowRole.SUBTITLE) == " · ".join(facts)
    assert retiring.data(Qt.ItemDataRole.AccessibleTextRole) == ", ".join(["soon", *facts, "✓"])
    assert "Price per million tokens: $3 in, $0.075 out" in retiring.data(Qt.ItemDataRole.ToolTipRole)
    assert retired.data(RowRole.SUBTITLE) == "retired 2001-01-02"
    assert (retiring.data(RowRole.FADED), retired.data(RowRole.FADED)) == (False, True)
    assert rows.next_choosable(1, 1) == 2


def test_the_folder_is_shown_by_its_name(qtbot):
    picker = WorkspacePicker(ThemeSource())
    qtbot.addWidget(picker)
    assert picker.text().strip() == "No folder"
    picker.set_folder(Path("/home/me/R&D"))
    assert picker.text().strip() == "R&&D"
    assert picker.accessibleDescription() == "/home/me/R&D"


def test_a_folder_whose_name_is_no_text_is_shown_whole(qtbot):
    picker = WorkspacePicker(ThemeSource())
    qtbot.addWidget(picker)
    picker.set_folder(Path(os.fsdecode(b"/home/me/caf\xe9 noir")))
    assert picker.text().strip() == "caf⟨U+DCE9⟩ noir"
    assert picker.accessibleDescription() == picker.toolTip() == "/home/me/caf⟨U+DCE9⟩ noir"


def test_a_folder_is_chosen_without_waiting(qtbot, tmp_path, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    picker = WorkspacePicker(ThemeSource())
    qtbot.addWidget(picker)
    picker.show()
    qtbot.mouseClick(picker, Qt.MouseButton.LeftButton)
    menu = picker.findChild(QMenu)
    assert menu.isVisible()
    assert menu.activeAction().text() == "Choose folder…", "Enter chooses, as in the other menus"
    menu.close()
    picker.set_folder(None, "one")
    with qtbot.waitSignal(picker.folder_chosen) as signal:
        picker.choose_folder()
        dialog = picker.findChild(QFileDialog)
        picker.set_folder(None, "another")
        dialog.fileSelected.emit(str(tmp_path))
        dialog.close()
    assert signal.args == [tmp_path, "one"]
    picker.set_folder(tmp_path, "another")
    with qtbot.waitSignal(picker.folder_chosen) as signal:
        menu.actions()[1].trigger()
    assert signal.args == [None, "another"]


def test_a_list_without_any_server_says_so():
    [row] = model_rows([], "any", ("", ""))
    assert row.text == "No model is connected yet."
    assert not row.is_choosable
    assert model_rows([], "", (DEMO_ENDPOINT, DEMO_MODEL))[0].text == "Only the demo is connected yet."


def test_the_demo_is_found_once_and_has_one_model():
    used = Group(Endpoint(id=DEMO_ENDPOINT, title="Demo (offline)", base_url="", kind="demo"), (ModelInfo(DEMO_MODEL),))
    for groups in ([GROUPS[0]], [GROUPS[0], used]):
        rows = model_rows(groups, "demo", ("", ""))
        choices = [(row.endpoint_id, row.model_id) for row in rows if row.is_choosable]
        assert choices == [("ollama", "demo"), (DEMO_ENDPOINT, DEMO_MODEL)]
    assert model_rows([used], "", ("", ""))[0].text == "No model is connected yet."


def test_the_demo_s_model_has_its_name_before_it_is_listed(driver):
    driver.picker.set_current(DEMO_ENDPOINT, DEMO_MODEL)
    assert driver.picker.text() == "Demo"
