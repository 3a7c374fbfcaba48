"""What a provider did on its own servers, and where an answer's claims come from."""

import asyncio

from desktop_agent.types.blocks import Citation, ServerStep, Text
from desktop_agent.types.messages import Message, Role
from tests.gallery.desk import Desk
from tests.gallery.screens import scene
from ui.transcript.viewport.selection import LAST_OFFSET, TextPosition

ANSWER = (
    "The bridge was opened in **1998** and is still the longest of its kind in the country. Tolls are taken "
    "northbound only."
)
FEW = (
    Citation(title="Vasco da Gama Bridge", url="https://en.wikipedia.org/wiki/Vasco_da_Gama_Bridge", start=0, end=30),
    Citation(
        title="Tolls on the bridges over the Tagus: who pays, where, when, and how much it has become since last year",
        url="https://www.transport.example.pt/tolls",
    ),
    Citation(title="Vasco da Gama Bridge", url="https://en.wikipedia.org/wiki/Vasco_da_Gama_Bridge", start=40, end=60),
    Citation(url="https://bücher.example/brücken"),
    Citation(title="notes.pdf, page 3", quoted="opened in March 1998"),
)
MANY = tuple(Citation(title=f"Source of the day {n}", url=f"https://news-{n}.example/{n}") for n in range(1, 13))


def searched(citations: tuple[Citation, ...]) -> Message:
    search_step = ServerStep(provider="p", name="web_search", text="vasco da gama bridge length opening tolls", raw={})
    result_step = ServerStep(
        provider="p", name="web_search_result", text="\n".join(str(source.url) for source in MANY), raw={}
    )
    return Message(role=Role.ASSISTANT, blocks=(search_step, result_step, Text(text=ANSWER, citations=citations)))


@scene("conversation-sources")
async def sources(desk: Desk) -> None:
    await desk.show_stored(
        Message.user("When was the long bridge in Lisbon opened, and who pays to cross it?"),
        searched(FEW),
        title="The long bridge",
    )
    view = desk.window.page.transcript
    view.setFocus()
    view.row_viewport.focus((3, ""))
    view._keyboard.move_control_focus(1)
    view._keyboard.move_control_focus(1)


@scene("conversation-many-sources")
async def many_sources(desk: Desk) -> None:
    await desk.show_stored(Message.user("And the news about it?"), searched(MANY), title="The long bridge")


@scene("conversation-sources-narrow", 560, 760)
async def narrow(desk: Desk) -> None:
    await desk.show_stored(Message.user("And the news about it?"), searched(FEW), title="The long bridge")


@scene("conversation-sources-selected")
async def selected(desk: Desk) -> None:
    pictures = [await desk.image("harbour.png"), await desk.image("dunes.png", 700, 900, 3)]
    await desk.show_stored(
        Message.user_with_blocks([*pictures, Text(text="When was it opened?")]), searched(FEW), title="The long bridge"
    )
    await asyncio.sleep(0.3)
    surface = desk.window.page.transcript.row_viewport
    surface.select(TextPosition(), TextPosition(len(surface.rows) - 1, LAST_OFFSET, 0))
