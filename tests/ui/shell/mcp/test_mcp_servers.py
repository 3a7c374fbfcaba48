"""The page of MCP servers in the real window, with a real server behind it."""

import asyncio
import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QListView, QPlainTextEdit, QPushButton

from desktop_agent.mcp.oauth_records import OAuthRecord
from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import HttpConnection, McpServer, StdioConnection
from desktop_agent.types.tool_calls import ToolClass
from tests.fakes.mcp_client import own_server
from tests.fakes.mcp_site import site
from tests.fakes.qt_loop import until
from ui.shell.mcp import NOTICES_KEY


class Page:
    """The page, used by the names on it as a person does."""

    def __init__(self, screen):
        self.screen = screen
        dialog = screen.desk._settings_presenter.show()
        dialog.show_page("mcp")
        self.form = dialog.mcp_servers

    def part(self, kind, name):
        parts = [
            widget for widget in self.form.findChildren(kind) if widget.accessibleName() == name and widget.isVisible()
        ]
        return parts[0] if parts else None

    async def wait_for(self, kind, name):
        return await until(lambda: self.part(kind, name))

    def press(self, name):
        button = self.part(QPushButton, name)
        assert button is not None, name
        assert button.isEnabled(), name
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def write(self, name, text):
        field = self.part(QLineEdit, name)
        assert field is not None, name
        QTest.keyClicks(field, text)

    @property
    def words(self):
        return "\n".join(label.text() for label in self.form.findChildren(QLabel) if label.isVisible())

    @property
    def servers(self):
        return self.screen.engine.preferences.mcp.servers

    def write_program(self, title="Own tools"):
        program, *arguments = own_server()
        self.press("Add program…")
        self.write("Title", title)
        self.write("Program", program)
        self.part(QPlainTextEdit, "Arguments").setPlainText("\n".join(arguments))

    async def add_program(self):
        self.write_program()
        self.press("Save")
        await self.wait_for(QPushButton, "Test Own tools")


def test_a_program_is_added_tried_restricted_and_removed(on_screen, kept):
    async def work(screen):
        page = Page(screen)
        assert "No MCP server is set up yet" in page.words
        page.write_program()
        page.press("Add variable")
        page.write("Name of the variable", "TOKEN")
        page.write("Value of the variable", "t0ken-value")
        page.press("Save")
        await page.wait_for(QPushButton, "Test Own tools")
        (server,) = page.servers
        assert (server.id, server.connection.secret_env) == ("own-tools", ("TOKEN",))
        assert kept == {"mcp/own-tools/TOKEN": "t0ken-value"}
        assert "Waits until a conversation needs it." in page.words
        page.press("Test Own tools")
        rows = (await page.wait_for(QListView, "Tools of Own tools")).model()
        assert "Running · protocol" in page.words
        assert rows.index(0, 0).data() == "add"
        assert "Can change things" in rows.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole)
        await restrict(page, rows)
        await remove(page)
        assert kept == {}

    async def restrict(page, rows):
        tools = page.screen.engine.mcp.tools
        assert "own-tools__add" in {tool.name for tool in tools(None)}
        menu = page.part(QComboBox, "How to treat add")
        menu.setCurrentIndex(1)
        menu.activated.emit(1)
        await until(lambda: page.servers[0].classes == {"add": ToolClass.READ_ONLY})
        await until(lambda: "Only reads" in rows.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole))
        QTest.keyClick(page.part(QListView, "Tools of Own tools"), Qt.Key.Key_Space)
        await until(lambda: page.servers[0].off_tools == {"add"})
        await until(lambda: "own-tools__add" not in {tool.name for tool in tools(None)})
        await until(lambda: rows.index(0, 0).data(Qt.ItemDataRole.CheckStateRole) == Qt.CheckState.Unchecked)

    async def remove(page):
        page.press("Remove Own tools")
        QTest.keyClick(page.part(QPushButton, "Keep Own tools"), Qt.Key.Key_Escape)
        assert len(page.servers) == 1
        assert page.part(QPushButton, "Keep Own tools") is None
        page.press("Remove Own tools")
        page.press("Really remove Own tools")
        await until(lambda: page.servers == ())
        await until(lambda: "No MCP server is set up yet" in page.words)

    on_screen(work)


