"""What a real MCP server offers, put into a message."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QFrame, QLineEdit, QPushButton, QToolButton

from desktop_agent.types.blocks import Text
from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.preferences import McpPreferences
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import UntrustedSource
from tests.desktop_agent.mcp.reference_servers import node_server
from tests.fakes.mcp_client import own_server
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.frame.patience import PATIENCE
from tests.ui.shell.mcp.everything import TITLE, turn_on

OK = Turn(ContentDelta("ok"))
SERVER = UntrustedSource("mcp", TITLE, "every")


@pytest.fixture(autouse=True)
def popups_open(request, qt_messages):
    # Skipped here where the server cannot be had: what is expected of Qt would not be said.
    node_server("everything")
    if "banner" not in request.node.name:
        qt_messages.expect("grabbing the keyboard")


def popup(screen):
    return screen.find(QFrame, "From MCP servers")


def rows(screen):
    model = popup(screen).panel.rows
    return [model.row(index).text for index in range(model.rowCount())]


async def popup_with(screen, text):
    """Wait until the popup has this row, and return the popup."""
    await until(lambda: popup(screen) is not None and text in rows(screen))
    return popup(screen)


def search(screen):
    return next(field for field in popup(screen).findChildren(QLineEdit) if field.isVisible())


async def take(screen, text):
    await popup_with(screen, text)
    QTest.keyClicks(search(screen), text)
    assert text in rows(screen)
    QTest.keyClick(search(screen), Qt.Key.Key_Return)
    assert popup(screen) is None


def chips(screen):
    return [chip.accessibleName() for chip in screen.window.page.composer.attachments.chips]


def session(screen):
    return screen.engine._sessions[screen.conversation.id]


def prompt(screen):
    (message,) = (message for message in session(screen).history if message.role == "user")
    return message


async def fill(screen, title, **values):
    dialog = await screen.wait_for(QDialog, title)
    fields = {field.accessibleName(): field for field in dialog.findChildren(QLineEdit)}
    insert = next(button for button in dialog.findChildren(QPushButton) if button.accessibleName() == "Insert")
    for name, value in values.items():
        assert not insert.isEnabled()
        fields[name].setFocus()
        QTest.keyClicks(fields[name], value)
    QTest.mouseClick(insert, Qt.MouseButton.LeftButton)


def test_a_resource_goes_with_the_message_as_a_block_of_its_own_and_marks_the_conversation(on_screen):
    async def work(screen):
        assert screen.find(QToolButton, "Insert from a server") is None
        await turn_on(screen)
        screen.press("Insert from a server")
        assert rows(screen) == [TITLE, "Starting…"]
        await take(screen, "features.md")
        await until(lambda: screen.find(QToolButton, "Send").isEnabled())
        assert chips(screen) == ["Attached resource: features.md"]
        detail = screen.window.page.composer.attachments.chips[0]._detail.text()
        assert "KB · from Everything" in detail
        assert session(screen).permission_policy.untrusted_content.sources == ()
        await screen.say("What can it do?")
        first, second = prompt(screen).blocks
        assert first == Text(text="What can it do?")
        head, _, body = second.text.strip().partition("\n")
        whose = "[“features.md”, demo://resource/static/document/features.md, from the server “Everything”, up to "
        assert head.startswith(whose)
        assert body.startswith("# ")
        assert session(screen).permission_policy.untrusted_content.sources == (SERVER,)
        assert chips(screen) == []

    on_screen(work, OK)


def test_a_chip_that_is_taken_off_goes_nowhere(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.press("Insert from a server")
        await take(screen, "features.md")
        await until(lambda: screen.find(QToolButton, "Send").isEnabled())
        chip = screen.window.page.composer.attachments.chips[0]
        QTest.keyClick(chip, Qt.Key.Key_Delete)
        await screen.say("Hello")
        assert prompt(screen).blocks == (Text(text="Hello"),)
        assert session(screen).permission_policy.untrusted_content.sources == ()

    on_screen(work, OK)


def test_a_slash_opens_prompts_and_the_text_can_be_edited_before_it_is_sent(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.write("/")
        await popup_with(screen, "Simple Prompt")
        assert "features.md" not in rows(screen)
        await take(screen, "Simple Prompt")
        await until(screen.editor.toPlainText)
        written = screen.editor.toPlainText()
        assert not written.startswith("/")
        assert len(session(screen).history) == 0
        screen.write(" Shortly.")
        await screen.idle()
        await screen.say("")
        assert prompt(screen).text == f"{written} Shortly."
        assert session(screen).permission_policy.untrusted_content.sources == (SERVER,)

    on_screen(work, OK)


def test_a_draft_that_was_replaced_marks_nothing(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.write("/")
        await take(screen, "Simple Prompt")
        await until(screen.editor.toPlainText)
        screen.window.page.composer.set_draft("")
        await screen.say("Mine alone")
        assert session(screen).permission_policy.untrusted_content.sources == ()

    on_screen(work, OK)


def test_signs_that_open_nothing_and_what_is_typed_stays(on_screen):
    async def work(screen):
        screen.write("/")
        assert popup(screen) is None
        screen.editor.clear()
        await turn_on(screen)
        screen.write("either/or me@home")
        assert popup(screen) is None
        screen.write(" @")
        await popup_with(screen, "features.md")
        assert "Simple Prompt" not in rows(screen)
        QTest.keyClicks(search(screen), "ada")
        QTest.keyClick(search(screen), Qt.Key.Key_Escape)
        assert screen.editor.toPlainText() == "either/or me@home @ada"
        assert screen.editor.hasFocus()
        await screen.idle()

    on_screen(work)


def test_arguments_are_asked_for_and_completed_by_the_server(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.press("Insert from a server")
        await take(screen, "Team Management")
        dialog = await screen.wait_for(QDialog, "Team Management")
        assert dialog.isModal()
        line = next(field for field in dialog.findChildren(QLineEdit) if field.accessibleName() == "department")
        line.setFocus()
        QTest.keyClicks(line, "E")
        model = line.completer().model()
        await until(lambda: model.rowCount() > 0)
        assert model.stringList() == ["Engineering"]
        completions = line.completer().popup()
        await until(completions.isVisible)
        # Nothing shines through.
        assert completions.grab().toImage().pixelColor(completions.rect().center()).alpha() == 255
        completions.hide()
        line.clear()
        await fill(screen, "Team Management", department="Engineering", name="Alice")
        await until(lambda: "Alice" in screen.editor.toPlainText())
        assert "Engineering" in screen.editor.toPlainText()
        await screen.idle()

    on_screen(work)


def test_gaps_of_an_address_are_filled_in_and_what_is_no_text_is_refused(on_screen):
    async def work(screen):
        await turn_on(screen)
        screen.press("Insert from a server")
        await take(screen, "Dynamic Text Resource")
        await fill(screen, "Dynamic Text Resource", resourceId="7")
        await until(lambda: screen.find(QToolButton, "Send").isEnabled())
        assert chips(screen) == ["Attached resource: Dynamic Text Resource"]
        screen.press("Insert from a server")
        await take(screen, "Dynamic Blob Resource")
        await fill(screen, "Dynamic Blob Resource", resourceId="7")
        await until(lambda: "neither text nor a picture" in screen.window.page.composer._problems.text())
        assert chips(screen) == ["Attached resource: Dynamic Text Resource"]
        await screen.idle()

    on_screen(work)


def test_chips_and_whose_they_are_come_back_after_a_restart(on_screen, tmp_path):
    async def write(screen):
        await turn_on(screen)
        screen.write("About this:")
        screen.press("Insert from a server")
        await take(screen, "features.md")
        await until(lambda: screen.find(QToolButton, "Send").isEnabled())

    async def send(screen):
        await until(lambda: chips(screen) == ["Attached resource: features.md"])
        assert screen.editor.toPlainText() == "About this:"
        await screen.say(" go")
        assert [type(block) for block in prompt(screen).blocks] == [Text, Text]
        assert session(screen).permission_policy.untrusted_content.sources == (SERVER,)

    on_screen(write, folder=tmp_path / "kept")
    on_screen(send, OK, folder=tmp_path / "kept")


@pytest.mark.parametrize("way", ["popup", "banner"])
def test_a_server_that_does_not_start_says_why(on_screen, way):
    async def work(screen):
        server = McpServer(id="gone", title="Gone", connection=StdioConnection(command="/nowhere/at-all"))
        await screen.engine.change_preferences(
            screen.engine.preferences.model_copy(update={"mcp": McpPreferences(servers=(server,))})
        )
        if way == "banner":
            await screen.engine.mcp.ready(None, PATIENCE)
            await screen.engine.mcp.ready(None, PATIENCE)
            (banner,) = screen.banners._shown.values()
            assert banner.words.count("could not be started") == 1
            screen.press("MCP servers…")
            await screen.wait_for(QDialog, "Settings")
        else:
            screen.press("Insert from a server")
            await until(lambda: any("could not be started" in row for row in rows(screen)))
            popup(screen).hide()
        await screen.idle()

    on_screen(work)


def test_an_open_list_follows_a_server_that_offers_something_else_now(on_screen):
    async def work(screen):
        command, *args = own_server("renews")
        server = McpServer(id="own", title="Own", connection=StdioConnection(command=command, args=tuple(args)))
        preferences = screen.engine.preferences.model_copy(update={"mcp": McpPreferences(servers=(server,))})
        await screen.engine.change_preferences(preferences)
        screen.press("Insert from a server")
        await popup_with(screen, "first")
        assert "second" not in rows(screen)
        live = screen.engine.mcp.server("own", None)
        await live.call("renew", {})
        await popup_with(screen, "second")

    on_screen(work)


def test_what_is_filled_in_after_another_conversation_was_opened_goes_to_its_own(on_screen):
    async def work(screen):
        await turn_on(screen)
        await screen.say("First")
        first = screen.conversation.id
        screen.desk.library.new()
        await screen.say("Second")
        second = screen.conversation.id

        async def show(conversation_id):
            screen.desk.library.open(conversation_id)
            await until(lambda: screen.conversation.id == conversation_id)
            await screen.idle()

        for title, values in (
            ("Team Management", {"department": "Engineering", "name": "Alice"}),
            ("Dynamic Text Resource", {"resourceId": "7"}),
        ):
            await show(first)
            screen.press("Insert from a server")
            await take(screen, title)
            await screen.wait_for(QDialog, title)
            # A click on a notification.
            await show(second)
            await fill(screen, title, **values)
            await screen.idle()
        assert screen.editor.toPlainText() == ""
        assert chips(screen) == []
        await show(first)
        assert "Alice" in screen.editor.toPlainText()
        assert chips(screen) == ["Attached resource: Dynamic Text Resource"]

    on_screen(work, OK, OK)
