"""The cards of servers: how each is, what it offers, and what stays open when something changes."""

import json
from unittest.mock import MagicMock

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QListView, QPlainTextEdit, QPushButton

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import HttpConnection, McpServer, McpServerState, McpToolInfo, StdioConnection
from desktop_agent.types.tool_calls import ToolClass
from tests.ui.test_translatable import bare_texts, marked
from ui.bridge.mcp.imports import preview_of
from ui.settings.mcp_servers.mcp_servers_form import McpServersForm
from ui.settings.mcp_servers.tool_catalog import ToolDelegate
from ui.style.theme import ThemeSource

__all__ = ["marked"]

FILES = McpServer(id="files", title="Files", connection=StdioConnection(command="npx", args=("a b",)))
WEB = McpServer(id="web", title="Web", connection=HttpConnection(url="https://a.example/mcp", sign_in=True))


def tool(name="read", declared=None, **changes):
    fields = {"tool_class": ToolClass.MUTATING, "is_enabled": True, "description": "Reads a file."} | changes
    return McpToolInfo(name=name, full_name=f"files__{name}", declared_class=declared, **fields)


class Driver:
    def __init__(self, qtbot, *servers):
        self.bot = qtbot
        self.settings = MagicMock()
        self.settings.change = self.change
        self.form = McpServersForm(ThemeSource(), self.settings)
        qtbot.addWidget(self.form)
        self.form.resize(600, 900)
        self.form.show()
        self.kept = {server.id: server for server in servers}
        self.form.show_servers(servers)

    def change(self, server_id, change):
        """Save the change at once, without showing it."""
        self.kept[server_id] = change(self.kept[server_id])

    def part(self, kind, name):
        parts = [
            widget for widget in self.form.findChildren(kind) if widget.accessibleName() == name and widget.isVisible()
        ]
        return parts[0] if parts else None

    def click(self, name):
        self.bot.mouseClick(self.part(QPushButton, name), Qt.MouseButton.LeftButton)

    def show_state(self, state, server_id="files", **fields):
        self.form.card(server_id).show_state(McpServerState(server_id, state, **fields))

    @property
    def words(self):
        return [label.text() for label in self.form.findChildren(QLabel) if label.isVisible()]


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot, FILES, WEB)


@pytest.mark.parametrize(
    ("state", "fields", "words", "kind"),
    [
        ("off", {}, "Off", "muted"),
        ("idle", {}, "Waits until a conversation needs it.", "muted"),
        ("starting", {}, "Starting…", "muted"),
        ("running", {"protocol": "2025-06-18", "tools": (tool(),)}, "Running · protocol 2025-06-18 · 1 tool", "ok"),
        ("running", {"tools": (tool(), tool("b"))}, "Running · 2 tools", "ok"),
        (
            "failed",
            {"reason": Sentence("No {x}.", {"x": "npx\u202e"})},
            "No npx⟨U+202E⟩.\nLook at its log, correct it with Edit, then press Test.",
            "error",
        ),
        ("signed_out", {}, "You need to sign in.", "warning"),
    ],
)
def test_each_state_has_words_and_a_colour(driver, state, fields, words, kind):
    driver.show_state(state, **fields)
    (found,) = [label for label in driver.form.card("files").findChildren(QLabel) if label.text() == words]
    assert (found.isVisible(), found.property("kind")) == (True, kind)


def test_what_is_open_stays_when_servers_change(driver):
    driver.show_state("running", tools=(tool(), tool("write")))
    driver.click("Show the tools of Files")
    driver.click("Show the log of Files")
    rows = driver.part(QListView, "Tools of Files")
    rows.setCurrentIndex(rows.model().index(1, 0))
    changed = FILES.model_copy(update={"off_tools": frozenset({"write"})})
    third = FILES.model_copy(update={"id": "third"})
    driver.settings.servers, driver.settings.state.return_value = (third,), McpServerState("third", "off")
    driver.form.show_servers((changed, WEB, third))
    driver.show_state("running", tools=(tool(), tool("write", is_enabled=False)))
    assert driver.part(QListView, "Tools of Files") is rows
    assert rows.currentIndex().data() == "write"
    assert driver.part(QCheckBox, "The agent may call write").isChecked() is False
    assert driver.form.card("third")._state.text == "Off"