def test_what_was_written_stays_when_it_cannot_be_kept(on_screen):
    async def work(screen):
        page = Page(screen)
        page.write_program()
        page.press("Add variable")
        page.write("Name of the variable", "TOKEN")
        page.write("Value of the variable", "t0ken-value")
        page.press("Save")
        await until(lambda: "keyring" in page.words.splitlines()[-1])
        assert page.servers == ()
        assert page.part(QLineEdit, "Value of the variable").text() == "t0ken-value"
        kind = page.part(QComboBox, "Where the value is kept")
        kind.setCurrentIndex(kind.findText("Plain"))
        page.press("Save")
        await until(lambda: page.servers)
        assert page.servers[0].connection.env == {"TOKEN": "t0ken-value"}

    on_screen(work)


def test_a_server_is_turned_off_and_on_and_its_log_is_live(on_screen):
    async def work(screen):
        page = Page(screen)
        await page.add_program()
        page.press("Test Own tools")
        await page.wait_for(QListView, "Tools of Own tools")
        page.press("Show the log of Own tools")
        live = screen.engine.mcp.server("own-tools", None)
        await live.call("flood", {"lines": 3})
        rows = (await page.wait_for(QListView, "Log of Own tools")).model()
        await until(lambda: any("line 2" in line.text for line in rows.lines()))
        page.part(QCheckBox, "Use Own tools").click()
        await until(lambda: not page.servers[0].on)
        await until(lambda: "Off" in page.words.splitlines())
        page.press("Test Own tools")
        await until(lambda: "Off. The last test succeeded" in page.words)
        assert screen.engine.mcp.tools(None) == ()
        assert not page.servers[0].on
        page.part(QCheckBox, "Use Own tools").click()
        await until(lambda: "Waits until a conversation needs it." in page.words)

    on_screen(work)


def test_one_that_cannot_be_started_says_why_and_what_to_do(on_screen):
    async def work(screen):
        page = Page(screen)
        page.write_program("Broken")
        arguments = page.part(QPlainTextEdit, "Arguments")
        arguments.setPlainText(f"{arguments.toPlainText()}\nrefuses")
        page.press("Save")
        await page.wait_for(QPushButton, "Test Broken")
        page.press("Test Broken")
        await until(lambda: "the configuration is missing" in page.words)
        assert "then press Test" in page.words
        await until(lambda: page.part(QPushButton, "Test Broken").isEnabled())

    on_screen(work)


def test_servers_are_imported_once_they_were_seen(on_screen, kept):
    async def work(screen):
        page = Page(screen)
        page.press("Import…")
        entry = {"command": "npx", "args": ["-y", "files"], "env": {"API_TOKEN": "s3cret-value"}}
        config = json.dumps({"mcpServers": {"files": entry, "notes": {**entry, "args": ["a b"]}}})
        page.part(QPlainTextEdit, "Servers as JSON").setPlainText(config)
        line = await page.wait_for(QPlainTextEdit, "Command line of notes")
        assert line.toPlainText() == "npx 'a b'"
        assert "Goes to the keyring: API_TOKEN" in page.words
        assert "s3cret-value" not in page.words
        assert (page.servers, kept) == ((), {})
        page.part(QCheckBox, "Import files").click()
        page.press("Import 1 server")
        await page.wait_for(QPushButton, "Edit notes")
        assert [server.id for server in page.servers] == ["notes"]
        assert kept == {"mcp/notes/API_TOKEN": "s3cret-value"}
        await until(lambda: page.part(QPlainTextEdit, "Servers as JSON") is None)

    on_screen(work)


def test_a_secret_without_a_value_is_not_called_kept_when_the_server_is_edited(on_screen, kept):
    async def work(screen):
        server = McpServer(id="own", title="Own", connection=StdioConnection(command="x", secret_env=("TOKEN",)))
        await screen.desk.mcp_servers.imports.save((server,))
        page = Page(screen)
        page.press("Edit Own")
        value = page.part(QLineEdit, "Value of the variable")
        await until(lambda: value.placeholderText() == "Value")
        page.press("Cancel")
        kept["mcp/own/TOKEN"] = "t0ken-value"
        page.press("Edit Own")
        found_secrets = []
        screen.desk.mcp_servers.secrets_found.connect(lambda *secret: found_secrets.append(secret))
        await until(lambda: found_secrets)
        assert page.part(QLineEdit, "Value of the variable").placeholderText() == "Kept in the keyring"

    on_screen(work)


def test_signing_in_that_fails_is_said_where_it_was_begun(on_screen, kept):
    async def work(screen):
        connection = HttpConnection(url="http://127.0.0.1:9/mcp", sign_in=True)
        await screen.desk.mcp_servers.imports.save((McpServer(id="web", title="Web", connection=connection),))
        page = Page(screen)
        page.press("Sign in to Web")
        assert page.form.window().focusWidget() is page.part(QPushButton, "Cancel signing in")
        await page.wait_for(QPushButton, "Sign in to Web")
        assert page.part(QPushButton, "Cancel signing in") is None
        assert "could not be reached" in page.words.split("127.0.0.1:9/mcp")[1]

    on_screen(work)


