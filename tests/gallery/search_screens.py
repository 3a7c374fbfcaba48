"""The search in all conversations: results, nothing found, and a message that was opened from them."""

import asyncio

from PySide6.QtTest import QTest

from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.messages import Message, Role
from tests.gallery.conversation_screens import said
from tests.gallery.desk import MODELS, STUDIO, Desk, until
from tests.gallery.found_screens import home_of_others, show_found
from tests.gallery.screens import scene
from ui.sidebar.search_filters import ChosenFilters

HARBOURS = (
    (
        "Harbours of the north-west coast",
        Message.user("Which harbours between Porto and A Coruña can take a boat of 9 m with a draught of 1.8 m?"),
        said(
            "Viana do Castelo is the easiest: the marina lies behind the old bridge, and the **harbour office** "
            "answers on channel 9.\n\nBaiona has two marinas. The harbour is open in all winds but the north-west, "
            "and both have depths of 4 m.\n\n"
            + "\n\n".join(f"Place {n} is a small one: no berth for guests, a slip, and a café." for n in range(1, 30))
        ),
        Message.user("And is there a harbour master who speaks English?"),
        said("In Baiona yes. In Viana the harbour master does, his deputy does not."),
        Message.user("Then note the harbour of Baiona for Thursday."),
    ),
    (
        "Read the tide tables",
        Message.user("Take the tide tables in tides.csv and tell me when I can leave the harbour."),
        Message(
            role=Role.ASSISTANT,
            blocks=(
                Text(text="I read the file first."),
                ToolUse(id="1", name="read_file", input={"path": "harbour/tides.csv"}),
            ),
        ),
    ),
    (
        "Names for the harbour café",
        Message.user("Ten names for a small café, please."),
        said("Gull, Anchor, Ebb and Flow."),
    ),
    (
        "会议纪要",
        Message.user("港口 harbour 会议的纪要，请翻译成英文。"),
        said("Minutes of the meeting about the port."),
    ),
)


async def write_harbours(desk: Desk) -> None:
    for title, *messages in HARBOURS:
        record = await desk.engine.store.create_conversation(
            title=title, endpoint_id=STUDIO.id, model=MODELS[0].id, title_is_automatic=False
        )
        await desk.engine.store.commit(record.id, *messages)
    await desk.engine.store.search.index_all()
    desk.library.refresh()


async def search(desk: Desk, words: str) -> None:
    await write_harbours(desk)
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    await desk.engine.store.search.index_all()
    sidebar = desk.window.sidebar
    desk.window.window_layout.show_list()
    sidebar.focus_search()
    QTest.keyClicks(sidebar._search, words)
    await until(lambda: sidebar._shows_results and sidebar._results.query.text == words)


@scene("search-results")
async def search_results(desk: Desk) -> None:
    await search(desk, "harbour")


@scene("search-results-narrow", 400, 760)
async def search_results_narrow(desk: Desk) -> None:
    await search(desk, "harbour")


async def search_found(desk: Desk) -> None:
    """Search own conversations and those of other programs."""
    await write_harbours(desk)
    with home_of_others():
        await show_found(desk)
        desk.library.found.start_indexing()
        sidebar = desk.window.sidebar
        sidebar.focus_search()
        QTest.keyClicks(sidebar._search, "the list")
        await until(
            lambda: any(sidebar._results.rows.row(index).detail for index in range(sidebar._results.rows.rowCount()))
        )


@scene("search-found")
async def search_found_wide(desk: Desk) -> None:
    await search_found(desk)


@scene("search-found-narrow", 360, 760)
async def search_found_narrow(desk: Desk) -> None:
    await search_found(desk)


@scene("search-nothing")
async def search_nothing(desk: Desk) -> None:
    await search(desk, "lighthouse")


@scene("search-opened")
async def search_opened(desk: Desk) -> None:
    await search(desk, "harbour office")
    sidebar = desk.window.sidebar
    sidebar._results.choose_best()
    await until(desk.window.page.navigation.find_bar.isVisible)


@scene("search-filters")
async def search_filters(desk: Desk) -> None:
    await search(desk, "harbour")
    filters = desk.window.sidebar._filters
    filters._choose(ChosenFilters(6, MODELS[0].id, role=Role.USER))
    await asyncio.sleep(0.3)
    filters._button.click()


@scene("search-filters-narrow", 400, 760)
async def search_filters_narrow(desk: Desk) -> None:
    await search(desk, "harbour")
    desk.window.sidebar._filters._choose(ChosenFilters(-1, MODELS[0].id, "/home/ada/Projects/boat", has_image=True))
    await asyncio.sleep(0.3)


@scene("list-groups")
async def list_groups(desk: Desk) -> None:
    await desk.show_stored(Message.user("Hello"), said("Hello. What shall we do today?"), title="A short word")
    desk.library.refresh()
    await asyncio.sleep(0.3)
