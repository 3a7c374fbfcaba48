"""What MCP servers ask of the person, and what they offer in the composer."""

import asyncio
import sys
from dataclasses import replace

from PySide6.QtWidgets import QLineEdit

from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.mcp import (
    ElicitationRequest,
    McpPrompt,
    McpPromptArgument,
    McpResource,
    McpResourceTemplate,
    McpServer,
    McpServerCatalog,
    SamplingAnswer,
    SamplingModel,
    SamplingRequest,
    StdioConnection,
)
from desktop_agent.types.messages import AttachedText
from desktop_agent.types.preferences import McpPreferences
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import Price
from desktop_agent.types.tool_calls import ToolSpec
from tests.gallery.desk import Desk
from tests.gallery.paintings import painting
from tests.gallery.screens import scene
from ui.bridge.mcp.requests import McpCatalog, McpRequests, ServerCatalog
from ui.bridge.mcp.servers import McpNotices
from ui.composer.attachment_items import ServerPicture
from ui.shell.mcp import McpPresenter

BOOKING = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name on the ticket", "minLength": 2},
        "mail": {"type": "string", "title": "Where the ticket goes", "format": "email"},
        "seats": {"type": "integer", "title": "Seats", "minimum": 1, "maximum": 6, "default": 2},
        "class": {
            "type": "string",
            "title": "Class",
            "oneOf": [{"const": "1", "title": "First"}, {"const": "2", "title": "Second"}],
            "default": "2",
        },
        "meals": {
            "type": "array",
            "title": "Meals",
            "items": {"anyOf": [{"const": "b", "title": "Breakfast"}, {"const": "d", "title": "Dinner"}]},
            "default": ["b"],
        },
        "quiet": {"type": "boolean", "title": "In the quiet part of the train"},
        "api_token": {"type": "string", "title": "Your API token", "description": "From the page of your account."},
    },
    "required": ["name", "mail", "seats", "class"],
}
REVIEW = SamplingRequest(
    "Project notes",
    (
        (
            "user",
            "Sum up these notes for the weekly mail:\n\n- the import reads a file once\n- invoices are kept for ten "
            "years\n- who left in 2019 is deleted in March",
        ),
        ("assistant", "Which language?"),
        ("user", "English, three sentences at most."),
    ),
    "You write for people who were not there. Name no customers.",
    1000,
    SamplingModel("Studio", "aurora-large", "Aurora Large", Price(input=3, output=15)),
)
SEARCH = {
    "type": "object",
    "properties": {"words": {"type": "string"}, "since": {"type": "string", "format": "date"}},
    "required": ["words"],
}
WITH_TOOLS = replace(
    REVIEW,
    messages=(
        ("user", "Sum up what was decided about the import for the weekly mail."),
        ("assistant", ToolUse(id="1", name="search_notes", input={"words": "import"})),
        ("user", ToolResult(tool_use_id="1", content=(Text(text="week 12: the import reads a file once"),))),
    ),
    tools=(ToolSpec("search_notes", "Searches the notes of the project, newest first.", SEARCH),),
)
OFFERED = (
    ServerCatalog(
        "notes",
        "Project notes",
        McpServerCatalog(
            "notes",
            "Project notes",
            (
                McpResource("notes://week/12", "w12", "Week 12", "What was decided", "text/markdown", 4_210),
                McpResource("notes://sketch", "sketch", "Sketch of the import", "", "image/png", 81_000),
            ),
            (McpResourceTemplate("notes://week/{number}", "week", "Notes of a week", ""),),
            (
                McpPrompt("mail", "Weekly mail", "Sum up a week for people who were not there", ()),
                McpPrompt(
                    "review",
                    "Review a change",
                    "With the rules of this project",
                    (
                        McpPromptArgument("branch", "The branch to be looked at", required=True),
                        McpPromptArgument("focus", "What to look at first", required=False),
                    ),
                ),
            ),
        ),
    ),
    ServerCatalog("tickets", "Tickets"),
)


def work(desk: Desk, *, offered: bool = False) -> tuple[McpPresenter, McpRequests]:
    """Servers in the window, as the program adds them."""
    asking, catalog = desk.library.requests, McpCatalog(desk.engine, desk.tasks, desk.window)
    desk.engine.consent_handlers = asking.consent_handlers
    window = desk.window
    if offered:
        catalog._catalogs = {server.server_id: server for server in OFFERED}
        catalog.refresh = lambda _: None
    presenter = McpPresenter(
        catalog,
        McpNotices(desk.engine, window),
        desk.tasks,
        desk.library,
        window,
    )
    return presenter, asking


async def set_up(desk: Desk) -> None:
    """Add two servers that are on but never started; OFFERED is what they offer."""
    servers = tuple(
        McpServer(id=server.server_id, title=server.title, connection=StdioConnection(command=sys.executable))
        for server in OFFERED
    )
    await desk.engine.change_preferences(
        desk.engine.preferences.model_copy(update={"mcp": McpPreferences(servers=servers)})
    )
    desk.begin(workspace=True)
    await asyncio.sleep(0.1)


