"""What is pasted before there is an event loop of asyncio's is prepared as soon as there is one."""

import asyncio

from tests.ui.bridge.in_loop import in_loop, until
from ui.composer.attachment_chip import AttachmentChip
from ui.composer.offers.chip_row import ChipRow, Held
from ui.look.theme import ThemeSource

__all__ = ["in_loop"]


def test_work_that_comes_too_early_is_done_once_there_is_a_loop(qtbot, in_loop):
    row, done = ChipRow(), []
    qtbot.addWidget(row)
    themes = ThemeSource()
    first = row._hold(Held(AttachmentChip(themes, "document", "a")))
    gone = row._hold(Held(AttachmentChip(themes, "document", "b")))

    async def work(name):
        done.append(name)

    row._start(first, work("first"))
    row._start(gone, work("gone"))
    row._drop(gone)
    qtbot.wait(50)
    assert done == []

    async def later():
        await until(lambda: done)
        await asyncio.sleep(0.05)

    in_loop(later())
    assert done == ["first"]