def test_one_log_is_open_at_a_time(driver):
    driver.click("Show the log of Files")
    driver.click("Show the log of Web")
    driver.settings.watch_log.assert_called_with("web")
    assert driver.form.card("files").log is None
    driver.click("Show the log of Web")
    driver.settings.watch_log.assert_called_with("")


def test_what_counts_about_a_tool_is_chosen_in_words(driver):
    driver.form.show_servers((FILES.model_copy(update={"trusted": True}), WEB))
    driver.show_state("running", tools=(tool(declared=ToolClass.READ_ONLY, tool_class=ToolClass.READ_ONLY),))
    driver.click("Show the tools of Files")
    choice = driver.part(QComboBox, "How to treat read")
    assert [choice.itemText(index) for index in range(3)] == [
        "As the server says (Only reads)",
        "Only reads",
        "Can change things",
    ]
    assert "The server says: it only reads." in driver.words
    choice.setCurrentIndex(2)
    choice.activated.emit(2)
    assert driver.kept["files"].classes == {"read": ToolClass.MUTATING}
    driver.form.show_servers((driver.kept["files"].model_copy(update={"trusted": True}), WEB))
    assert choice.currentIndex() == 2
    choice.setCurrentIndex(0)
    choice.activated.emit(0)
    assert driver.kept["files"].classes == {}


def test_a_tool_that_is_another_one_asks_for_a_new_choice(driver):
    server = FILES.with_tool_class_override("read", "before", ToolClass.READ_ONLY)
    driver.form.show_servers((server, WEB))
    driver.show_state("running", tools=(tool(digest="now", has_changed=True), tool("write")))
    driver.click("Show the tools of Files")
    choice = driver.part(QComboBox, "How to treat read")
    rows = driver.part(QListView, "Tools of Files")
    assert choice.currentIndex() == 0
    assert any("but it has changed since" in text for text in driver.words)
    texts = [rows.model().index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(2)]
    assert ["Changed: choose again" in words for words in texts] == [True, False]
    choice.setCurrentIndex(1)
    choice.activated.emit(1)
    saved = driver.kept["files"]
    assert (saved.classes, saved.chosen_for) == ({"read": ToolClass.READ_ONLY}, {"read": "now"})
    driver.form.show_servers((saved, WEB))
    driver.show_state("running", tools=(tool(digest="now"), tool("write")))
    assert choice.currentIndex() == 1
    assert not any("but it has changed since" in text for text in driver.words)


def test_the_remedy_of_the_state_comes_before_a_general_one(driver):
    driver.show_state("failed", reason=Sentence("It is not there."), remedy=Sentence("Install it."))
    assert "It is not there.\nInstall it." in driver.words
    assert not any("Look at its log" in text for text in driver.words)
    driver.show_state("failed", reason=Sentence("It is not there."))
    assert any("Look at its log" in text for text in driver.words)


def test_one_that_is_off_is_tried_all_the_same(driver):
    driver.show_state("off")
    assert driver.part(QPushButton, "Test Files").isEnabled()
    off = {"reason": Sentence("There is no program “npx”."), "remedy": Sentence("Install it.")}
    driver.form.card("files").show_tested(McpServerState("files", "off", **off))
    assert "Off. Last test: There is no program “npx”.\nInstall it." in driver.words
    assert driver.part(QListView, "Tools of Files") is None
    driver.form.card("files").show_tested(McpServerState("files", "off", tools=(tool(),)))
    assert "Off. The last test succeeded · 1 tool" in driver.words
    assert driver.part(QListView, "Tools of Files") is not None


def test_the_keyboard_is_on_the_button_again_after_a_test(driver):
    test = driver.part(QPushButton, "Test Files")
    test.setFocus()
    driver.form.card("files").test()
    assert driver.form.focusWidget() is not test
    driver.form.card("files").show_tested(McpServerState("files", "running", tools=(tool(),)))
    assert driver.form.focusWidget() is test