async def elicit(desk: Desk, *requests: ElicitationRequest) -> McpPresenter:
    presenter, asking = work(desk)
    desk.begin()
    await asyncio.sleep(0.3)
    for request in requests:
        desk.tasks.start(asking._elicit(request))
    await asyncio.sleep(0.8)
    return presenter


@scene("server-form")
async def form(desk: Desk) -> None:
    message = "I found two trains on Friday at 9:04.\nTell me for whom, and I book them."
    presenter = await elicit(desk, ElicitationRequest("Train tickets", message, BOOKING))
    page = presenter.elicitation._dialog.current
    name, mail = (row.findChild(QLineEdit) for row in page.view.rows[:2])
    name.insert("Ada Lovelace")
    mail.insert("ada at example.org")
    mail.textEdited.emit(mail.text())


@scene("server-form-end", height=900)
async def form_end(desk: Desk) -> None:
    presenter = await elicit(desk, ElicitationRequest("Train tickets", "Two seats are left.", BOOKING))
    bar = presenter.elicitation._dialog.current.view.verticalScrollBar()
    bar.setValue(bar.maximum())


@scene("server-page")
async def page(desk: Desk) -> None:
    words = "To read your calendar I need you to sign in with your provider."
    address = "https://accounts.xn--exmple-cua.org/authorize?client=tickets&state=81723&scope=calendar.read"
    await elicit(desk, ElicitationRequest("Train tickets", words, {}, address))


@scene("server-several")
async def several(desk: Desk) -> None:
    form = {"type": "object", "properties": {"week": {"type": "integer", "title": "Week", "minimum": 1}}}
    other = desk.engine.new_session()
    other.change_record(title="Sum up the week for the mail")
    desk.library.activity._working[other.record.id] = other
    await elicit(
        desk,
        ElicitationRequest("Project notes", "Which week?", form, conversation_id=other.record.id),
        ElicitationRequest("Train tickets", "Please pay.", {}, "http://pay.example.org@198.51.100.7/now"),
    )


@scene("server-sampling")
async def sampling(desk: Desk) -> None:
    _, asking = work(desk)
    desk.begin()
    await asyncio.sleep(0.3)
    desk.tasks.start(asking._approve_sampling(REVIEW))
    await asyncio.sleep(0.8)


@scene("server-while-writing")
async def while_writing(desk: Desk) -> None:
    _, asking = work(desk)
    desk.begin()
    desk.window.page.composer.editor.setPlainText("Please look at the tests")
    desk.window.page.composer.editor.setFocus()
    await asyncio.sleep(0.3)
    desk.tasks.start(asking._approve_sampling(REVIEW))
    await asyncio.sleep(0.8)


@scene("server-review-tools", height=900)
async def review_with_tools(desk: Desk) -> None:
    _, asking = work(desk)
    desk.begin()
    await asyncio.sleep(0.3)
    desk.tasks.start(asking._approve_sampling(WITH_TOOLS))
    await asyncio.sleep(0.8)


@scene("server-answer-tools", height=900)
async def answer_with_tools(desk: Desk) -> None:
    _, asking = work(desk)
    desk.begin()
    await asyncio.sleep(0.3)
    calls = (ToolUse(id="2", name="search_notes", input={"words": "invoices kept", "since": "2024-01-01"}),)
    answer = SamplingAnswer(
        "I look for what was decided about invoices.", "aurora-large", Usage(cost=0.001), calls=calls
    )
    desk.tasks.start(asking._approve_answer(WITH_TOOLS, answer))
    await asyncio.sleep(0.8)


@scene("server-answer")
async def answer(desk: Desk) -> None:
    _, asking = work(desk)
    desk.begin()
    await asyncio.sleep(0.3)
    text = (
        "The import reads each file once now and takes half the time. Invoices stay for ten years. "
        "Records of people who left in 2019 are deleted in March."
    )
    usage = Usage(input_tokens=120, output_tokens=40, cost=0.001)
    desk.tasks.start(asking._approve_answer(REVIEW, SamplingAnswer(text, "aurora-large", usage)))
    await asyncio.sleep(0.8)


@scene("offers-popup")
async def offers(desk: Desk) -> None:
    await set_up(desk)
    presenter, _ = work(desk, offered=True)
    presenter.catalog.open()


@scene("offers-arguments")
async def arguments(desk: Desk) -> None:
    await set_up(desk)
    presenter, _ = work(desk, offered=True)
    presenter.catalog.open()
    rows = presenter.catalog._popup.panel.rows
    row = next(index for index in range(rows.rowCount()) if rows.row(index).text == "Review a change")
    presenter.catalog._popup.panel.choose(rows.index(row))


@scene("offers-chips")
async def chips(desk: Desk) -> None:
    await set_up(desk)
    work(desk, offered=True)
    composer = desk.window.page.composer
    composer.set_draft("What follows from this for the mail?")
    composer.attachments.add_items([AttachedText("Week 12", "decided " * 500, "notes://week/12", "Project notes")])
    composer.attachments.add_fetches(
        [
            composer.attachments.create_picture_fetch(
                ServerPicture("Project notes", "Sketch of the import", painting(900, 600, 3))
            )
        ]
    )
    await asyncio.sleep(0.5)
