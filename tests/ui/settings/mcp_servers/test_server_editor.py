"""A server is written, checked as one types, and kept whole when saving fails."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPlainTextEdit, QPushButton, QSpinBox

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import CLIENT_SECRET, HttpConnection, McpServer, StdioConnection
from desktop_agent.types.tool_calls import Effect, ToolClass
from ui.settings.mcp_servers.server_editor import ServerEditor, unused_server_id
from ui.style.theme import ThemeSource

PROGRAM = McpServer(
    id="files",
    title="Files",
    trusted=True,
    effects=frozenset({Effect.READ}),
    timeout=30,
    classes={"read": ToolClass.READ_ONLY},
    off_tools=frozenset({"delete"}),
    connection=StdioConnection(command="npx", args=("-y", "a b"), env={"LOG": "warn"}, secret_env=("TOKEN",)),
)
WEB = McpServer(id="web", title="Web", connection=HttpConnection(url="https://a.example/mcp", headers=("X-Key",)))


KNOWN = McpServer(
    id="web", title="Web", connection=HttpConnection(url="https://a.example/mcp", sign_in=True, client_id="agreed")
)


class Driver:
    def __init__(self, qtbot, kind, server=None, taken=()):
        self.bot = qtbot
        self.editor = ServerEditor(ThemeSource(), kind, server, taken)
        qtbot.addWidget(self.editor)
        self.saved, self.cancelled = [], []
        self.editor.saved.connect(lambda *args: self.saved.append(args))
        self.editor.cancelled.connect(lambda: self.cancelled.append(True))
        self.editor.show()

    def all(self, kind, name):
        return [
            widget
            for widget in self.editor.findChildren(kind)
            if widget.accessibleName() == name and widget.isVisible()
        ]

    def click(self, name):
        self.bot.mouseClick(self.all(QPushButton, name)[0], Qt.MouseButton.LeftButton)

    def write(self, name, text, index=-1):
        self.all(QLineEdit, name)[index].setText(text)

    @property
    def words(self):
        return "\n".join(label.text() for label in self.editor.findChildren(QLabel) if label.isVisible())

    def secrets(self):
        return {name: value.get_secret_value() for name, value in self.saved[-1][1].items()}


def test_saving_without_a_change_changes_nothing(qtbot):
    for kind, server in (("program", PROGRAM), ("address", WEB), ("address", KNOWN)):
        driver = Driver(qtbot, kind, server, {server.id})
        driver.click("Save")
        assert driver.saved == [(server, {})]


@pytest.mark.parametrize(("kind", "server", "name"), [("program", PROGRAM, "variable"), ("address", WEB, "header")])
def test_a_secret_that_was_never_given_is_not_called_kept(qtbot, kind, server, name):
    driver = Driver(qtbot, kind, server, {server.id})

    def value():
        return next(field for field in driver.all(QLineEdit, f"Value of the {name}") if not field.text())

    assert value().placeholderText() == "Kept in the keyring"
    driver.editor.set_stored_secrets(frozenset(server.secret_names))
    assert value().placeholderText() == "Kept in the keyring"
    driver.editor.set_stored_secrets(frozenset({"OTHER"}))
    assert value().placeholderText() == "Value"
    driver.click("Save")
    assert driver.saved == []
    assert "has no value" in driver.words
    value().setText("given now")
    driver.click("Save")
    assert driver.secrets() == {server.secret_names[0]: "given now"}


def test_a_program_is_written(qtbot):
    driver = Driver(qtbot, "program", taken={"my-files"})
    driver.write("Title", "My files!")
    driver.write("Program", "uvx")
    driver.all(QPlainTextEdit, "Arguments")[0].setPlainText("-q\n/home/ada/My notes")
    driver.click("Add variable")
    driver.write("Name of the variable", "TOKEN")
    driver.write("Value of the variable", "abc")
    assert driver.all(QLineEdit, "Value of the variable")[0].echoMode() is QLineEdit.EchoMode.Password
    driver.click("Add variable")
    driver.write("Name of the variable", "LOG")
    driver.write("Value of the variable", "warn")
    driver.all(QComboBox, "Where the value is kept")[-1].setCurrentIndex(1)
    driver.click("Add variable")
    driver.all(QSpinBox, "Time limit")[0].setValue(60)
    driver.all(QCheckBox, "")[0].click()
    driver.click("Save")
    server = driver.saved[0][0]
    assert (server.id, server.title, server.timeout) == ("my-files-2", "My files!", 60)
    assert server.connection == StdioConnection(
        command="uvx", args=("-q", "/home/ada/My notes"), env={"LOG": "warn"}, secret_env=("TOKEN",)
    )
    assert driver.secrets() == {"TOKEN": "abc"}


def test_a_secret_is_never_shown_and_can_be_replaced(qtbot):
    driver = Driver(qtbot, "program", PROGRAM)
    value = driver.all(QLineEdit, "Value of the variable")[1]
    assert (value.text(), value.placeholderText()) == ("", "Kept in the keyring")
    value.setText("new")
    driver.click("Save")
    assert driver.secrets() == {"TOKEN": "new"}


def test_a_secret_under_another_name_must_be_given_again(qtbot):
    driver = Driver(qtbot, "program", PROGRAM)
    driver.write("Name of the variable", "OTHER")
    assert "“OTHER” has no value" in driver.words
    driver.click("Save")
    assert driver.saved == []
    driver.write("Name of the variable", "TOKEN")
    assert "has no value" not in driver.words


def test_what_headers_hold_goes_to_no_other_host(qtbot):
    driver = Driver(qtbot, "address", WEB)
    driver.write("Address", "https://a.example/other")
    assert "are not sent to other addresses" not in driver.words
    driver.write("Address", "https://b.example/mcp")
    assert "belong to a.example and are not sent to other addresses" in driver.words
    driver.click("Save")
    assert driver.saved == []
    driver.write("Value of the header", "abc")
    driver.click("Save")
    assert driver.saved[0][0].connection.url == "https://b.example/mcp"
    assert driver.secrets() == {"X-Key": "abc"}


def test_what_variables_hold_goes_to_no_other_program(qtbot):
    driver = Driver(qtbot, "program", PROGRAM)
    arguments = driver.all(QPlainTextEdit, "Arguments")[0]
    arguments.setPlainText("-y\nanother")
    assert "are not given to another one" in driver.words
    driver.click("Save")
    assert driver.saved == []
    arguments.setPlainText("-y\na b")
    assert "are not given to another one" not in driver.words
    driver.write("Program", "npx2")
    driver.write("Value of the variable", "abc")
    driver.click("Save")
    assert driver.saved[0][0].connection.command == "npx2"
    assert driver.secrets() == {"TOKEN": "abc"}


def test_addresses_without_tls_are_warned_about(qtbot):
    driver = Driver(qtbot, "address")
    driver.write("Address", "http://127.0.0.1:80/mcp")
    assert "Others on the network can read" not in driver.words
    driver.write("Address", "http://a.example/mcp/")
    assert "Others on the network can read" in driver.words
    driver.write("Title", "A")
    driver.click("Save")
    assert driver.saved[0][0].connection.url == "http://a.example/mcp/"


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("program", {"Title": ""}, "a title"),
        ("program", {"Program": " "}, "Enter the program"),
        ("program", {"Name of the variable": "A-B"}, "letters, digits and “_”"),
        ("program", {"Name of the variable": "LOG"}, "two variables “LOG”"),
        ("address", {"Address": ""}, "Enter the address"),
        ("address", {"Address": "ftp://a"}, "not a web address"),
        ("address", {"Name of the header": "A B"}, "letters, digits and “-”"),
    ],
)
def test_what_is_wrong_is_said_while_it_is_typed(qtbot, kind, fields, words):
    driver = Driver(qtbot, kind, PROGRAM if kind == "program" else WEB)
    for name, text in fields.items():
        driver.write(name, text)
    if "two variables" in words:
        driver.write("Value of the variable", "x")
    assert words in driver.words
    driver.click("Save")
    assert driver.saved == []


def test_a_new_one_is_not_blamed_before_anything_is_typed(qtbot):
    driver = Driver(qtbot, "program")
    assert "Enter the program" not in driver.words
    driver.click("Save")
    assert "a title" in driver.words
    assert driver.editor.focusWidget() is driver.all(QLineEdit, "Title")[0]


def test_a_whole_line_is_taken_apart_when_it_is_wanted(qtbot):
    driver = Driver(qtbot, "program")
    driver.write("Program", "npx -y 'my files' --token=abc")
    assert "This is a whole command line: npx  ·  -y  ·  my files  ·  --token=abc" in driver.words
    assert "“--token” seems to contain a secret" in driver.words
    driver.click("Split it")
    assert driver.all(QLineEdit, "Program")[0].text() == "npx"
    assert driver.all(QPlainTextEdit, "Arguments")[0].toPlainText() == "-y\nmy files\n--token=abc"
    assert driver.all(QPushButton, "Split it") == []


def test_nothing_is_lost_when_it_cannot_be_kept(qtbot):
    driver = Driver(qtbot, "program", PROGRAM)
    driver.write("Value of the variable", "new")
    driver.click("Save")
    assert not driver.all(QPushButton, "Save")[0].isEnabled()
    driver.bot.keyClick(driver.editor, Qt.Key.Key_Escape)
    assert driver.cancelled == []
    driver.editor.show_error(Sentence("The keyring is locked."))
    assert "The keyring is locked." in driver.words
    driver.click("Save")
    assert len(driver.saved) == 2
    assert driver.secrets() == {"TOKEN": "new"}
    driver.editor.show_error(Sentence("Again."))
    driver.bot.keyClick(driver.editor, Qt.Key.Key_Escape)
    assert driver.cancelled == [True]


def test_ids_are_made_of_titles():
    assert unused_server_id("GitHub (work)", ()) == "github-work"
    assert unused_server_id("会议", ()) == "server"
    assert unused_server_id("A" * 50, {"a" * 20}) == "a" * 20 + "-2"
    McpServer(id=unused_server_id("x" * 50, ()), title="x", connection=WEB.connection)


def test_an_agreed_client_id_and_its_secret_are_entered_where_one_signs_in(qtbot):
    driver = Driver(qtbot, "address", WEB, {"web"})
    assert driver.all(QLineEdit, "Client id") == []
    sign_in = next(box for box in driver.editor.findChildren(QCheckBox) if "OAuth" in box.accessibleName())
    sign_in.click()
    assert not driver.all(QLineEdit, "Client secret")[0].isEnabled()
    driver.write("Client id", " agreed ")
    driver.write("Client secret", "s3cret-value")
    assert driver.all(QLineEdit, "Client secret")[0].echoMode() is QLineEdit.EchoMode.Password
    driver.click("Save")
    server, _ = driver.saved[-1]
    assert (server.connection.client_id, server.connection.headers) == ("agreed", ("X-Key",))
    assert driver.secrets() == {CLIENT_SECRET: "s3cret-value"}
    driver.editor.show_error(Sentence("no"))
    sign_in.click()
    driver.click("Save")
    assert driver.saved[-1][0].connection.client_id == ""
    assert driver.secrets() == {}


def test_a_kept_client_secret_belongs_to_one_id_at_one_address(qtbot):
    driver = Driver(qtbot, "address", KNOWN, {"web"})
    secret = driver.all(QLineEdit, "Client secret")[0]
    in_keyring, optional = "Kept in the keyring", "Client secret, if it has one"
    assert secret.placeholderText() == in_keyring
    driver.write("Client id", "other")
    assert secret.placeholderText() == optional
    driver.write("Client id", "agreed")
    driver.write("Address", "https://b.example/mcp")
    assert secret.placeholderText() == optional
    driver.write("Address", "https://a.example/mcp")
    assert secret.placeholderText() == in_keyring
    driver.editor.set_stored_secrets(frozenset())
    assert secret.placeholderText() == optional
