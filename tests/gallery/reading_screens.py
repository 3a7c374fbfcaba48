"""Ways through a conversation, and ways to set it: find, caret, selection, menu, density, sizes, widths."""

import asyncio

from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool, ToolRegistry
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import Effect, ToolClass
from tests.fakes.scripted_provider import Turn
from tests.gallery import answers, written
from tests.gallery.conduct_screens import facts
from tests.gallery.conversation_screens import said
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from tests.gallery.tools import RunTestsInput
from ui.transcript.viewport.selection import TextPosition


async def talk(desk: Desk) -> None:
    await desk.show_stored(
        Message.user("Why does the import take so long?"),
        said(answers.PLAN, answers.THOUGHT),
        Message.user("And Lisbon?"),
        said(answers.RICH),
        title="Refactor the import job",
    )
    await asyncio.sleep(0.2)
    desk.window.page.transcript.scroller.scroll_to_start()


async def prefer(desk: Desk, **appearance: object) -> None:
    preferences = desk.engine.preferences
    new_appearance = preferences.appearance.model_copy(update=appearance)
    await desk.engine.change_preferences(preferences.model_copy(update={"appearance": new_appearance}))


@scene("reading-find")
async def find(desk: Desk) -> None:
    await talk(desk)
    page = desk.window.page
    page.navigation.find()
    page.navigation.find_bar._field.setText("import")
    await until(lambda: page.navigation.find_bar._status.complete and page.navigation.find_bar._status.total)
    page.navigation.find_bar.step(1)
    page.navigation.find_bar.step(1)


@scene("reading-find-nothing", 560, 760)
async def find_nothing(desk: Desk) -> None:
    await talk(desk)
    page = desk.window.page
    page.navigation.find()
    page.navigation.find_bar._field.setText("unfindable words")
    await until(lambda: page.navigation.find_bar._status.complete)
    await asyncio.sleep(0.2)


@scene("reading-caret")
async def caret(desk: Desk) -> None:
    await talk(desk)
    transcript = desk.window.page.transcript
    desk.window.page.navigation.toggle_caret()
    transcript.caret.move_to(TextPosition(2, 0, 24))


@scene("reading-selection")
async def selection(desk: Desk) -> None:
    await talk(desk)
    desk.window.page.transcript.row_viewport.select(TextPosition(2, 0, 12), TextPosition(2, 4, 90))


@scene("reading-menu")
async def menu(desk: Desk) -> None:
    await talk(desk)
    transcript = desk.window.page.transcript
    transcript.row_viewport.select(TextPosition(2, 0, 12), TextPosition(2, 2, 10))
    transcript.context_menu.popup_by_key(transcript)
    await asyncio.sleep(0.3)


def set_as(name: str, height: int = 900, **appearance: object) -> None:
    @scene(f"reading-{name}", height=height)
    async def shown(desk: Desk) -> None:
        await prefer(desk, **appearance)
        await desk.show_stored(
            Message.user("Why does the import take so long?"),
            said(answers.PLAN, answers.THOUGHT),
            Message.user("And a list, please."),
            said(written.LISTS),
            title="Refactor the import job",
        )
        await asyncio.sleep(0.3)
        desk.window.page.transcript.scroller.scroll_to_start()


set_as("compact", density="compact")
set_as("large", text_size=17.0)
set_as("serif", font="Noto Serif", line_width="narrow")
set_as("full-width", line_width="full")


@scene("reading-compact-notices", height=900)
async def compact_notices(desk: Desk) -> None:
    await prefer(desk, density="compact")
    await facts(desk)


@scene("tool-call-live", height=700)
async def live(desk: Desk) -> None:
    async def run(_input: RunTestsInput, call: RunningCall) -> tuple[Text, ...]:
        call.progress(written.COLOURED)
        await asyncio.Event().wait()
        return (Text(text="never"),)

    slow = Tool(
        "run_tests", "Run the tests", ModelSchema(RunTestsInput), run, ToolClass.READ_ONLY, frozenset({Effect.READ})
    )
    desk.engine._tools_for = lambda _: ToolRegistry((slow,))
    desk.play(Turn(ToolUse(id="call-1", name="run_tests", input={"folder": "tests"})))
    await desk.converse("Run the tests, please.", workspace=True, title="Refactor the import job")
    await asyncio.sleep(4.5)