def test_a_sign_in_that_is_kept_can_be_ended_before_the_server_was_started(on_screen, kept):
    async def work(screen):
        connection = HttpConnection(url="http://127.0.0.1:9/mcp", sign_in=True)
        server = McpServer(id="web", title="Web", connection=connection)
        record = OAuthRecord(url=connection.url, tokens={"access_token": "t0ken"}, client={"client_id": "c"})
        kept[server.sign_in_secret_name] = record.model_dump_json()
        await screen.desk.mcp_servers.imports.save((server,))
        page = Page(screen)
        await page.wait_for(QPushButton, "Sign out of Web")
        assert page.part(QPushButton, "Sign in to Web") is None
        page.press("Sign out of Web")
        await page.wait_for(QPushButton, "Sign in to Web")
        assert page.part(QPushButton, "Sign out of Web") is None
        assert kept == {}

    on_screen(work)


@pytest.fixture
def opened_hosts(monkeypatch):
    """Collect the hosts of the pages that are opened in the browser."""
    hosts = []
    monkeypatch.setattr("ui.bridge.desktop.opening.shutil.which", lambda _: None)
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: hosts.append(url.host()) or True)
    return hosts


async def begin_sign_in(screen, url):
    """Add the server “Web” and sign in to it; return the page of the settings."""
    connection = HttpConnection(url=url, sign_in=True)
    await screen.desk.mcp_servers.imports.save((McpServer(id="web", title="Web", connection=connection),))
    page = Page(screen)
    page.press("Sign in to Web")
    return page


def test_a_page_that_is_not_opened_is_said_and_the_words_stay(on_screen, kept, opened_hosts):
    async def work(screen):
        async with site() as server:
            server.metadata = {"authorization_endpoint": "https://10.0.0.1/authorize"}
            page = await begin_sign_in(screen, server.url)
            await page.wait_for(QPushButton, "Sign in to Web")
            for _ in range(20):
                await asyncio.sleep(0)
            assert "has an address that is not allowed" in page.words
            assert "https://" in page.words
            assert not opened_hosts

    on_screen(work)


def test_a_page_on_the_host_that_the_person_entered_is_opened(on_screen, kept, opened_hosts):
    async def work(screen):
        async with site(host="127.0.0.2") as server:
            page = await begin_sign_in(screen, server.url)
            await until(lambda: bool(opened_hosts))
            assert opened_hosts == ["127.0.0.2"]
            page.press("Cancel signing in")
            await page.wait_for(QPushButton, "Sign in to Web")

    on_screen(work)


def test_a_server_that_is_edited_while_somebody_signs_in_can_be_signed_in_to_again(on_screen, kept, opened_hosts):
    async def work(screen):
        async with site(host="127.0.0.2") as server:
            page = await begin_sign_in(screen, server.url)
            await until(lambda: bool(opened_hosts))
            page.press("Edit Web")
            (await page.wait_for(QLineEdit, "Title")).setText("Net")
            page.press("Save")
            (await page.wait_for(QPushButton, "Sign in to Net")).click()
            await until(lambda: len(opened_hosts) == 2)
            assert opened_hosts == ["127.0.0.2"] * 2
            page.press("Cancel signing in")
            await page.wait_for(QPushButton, "Sign in to Net")

    on_screen(work)


def noticed(screen):
    return screen.banners._shown[NOTICES_KEY].words


def test_what_is_no_longer_true_of_a_server_goes_from_the_window(on_screen):
    async def work(screen):
        notifier = screen.engine.mcp.notifier
        starting, changed = Sentence("The server is still starting."), Sentence("A tool has changed.")
        for _ in range(2):
            notifier.notify(changed)
            notifier.notify(starting)
            assert noticed(screen) == f"{changed}\n{starting}"
            notifier.withdraw(starting)
            assert noticed(screen) == str(changed)
        notifier.withdraw(changed)
        assert screen.banners.keys == []
        await screen.idle()

    on_screen(work)


def test_a_closed_banner_does_not_come_back_with_the_next_notice(on_screen):
    async def work(screen):
        notifier = screen.engine.mcp.notifier
        notifier.notify(Sentence("The first."))
        screen.press("Close this message")
        assert screen.banners.keys == []
        notifier.notify(Sentence("The second."))
        assert noticed(screen) == "The second."
        await screen.idle()

    on_screen(work)