def test_what_is_not_believed_is_said(driver):
    driver.show_state(
        "running", tools=(tool(declared=ToolClass.READ_ONLY),), unusable_tools=(Sentence("Too many tools."),)
    )
    driver.click("Show the tools of Files")
    choice = driver.part(QComboBox, "How to treat read")
    assert choice.itemText(0) == "To be safe (Can change things)"
    assert "Too many tools." in driver.words


def test_a_tool_is_switched_where_it_is_ticked(driver):
    driver.show_state("running", tools=(tool(), tool("write")))
    driver.click("Show the tools of Files")
    rows = driver.part(QListView, "Tools of Files")
    middle = rows.visualRect(rows.model().index(1, 0)).center()
    driver.bot.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    assert driver.kept["files"].off_tools == set()
    middle.setX(rows.visualRect(rows.model().index(1, 0)).left() + 20)
    driver.bot.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    assert driver.kept["files"].off_tools == {"write"}
    # Nothing was shown yet of what was kept.
    middle.setY(rows.visualRect(rows.model().index(0, 0)).center().y())
    driver.bot.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    driver.part(QCheckBox, "Use Files").click()
    assert (driver.kept["files"].off_tools, driver.kept["files"].on) == ({"read", "write"}, False)


def test_two_hundred_tools_cost_what_is_seen(driver, monkeypatch):
    measurements, size = [], ToolDelegate.sizeHint
    monkeypatch.setattr(ToolDelegate, "sizeHint", lambda *args: (measurements.append(1), size(*args))[1])
    driver.show_state("running", tools=tuple(tool(f"t{number}") for number in range(200)))
    driver.click("Show the tools of Files")
    rows = driver.part(QListView, "Tools of Files")
    rows_asked, data = set(), rows.model().data
    rows.model().data = lambda index, role=0: (rows_asked.add(index.row()), data(index, role))[1]
    rows.grab()
    assert 0 < len(rows_asked) < 20
    assert 0 < len(measurements) < 20
    assert len(driver.form.card("files").tools.findChildren(QCheckBox)) == 1


def test_the_card_comes_back_when_editing_is_left(driver):
    driver.click("Edit Files")
    assert driver.part(QPushButton, "Edit Files") is None
    assert driver.part(QPushButton, "Import…") is None
    driver.bot.keyClick(driver.part(QLineEdit, "Title"), Qt.Key.Key_Escape)
    assert driver.part(QPushButton, "Edit Files") is driver.form.window().focusWidget()
    assert driver.part(QLineEdit, "Title") is None
    assert driver.part(QPushButton, "Import…") is not None


def test_what_is_being_written_stays_when_another_server_changes(driver):
    driver.click("Edit Files")
    driver.part(QLineEdit, "Title").setText("Mine")
    driver.form.show_servers((FILES, WEB.model_copy(update={"on": False})))
    driver.form.show_error("web", Sentence("It is locked."))
    assert driver.part(QLineEdit, "Title").text() == "Mine"
    assert driver.part(QPushButton, "Edit Files") is None
    assert "It is locked." in driver.words


def test_nothing_else_is_begun_while_something_is_being_written(driver):
    driver.click("Edit Files")
    driver.part(QLineEdit, "Title").setText("Mine")
    begins = driver.part(QPushButton, "Edit Web")
    assert (begins.isEnabled(), begins.toolTip()) == (False, "Save or cancel your changes first")
    driver.form.edit("web")
    driver.form.add("address")
    driver.form.start_import()
    assert driver.part(QLineEdit, "Title").text() == "Mine"
    assert driver.part(QPlainTextEdit, "Servers as JSON") is None
    # What was switched on the card before is kept only now.
    driver.form.show_saved("files")
    assert driver.part(QLineEdit, "Title").text() == "Mine"
    driver.click("Cancel")
    assert driver.part(QPushButton, "Edit Web").isEnabled()


