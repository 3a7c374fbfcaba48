"""What Markdown becomes: lists, headings, code, tables, formulas, diagrams, footnotes, pictures of the web."""

import asyncio

from PySide6.QtCore import QCoreApplication

from desktop_agent.types.blocks import Text
from desktop_agent.types.messages import Message
from tests.gallery import written
from tests.gallery.conversation_screens import said
from tests.gallery.desk import Desk, until
from tests.gallery.paintings import painting
from tests.gallery.screens import scene


async def answer(desk: Desk, text: str, question: str = "Show me.") -> None:
    """Show one answer from its beginning."""
    await desk.show_stored(Message.user(question), said(text), title="What Markdown becomes")
    await asyncio.sleep(0.3)
    desk.window.page.transcript.scroller.scroll_to_start()


def one_of_text(name: str, text: str, height: int) -> None:
    @scene(f"text-{name}", height=height)
    async def shown(desk: Desk) -> None:
        await answer(desk, text)


for name, its_text, its_height in (
    ("lists", written.LISTS, 1120),
    ("headings", written.HEADINGS, 1240),
    ("code", written.CODE, 1240),
    ("tables", written.TABLES, 1000),
    ("formulas", written.FORMULAS, 1240),
    ("footnotes", written.FOOTNOTES, 640),
):
    one_of_text(name, its_text, its_height)


@scene("text-code-wrapped", height=1240)
async def code_wrapped(desk: Desk) -> None:
    await answer(desk, written.CODE)
    press(desk, "Wrap lines", 2)


@scene("text-diagram", height=720)
async def diagram(desk: Desk) -> None:
    await answer(desk, written.DIAGRAM)


@scene("text-diagram-shown", height=820)
async def diagram_shown(desk: Desk) -> None:
    await answer(desk, written.DIAGRAM)
    press(desk, "Show diagram")
    await asyncio.sleep(3)


@scene("text-tables-long", height=800)
async def table_long(desk: Desk) -> None:
    rows = "\n".join(f"| {n} | Row number {n} | {n * 17 % 101} | {n * n} |" for n in range(1, 1200))
    await answer(desk, f"| # | Name | Share | Square |\n|---:|---|---:|---:|\n{rows}\n")
    desk.window.page.transcript.scroller.scroll_by(9_000)


@scene("pictures-remote", height=1100)
async def pictures_remote(desk: Desk) -> None:
    await desk.show_stored(Message.user("Pictures, please."), said(written.REMOTE), title="Views of the town")
    remote = desk.window.page.transcript.remote_images
    place = "https://pictures.example/lisbon"
    why = "The server at archive.example says that there is no such picture (404)."
    # Nobody loads anything here.
    remote.wanted.disconnect()
    old_map = "https://archive.example/maps/1755.png"
    for address in (f"{place}/evening.jpg", old_map, f"{place}/hills.png"):
        remote.load(address)
    remote.failed(old_map, why, "Ask for another address.")
    remote.arrived(f"{place}/hills.png", painting(1200, 640, 4), "hills.png")
    await asyncio.sleep(0.5)


@scene("picture-viewer", height=900)
async def picture_viewer(desk: Desk) -> None:
    images = [await desk.image("harbour.png"), await desk.image("dunes at dusk.png", 700, 900, 3)]
    await desk.show_stored(
        Message.user_with_blocks([Text(text="Which of the two has the warmer light?"), *images]),
        said("The **second**: its sun stands lower."),
        title="Two evenings",
    )
    desk.window.page.transcript.image_opened.emit(images[1])
    viewer = desk.window.page.attachments
    await until(lambda: viewer._viewer is not None and viewer._viewer.isVisible())
    await asyncio.sleep(0.6)


def press(desk: Desk, name: str, index: int = 0) -> None:
    """Press the control of the answer with this name; `index` counts those of the same name."""
    rows = desk.window.page.transcript.row_viewport.rows
    name = QCoreApplication.translate("Transcript", name)
    [control for _, control in rows.row(1).controls() if control.name.startswith(name)][index].press()
