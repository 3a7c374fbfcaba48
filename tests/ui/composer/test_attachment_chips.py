"""What is pasted before there is an event loop of asyncio's is prepared as soon as there is one."""

import asyncio

from PySide6.QtWidgets import QLineEdit, QWidget

from tests.fakes.qt_loop import in_loop, until
from ui.composer.attachment_chips import AttachmentChip, AttachmentEntry, AttachmentRow
from ui.style.boxes import vbox
from ui.style.theme import SPACE_S, ThemeSource

__all__ = ["in_loop"]


def test_work_that_comes_too_early_is_done_once_there_is_a_loop(qtbot, in_loop):
    page, editor, names = QWidget(), QLineEdit(), []
    row = AttachmentRow(editor)
    vbox(row, editor, parent=page)
    qtbot.addWidget(page)
    themes = ThemeSource()
    first = row._add_entry(AttachmentEntry(AttachmentChip(themes, "document", "a")))
    removed = row._add_entry(AttachmentEntry(AttachmentChip(themes, "document", "b")))

    async def work(name):
        names.append(name)

    row._start_task(first, work("first"))
    row._start_task(removed, work("gone"))
    row._discard_entry(removed)
    qtbot.wait(50)
    assert names == []

    async def wait_for_first():
        await until(lambda: names)
        await asyncio.sleep(0.05)

    in_loop(wait_for_first())
    assert names == ["first"]


def test_chips_begin_at_the_left_also_after_one_was_put_behind_others(qtbot):
    page, editor = QWidget(), QLineEdit()
    row = AttachmentRow(editor)
    vbox(row, editor, parent=page)
    qtbot.addWidget(page)
    themes = ThemeSource()
    first, second = (row._add_entry(AttachmentEntry(AttachmentChip(themes, "document", name))) for name in "ab")
    page.resize(800, 200)
    page.show()
    row._move_to_end([first])
    qtbot.waitUntil(lambda: second.chip.x() == 0)
    assert first.chip.x() == second.chip.geometry().right() + 1 + SPACE_S
