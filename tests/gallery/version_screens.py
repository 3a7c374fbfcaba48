"""What can be done with messages: the buttons below them, the versions, an earlier message that is being edited."""

import asyncio

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn
from tests.gallery import answers
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene

SHORT = "Because air scatters blue light more than red light."


async def versions(desk: Desk) -> None:
    """Show two prompts: the second one in its second version, with its third answer."""
    desk.play(
        Turn(ContentDelta("Light from the sun is white: a mixture of all colours.")),
        Turn(ContentDelta("It is blue.")),
        Turn(ContentDelta(SHORT)),
        Turn(ContentDelta("Rayleigh scattering, in two words.")),
        Turn(ContentDelta(answers.HALF)),
    )
    session = await desk.converse("What colour is sunlight?", "Why is the sky blue?", title="Colours of the sky")
    await session.wait_idle()
    session.branches.edit_prompt(session.history[2].id, Message.user("And why is the sky blue, in a few words?"))
    await session.wait_idle()
    for _ in range(2):
        session.branches.regenerate(session.history[-1].id)
        await session.wait_idle()
    await asyncio.sleep(0.3)


def hover(desk: Desk, row: int) -> None:
    view = desk.window.page.transcript
    box = view.row_viewport.row_box(row).intersected(view.viewport().rect())
    QTest.mouseMove(view.viewport(), box.center() + QPoint(0, 4))


@scene("versions")
async def at_the_end(desk: Desk) -> None:
    await versions(desk)


@scene("branch-tree")
async def tree(desk: Desk) -> None:
    await versions(desk)
    desk.window.page.branches.tree.open()
    await asyncio.sleep(0.5)


@scene("delete-message")
async def deleting(desk: Desk) -> None:
    await versions(desk)
    desk.window.page.branches.deletion.ask(desk.library.current.transcript[0].message_id)
    await asyncio.sleep(0.5)


@scene("versions-hover")
async def hovered(desk: Desk) -> None:
    await versions(desk)
    desk.window.page.transcript.scroller.scroll_to_start()
    hover(desk, 0)
    await asyncio.sleep(0.2)


@scene("versions-narrow", 360, 760)
async def narrow(desk: Desk) -> None:
    await versions(desk)
    hover(desk, 2)
    await asyncio.sleep(0.2)


@scene("versions-focus")
async def focused(desk: Desk) -> None:
    await versions(desk)
    view = desk.window.page.transcript
    view.setFocus(Qt.FocusReason.ShortcutFocusReason)
    view.move_row_focus(-1)
    for _ in range(3):
        QTest.keyClick(view, Qt.Key.Key_Tab)


@scene("versions-menu")
async def menu(desk: Desk) -> None:
    await versions(desk)
    view = desk.window.page.transcript
    view.setFocus(Qt.FocusReason.ShortcutFocusReason)
    view.move_row_focus(-1)
    QTest.keyClick(view, Qt.Key.Key_R, Qt.KeyboardModifier.ShiftModifier)
    await asyncio.sleep(0.3)


@scene("versions-context-menu")
async def context_menu(desk: Desk) -> None:
    await versions(desk)
    view = desk.window.page.transcript
    view.setFocus(Qt.FocusReason.ShortcutFocusReason)
    view.move_row_focus(-1)
    view.context_menu.popup_by_key(view)
    await asyncio.sleep(0.3)


@scene("versions-gone-back")
async def gone_back(desk: Desk) -> None:
    await versions(desk)
    session = desk.engine._sessions[desk.library.current.id]
    desk.library.current.branches.branch_from(session.history[1].id)
    await asyncio.sleep(0.3)


@scene("versions-files")
async def files(desk: Desk) -> None:
    arguments = {"path": "notes/hello.txt", "content": "Hello from the model!"}
    desk.play(
        Turn(ToolUse(id="1", name="write_file", input=arguments)),
        Turn(ContentDelta("It is written.")),
        Turn(ContentDelta("What should the greeting say?")),
    )
    session = desk.begin(workspace=True)
    desk.library.current.session_controls.set_mode("accept-edits")
    await asyncio.sleep(0.1)
    desk.library.current.send(Message.user("Write a greeting into a file."))
    await session.wait_idle()
    await asyncio.sleep(0.1)
    desk.library.current.branches.regenerate(session.history[-1].id)
    await session.wait_idle()
    await until(lambda: desk.window.banners.keys)
    await asyncio.sleep(0.3)


@scene("versions-editing")
async def editing(desk: Desk) -> None:
    await versions(desk)
    desk.window.page.composer.set_draft("A draft that comes back.")
    await asyncio.sleep(0.5)
    desk.window.page.editing.edit_last()
    await asyncio.sleep(0.4)


@scene("versions-editing-first")
async def editing_the_first(desk: Desk) -> None:
    """Edit the first message by keys: it has the focus of the transcript too."""
    await versions(desk)
    view = desk.window.page.transcript
    view.setFocus()
    view.scroller.scroll_to_start()
    view.row_viewport.focus((0, ""))
    QTest.keyClick(view, Qt.Key.Key_E)
    await until(view.in_place_editor.isVisible)
    desk.window.page.composer.editor.insertPlainText("\nAnswer in two sentences, and say who found it out.")
    await asyncio.sleep(0.4)


@scene("versions-editing-narrow", 360, 760)
async def editing_narrow(desk: Desk) -> None:
    await editing(desk)
