"""With large letters in a narrow window the pages of cards need no scrolling sideways."""

from PySide6.QtWidgets import QScrollArea

from desktop_agent.vocabulary.conduct.modes import Mode
from desktop_agent.vocabulary.conduct.rules import Rule, RuleEffect, RuleScope
from desktop_agent.vocabulary.conduct.specialists import Specialist
from desktop_agent.vocabulary.mcp.servers import HttpConnection, McpServer, StdioConnection
from desktop_agent.vocabulary.preferences import Modes, Preferences, Specialists
from ui.look.style import apply_look
from ui.look.theme import ThemeSource
from ui.preferences.settings_dialog import SettingsDialog

RULE = Rule(effect=RuleEffect.DENY, tool="fetch_page", scope=RuleScope.ALWAYS, origin="a mode")
MODE = Mode(name="careful", title="Careful", rules=(RULE,))
SPECIALIST = Specialist(name="reviewer", description="Reads code", system_prompt="You review.")
SERVERS = (
    McpServer(id="files", title="Files", connection=StdioConnection(command="npx", args=("a",), secret_env=("KEY",))),
    McpServer(id="web", title="Web", connection=HttpConnection(url="https://a.example/mcp", sign_in=True)),
)


def sideways(page):
    """How far a page scrolls to the side."""
    area = page.parentWidget()
    while not isinstance(area, QScrollArea):
        area = area.parentWidget()
    return area.horizontalScrollBar().maximum()


def test_nothing_scrolls_sideways(qtbot, qapp):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, 150)
    apply_look(qapp, themes)
    kept = Preferences(modes=Modes(defined=(MODE,)), specialists=Specialists(defined=(SPECIALIST,)))
    dialog = SettingsDialog(themes, kept)
    qtbot.addWidget(dialog)
    dialog.resize(820, 700)
    dialog.tool_servers.show_servers(SERVERS)
    dialog.show()
    servers, modes, specialists = dialog.tool_servers, dialog.modes, dialog.specialists

    def settled(page):
        qtbot.wait(20)
        assert dialog.width() == 820
        return sideways(page)

    try:
        dialog.open_tool_servers()
        assert settled(servers) == 0
        for each in SERVERS:
            servers.edit(each.id)
            assert settled(servers) == 0
            servers._editor.cancelled.emit()
        dialog.open_modes()
        assert settled(modes) == 0
        modes.edit("careful")
        assert settled(modes) == 0
        modes._editor._rules._edit(RULE)
        assert settled(modes) == 0
        dialog.open_specialists()
        assert settled(specialists) == 0
        specialists.edit("reviewer")
        assert settled(specialists) == 0
    finally:
        qapp.setStyleSheet("")
        qapp.setFont(font)
        qapp.setPalette(palette)