def test_what_is_being_written_keeps_its_place_and_outlives_its_card(driver):
    driver.click("Edit Files")
    driver.part(QLineEdit, "Title").setText("Mine")
    driver.form.show_servers((FILES, WEB.model_copy(update={"on": False})))
    driver.bot.waitUntil(lambda: driver.part(QLineEdit, "Title").height() > 0)
    assert driver.form._editor.y() < driver.form.card("web").y()
    driver.form.show_servers((WEB,))
    assert driver.part(QLineEdit, "Title").text() == "Mine"


def test_a_switch_that_could_not_be_kept_goes_back(driver):
    switch = driver.part(QCheckBox, "Use Files")
    switch.click()
    assert driver.kept["files"] == FILES.model_copy(update={"on": False})
    driver.form.show_error("files", Sentence("The disk is full."))
    assert switch.isChecked()


def test_signing_in_waits_and_can_be_ended(driver):
    card = driver.form.card("web")
    driver.show_state("signed_out", "web")
    driver.click("Sign in to Web")
    assert driver.settings.sign_in.call_args.args[0] == "web"
    card.sign_in.show_page("https://a.example/login", is_open=False)
    assert any("Copy the address" in text for text in driver.words)
    driver.click("Copy address")
    driver.click("Cancel signing in")
    driver.settings.cancel_sign_in.assert_called_once_with("web")
    card.sign_in.show_result("")
    assert driver.part(QPushButton, "Sign in to Web") is not None
    assert driver.part(QPushButton, "Sign out of Web") is None


@pytest.mark.parametrize(
    ("state", "is_signed_in", "button_name"),
    [
        ("idle", None, "Sign in to Web"),
        ("idle", False, "Sign in to Web"),
        ("idle", True, "Sign out of Web"),
        ("running", False, "Sign in to Web"),
        ("running", True, "Sign out of Web"),
        ("failed", False, "Sign in to Web"),
        ("failed", True, "Sign out of Web"),
        # What is kept is no good any more.
        ("signed_out", True, "Sign in to Web"),
        ("off", True, "Sign out of Web"),
        ("off", False, None),
        ("starting", True, None),
    ],
)
def test_only_that_is_offered_which_does_something(driver, state, is_signed_in, button_name):
    driver.show_state(state, "web", is_signed_in=is_signed_in)
    names = [button.accessibleName() for button in driver.form.card("web").sign_in.findChildren(QPushButton)]
    visible_names = [name for name in names if driver.part(QPushButton, name) is not None]
    assert visible_names == ([button_name] if button_name else [])


def test_the_keys_stay_where_they_are_when_the_person_is_signed_in_or_out(driver):
    for is_in, before_change, after_change in (
        (True, "Sign out of Web", "Sign in to Web"),
        (False, "Sign in to Web", "Sign out of Web"),
    ):
        driver.show_state("running", "web", is_signed_in=is_in)
        driver.part(QPushButton, before_change).setFocus()
        driver.show_state("idle", "web", is_signed_in=not is_in)
        assert driver.form.focusWidget() is driver.part(QPushButton, after_change)


SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Which\u202e file."},
        "mode": {"enum": ["text", "bytes"], "default": "text"},
    },
    "required": ["path"],
}


def test_the_arguments_of_a_tool_can_be_read(driver):
    driver.show_state("running", tools=(tool(schema=SCHEMA), tool("write", digest="2")))
    driver.click("Show the tools of Files")
    assert not any("Which" in text for text in driver.words)
    driver.click("Show 2 arguments")
    index = driver.words.index("path")
    assert driver.words[index : index + 3] == ["path", "text · required", "Which⟨U+202E⟩ file."]
    index = driver.words.index("mode")
    assert driver.words[index + 1 : index + 4] == [
        "anything · optional",
        'One of: "text", "bytes"',
        'Default: "text"',
    ]
    driver.click("Show as JSON")
    raw = driver.part(QPlainTextEdit, "Schema of the arguments as JSON")
    assert json.loads(raw.toPlainText()) == SCHEMA
    rows = driver.part(QListView, "Tools of Files")
    rows.setCurrentIndex(rows.model().index(1, 0))
    assert "path" not in driver.words
    assert "The server lists no arguments for this tool." in driver.words
    assert raw.toPlainText() == "{}"
    driver.click("Hide arguments")
    assert driver.part(QPushButton, "No arguments listed") is not None
    assert not raw.isVisible()


