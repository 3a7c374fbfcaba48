"""The page of MCP servers: what is set up, written, offered, imported and said."""

import json
import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLineEdit, QWidget

from desktop_agent.types.mcp import HttpConnection, McpLogLine, McpServer, StdioConnection
from desktop_agent.types.messages import now
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from ui.settings.mcp_servers.mcp_servers_form import McpServersForm

SERVER = str(Path(__file__).with_name("tickets_server.py"))
FILES = StdioConnection(
    command="npx", args=("-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents", "/home/ada/My notes")
)
FOREIGN = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents"]},
        "GitHub": {
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"],
            "env": {"GITHUB_TOKEN": "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "LOG": "warn"},
        },
        "Sentry": {"url": "https://mcp.sentry.dev/mcp", "headers": {"Authorization": "Bearer ${input:sentry}"}},
        "Old weather": {"type": "sse", "url": "https://weather.example.com/sse"},
    }
}


def tickets(*words: str, server_id: str = "tickets", title: str = "Tickets", **changes: object) -> McpServer:
    connection = StdioConnection(command=sys.executable, args=(SERVER, *words))
    return McpServer(id=server_id, title=title, connection=connection, **changes)


async def open_servers(desk: Desk, *servers: McpServer) -> McpServersForm:
    await desk.tool_servers.imports.save(servers)
    dialog = desk.settings.show()
    dialog.resize(820, desk.window.height() - 40)
    dialog.show_page("mcp")
    return dialog.mcp_servers


async def try_out(desk: Desk, form: McpServersForm, server_id: str, state: str = "running") -> None:
    form.card(server_id).test()
    await until(lambda: desk.tool_servers.state(server_id).state == state)
    await until(lambda: form.card(server_id)._test.isEnabled() and (form.card(server_id).tools or state != "running"))


@scene("settings-tool-servers-none")
async def none(desk: Desk) -> None:
    await open_servers(desk)


@scene("settings-tool-servers", height=1100)
async def several(desk: Desk) -> None:
    form = await open_servers(
        desk,
        tickets(trusted=True),
        tickets("refuses", server_id="staging", title="Tickets, staging"),
        McpServer(id="files", title="Files", connection=FILES),
        McpServer(
            id="sentry",
            title="Sentry",
            connection=HttpConnection(url="https://mcp.sentry.dev/mcp", headers=("X-Project",), sign_in=True),
        ),
        McpServer(id="browser", title="Browser", on=False, connection=StdioConnection(command="uvx", args=("pilot",))),
    )
    await try_out(desk, form, "tickets")
    form.card("tickets")._toggle_tools()
    await try_out(desk, form, "staging", "failed")
    form.card("browser")._removal.button.click()


@scene("settings-tool-server-tools", height=1000)
async def tools(desk: Desk) -> None:
    form = await open_servers(desk, tickets(trusted=True, off_tools=frozenset({"close_ticket"})))
    await try_out(desk, form, "tickets")


@scene("settings-tool-server-arguments", height=1300)
async def arguments(desk: Desk) -> None:
    form = await open_servers(desk, tickets(trusted=True))
    await try_out(desk, form, "tickets")
    form.card("tickets").tools._arguments._toggle()
    form.card("tickets").tools._arguments._toggle_raw()


@scene("settings-tool-server-log", height=900)
async def log(desk: Desk) -> None:
    form = await open_servers(desk, tickets())
    await try_out(desk, form, "tickets")
    card = form.card("tickets")
    card._toggle_tools()
    card._toggle_log()
    await until(card.log.model.rowCount)
    card.log.add_lines(
        [
            McpLogLine(now(), "info", "search_tickets: 12 of 418"),
            McpLogLine(now(), "debug", "cache hit: labels"),
            McpLogLine(now(), "warning", "the answer was cut after 50 tickets"),
            McpLogLine(now(), "error", "write_comment: 403 Forbidden " + "(you may not write in this project) " * 6),
        ]
    )
    card.log._list.setCurrentIndex(card.log.model.index(card.log.model.rowCount() - 1))
    card.log._list.setFocus()


@scene("settings-tool-server-program", height=1000)
async def program(desk: Desk) -> None:
    connection = FILES.model_copy(update={"env": {"LOG": "warn"}, "secret_env": ("FILES_TOKEN",)})
    form = await open_servers(desk, McpServer(id="files", title="Files", connection=connection))
    form.edit("files")


def field_of(form: QWidget, editor: str, name: str) -> QLineEdit:
    """Return the field with this name in the texts of the class `editor`."""
    name = QCoreApplication.translate(editor, name)
    return next(field for field in form.findChildren(QLineEdit) if field.accessibleName() == name)


@scene("settings-tool-server-address", height=1000)
async def address(desk: Desk) -> None:
    connection = HttpConnection(url="https://mcp.sentry.dev/mcp", headers=("X-Project",), sign_in=True)
    form = await open_servers(desk, McpServer(id="sentry", title="Sentry", connection=connection))
    form.edit("sentry")
    field_of(form, "HttpFields", "Address").setText("http://mcp.example.org/mcp")


@scene("settings-tool-server-line", height=900)
async def whole_line(desk: Desk) -> None:
    form = await open_servers(desk)
    form.add("program")
    field_of(form, "ServerEditor", "Title").setText("Files")
    field_of(form, "StdioFields", "Program").setText('npx -y server-files --token=abc "/home/ada/My notes"')


@scene("settings-tool-servers-import", height=1100)
async def imported(desk: Desk) -> None:
    form = await open_servers(desk)
    form.start_import()
    form._import.show_text(json.dumps(FOREIGN, indent=2))
