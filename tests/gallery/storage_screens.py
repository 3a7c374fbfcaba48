"""Conversations that are never stored, and the page of storage."""

import asyncio

from PySide6.QtWidgets import QPushButton

from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn
from tests.gallery import answers
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene


async def unstored(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.3)
    desk.play(Turn(ContentDelta(answers.HALF)))
    desk.library.new(in_memory=True)
    session = desk.library._session
    session.send(Message.user("Why is the sky blue?"))
    await session.wait_idle()
    await asyncio.sleep(0.3)


@scene("unstored")
async def unstored_page(desk: Desk) -> None:
    await unstored(desk)


@scene("unstored-empty-conversation")
async def unstored_offer(desk: Desk) -> None:
    desk.begin()
    await asyncio.sleep(0.3)
    desk.library.new()
    await asyncio.sleep(0.3)


@scene("unstored-closing")
async def unstored_closing(desk: Desk) -> None:
    await unstored(desk)
    buttons = desk.window.findChildren(QPushButton)
    close = next(each for each in buttons if each.accessibleName() == "Close this conversation")
    close.click()
    await until(lambda: desk.window.unstored._question is not None)
    await asyncio.sleep(0.3)