def test_long_schemas_are_cut_and_say_so(driver):
    properties = {f"p{number}": {"type": "string", "description": "x" * 500} for number in range(80)}
    driver.show_state("running", tools=(tool(schema={"type": "object", "properties": properties}),))
    driver.click("Show the tools of Files")
    driver.click("Show 80 arguments")
    driver.click("Show as JSON")
    assert "p59" in driver.words
    assert "p60" not in driver.words
    assert "These are the first 60. The others are in the JSON." in driver.words
    assert any(text.startswith("The first 20,000 of ") for text in driver.words)
    assert len(driver.part(QPlainTextEdit, "Schema of the arguments as JSON").toPlainText()) == 20_000


def test_an_import_says_what_it_takes_and_what_it_refuses(driver):
    driver.click("Import…")
    panel = driver.form._import
    text = '{"mcpServers": {"a": {"command": "x", "env": {"LOG": "1"}}, "b": {"type": "sse", "url": "https://b"}}}'
    panel.show_preview(preview_of(text, ()))
    assert driver.part(QPlainTextEdit, "Command line of a").toPlainText() == "x"
    assert "Plain variables: LOG=1" in driver.words
    assert any("“b” cannot be taken over" in text for text in driver.words)
    driver.part(QCheckBox, "Import a").click()
    assert not driver.part(QPushButton, "Import").isEnabled()
    driver.part(QCheckBox, "Import a").click()
    driver.click("Import 1 server")
    assert driver.settings.imports.import_servers.call_args.args[1] == {"a"}
    assert not driver.part(QPushButton, "Cancel").isEnabled()
    panel.show_problem(Sentence("The keyring is locked."))
    assert "The keyring is locked." in driver.words
    assert driver.part(QPushButton, "Import 1 server").isEnabled()
    assert driver.form.focusWidget() is driver.part(QPushButton, "Import 1 server")


def test_a_long_command_line_is_shown_whole(driver):
    driver.click("Import…")
    words = " ".join(f"argument-{number}" for number in range(400))
    entry = {"command": "x", "args": words.split()}
    panel = driver.form._import
    panel.show_preview(preview_of(json.dumps({"mcpServers": {"a": entry}}), ()))
    assert driver.part(QPlainTextEdit, "Command line of a").toPlainText() == f"x {words}"


def test_every_word_is_translated(qtbot, marked):
    program = StdioConnection(command="ν", secret_env=("κ",))
    files = McpServer(id="files", title="δ", trusted=True, connection=program)
    driver = Driver(qtbot, files, WEB.model_copy(update={"title": "λ"}))
    for state in ("off", "idle", "starting", "running", "failed", "signed_out"):
        for server_id in ("files", "web"):
            schema = {"properties": {"α": {"type": "array", "items": {"enum": [1]}, "default": 1}}}
            driver.show_state(state, server_id, tools=(tool("μ", description="ω", schema=schema),))
        assert bare_texts(driver.form) == []
    for card in (driver.form.card("files"), driver.form.card("web")):
        card._toggle_tools()
        card.tools._arguments._toggle()
        card.tools._arguments._toggle_raw()
        card._toggle_log()
        card._removal.button.click()
    driver.form.add("program")
    driver.form._editor._fields._variables._add_row()
    assert bare_texts(driver.form) == []
    driver.form._editor.cancelled.emit()
    driver.form.add("address")
    assert bare_texts(driver.form) == []
    driver.form._editor.cancelled.emit()
    driver.form.start_import()
    driver.form._import.show_preview(
        preview_of('{"mcpServers": {"α": {"command": "β", "env": {"κ": "sk-${μ}", "ν": "1"}}}}', ())
    )
    assert bare_texts(driver.form) == []
