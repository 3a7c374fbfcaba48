"""The row of attachments: what comes before the event loop runs, order, and many at once."""

import asyncio
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget

from desktop_agent.conversation.picture_preparation import import_picture_async
from tests.fakes.qt_loop import in_loop, until
from tests.gallery.paintings import painting
from ui.composer.attachment_chips import AttachmentChip, AttachmentEntry, AttachmentRow
from ui.composer.attachment_items import PendingPicture
from ui.composer.attachments import Attachments
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


def test_many_chips_can_be_removed_at_once(qtbot):
    page, editor, emitted = QWidget(), QLineEdit(), []
    row = AttachmentRow(editor)
    vbox(row, editor, parent=page)
    qtbot.addWidget(page)
    row.lost.connect(partial(emitted.append, "lost"))
    row.focus_left.connect(partial(emitted.append, "focus left"))
    row.changed.connect(partial(emitted.append, "changed"))
    chips = [row._add_entry(AttachmentEntry(AttachmentChip(ThemeSource(), "document", name))).chip for name in "abc"]
    page.show()
    page.activateWindow()
    assert row.remove_all_button.isVisible()
    chips[2].setFocus()
    for stop in (chips[2].remove_button, row.remove_all_button, editor):
        qtbot.keyClick(page.focusWidget(), Qt.Key.Key_Tab)
        assert page.focusWidget() is stop
    row.remove_all_button.click()
    assert row.chips == []
    assert emitted == ["lost", "focus left", "changed"]
    assert row.isHidden()
    assert row.remove_all_button.isHidden()


def test_chips_begin_at_the_left_and_tab_goes_through_them_in_order_also_after_one_was_put_before_others(qtbot):
    page, editor = QWidget(), QLineEdit()
    row = AttachmentRow(editor)
    vbox(row, editor, parent=page)
    qtbot.addWidget(page)
    themes = ThemeSource()

    def add(name, before=None):
        return row._add_entry(AttachmentEntry(AttachmentChip(themes, "document", name)), before)

    first, last = add("a"), add("c")
    second = add("b", last)
    page.resize(800, 200)
    page.show()
    qtbot.waitUntil(lambda: first.chip.x() == 0)
    for entry, other in ((first, second), (second, last)):
        assert other.chip.x() == entry.chip.geometry().right() + 1 + SPACE_S
    order = [first.chip]
    order[0].setFocus()
    for _ in range(7):
        qtbot.keyClick(order[-1], Qt.Key.Key_Tab)
        order.append(page.focusWidget())
    stops = [stop for entry in (first, second, last) for stop in (entry.chip, entry.chip.remove_button)]
    assert order == [*stops, row.remove_all_button, editor]


def test_many_files_are_shown_where_they_wait_and_stay_in_order(qtbot, in_loop, tmp_path):
    page, editor = QWidget(), QLineEdit()
    attachments = Attachments(ThemeSource(), import_picture_async, editor)
    vbox(attachments, editor, parent=page)
    qtbot.addWidget(page)
    paths = [tmp_path / f"{number}.txt" for number in range(40)]
    for path in paths:
        path.write_text(path.name)
    # A picture by another name takes the place of its chip.
    paths[7].write_bytes(painting(40, 30))

    async def work():
        attachments.add_files(paths)
        chips = attachments.chips
        await attachments.wait_until_ready()
        assert [index for index, chip in enumerate(attachments.chips) if chip is not chips[index]] == [7]
        await until(lambda: attachments.chips[7]._picture)

    in_loop(work())
    names = [item.name if isinstance(item, PendingPicture) else item.title for item in attachments.items]
    assert names == [path.name for path in paths]


def test_as_much_of_a_name_is_shown_with_larger_text(qtbot):
    themes = ThemeSource()
    chip = AttachmentChip(themes, "document", "the harbour at night, with the lighthouse.png")
    qtbot.addWidget(chip)
    usual = chip._name.sizeHint().width()
    themes.use(themes.theme, 200)
    assert chip._name.sizeHint().width() > 1.5 * usual
