"""A long conversation in the window: it opens at its end, and its earlier messages come when they are needed."""

import asyncio
from base64 import b64encode

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from desktop_agent.conversation.items import AnswerItem, ToolCallItem, UserItem
from desktop_agent.engine.engine import Engine
from desktop_agent.types.blocks import Base64Source, Image, Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta, Usage
from tests.fakes.qt_loop import Heard, until
from tests.fakes.scripted_provider import Turn
from tests.ui.transcript.test_pictures import png
from ui.shell.pictures.picture_viewer import PictureViewer

COUNT = 240


def talk():
    for number in range(COUNT // 2):
        yield Message.user(f"Question {number:03d}").model_copy(update={"id": f"q{number}"})
        yield Message.assistant(f"Answer {number:03d}. " * 30).model_copy(update={"usage": Usage(cost=0.5)})


def work():
    """Return a prompt, the messages of an agent that works on it for long, and the answer."""
    yield Message.user("Do all of it.")
    for number in range(60):
        use = ToolUse(id=f"call-{number}", name="look", input={})
        yield Message(role=Role.ASSISTANT, blocks=(Text(text="I look."), use))
        yield Message.tool_results([ToolResult(tool_use_id=use.id, content=(Text(text="seen"),))])
    yield Message.assistant("Done.").model_copy(update={"id": "done"})


async def open_stored(screen, messages):
    store = screen.engine.store
    record = await store.create_conversation(title="long", endpoint_id="scripted", model="m")
    await store.commit(record.id, *messages)
    screen.desk.library.open(record.id)
    await until(lambda: screen.conversation is not None and screen.conversation.id == record.id)
    return screen.window.page.transcript


def place(view):
    """Return the item at the upper edge of the viewport, and its offset there."""
    rows = view.row_viewport.rows
    index = rows.row_at(rows.top)
    return rows.row(index).item.id, rows.row_top(index) - rows.top


def first_text(view):
    return view.row_viewport.rows.transcript[0].text


async def whole(screen):
    await until(lambda: screen.conversation.history.unloaded_count == 0)
    await screen.idle()


def test_it_opens_at_its_end_and_scrolling_up_shows_all_of_it_without_a_jump(on_screen):
    async def work(screen):
        view = await open_stored(screen, talk())
        await screen.idle()
        rows, history = view.row_viewport.rows, screen.conversation.history
        assert rows.following
        assert history.unloaded_count > COUNT * 0.8
        assert not screen.conversation.history.spending.lacks_earlier
        places = []
        screen.conversation.changed.disconnect(screen.window.page._on_changed)

        def apply(changes):
            place_before = place(view)
            view.apply(changes)
            assert view.jump_button.count == 0
            places.append((place_before, place(view)))

        screen.conversation.changed.connect(apply)
        while rows.top:
            view.scroller.scroll_by(-300)
            await asyncio.sleep(0)
            await screen.idle()
        assert history.unloaded_count == 0
        assert places
        assert all(place_before == place_after for place_before, place_after in places)
        assert first_text(view) == "Question 000"
        assert len(rows) == len(screen.conversation.transcript) == COUNT

    on_screen(work)


def test_home_goes_to_the_first_message_and_end_back(on_screen):
    async def work(screen):
        view = await open_stored(screen, talk())
        QTest.keyClick(view, Qt.Key.Key_Home)
        await whole(screen)
        assert view.row_viewport.rows.top == 0
        assert first_text(view) == "Question 000"
        QTest.keyClick(view, Qt.Key.Key_End)
        assert view.row_viewport.rows.following

    on_screen(work)


def test_find_finds_everything(on_screen):
    async def work(screen):
        view = await open_stored(screen, talk())
        statuses = Heard(view.finder.status_changed)
        screen.window.page.navigation.find_bar.open("Question")
        await until(lambda: statuses and statuses[-1].complete and statuses[-1].total == COUNT // 2)
        assert screen.conversation.history.unloaded_count == 0
        assert statuses[-1].current > COUNT // 2 - 12
        for _ in range(COUNT // 2 - statuses[-1].current + 1):
            screen.window.page.navigation.find_bar.step(1)
        assert statuses[-1].current == 1
        await until(lambda: view.row_viewport.rows.top == 0)

    on_screen(work)


def test_all_of_it_is_copied(on_screen):
    async def work(screen):
        view = await open_stored(screen, talk())
        clipboard = QGuiApplication.clipboard()
        clipboard.clear()
        screen.action("Copy conversation as Markdown").trigger()
        await until(lambda: "Question 000" in clipboard.text())
        assert f"Question {COUNT // 2 - 1:03d}" in clipboard.text()
        again = await open_stored(screen, talk())
        assert again is view
        assert screen.conversation.history.unloaded_count
        QTest.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        await whole(screen)
        start, end = view.row_viewport.selection.ordered
        assert (start.row, end.row) == (0, COUNT - 1)

    on_screen(work)


def test_a_message_far_above_is_opened_in_its_place(on_screen):
    async def work(screen):
        view = await open_stored(screen, talk())
        arrivals = Heard(screen.window.page.messages.arrived)
        screen.window.page.messages.open(screen.conversation.id, "q5")
        _, index = await arrivals.next()
        item = view.row_viewport.rows.transcript[index]
        assert isinstance(item, UserItem)
        assert item.text == "Question 005"
        assert len(view.row_viewport.rows) == len(screen.conversation.transcript)

    on_screen(work)


def test_the_cost_is_that_of_all_messages(on_screen):
    async def work(screen):
        await open_stored(screen, talk())
        spending = screen.conversation.history.spending
        assert not spending.is_complete
        await screen.idle()
        assert spending.is_complete
        assert spending.total.cost == COUNT / 4
        await screen.conversation.history.load_more()
        await screen.say("And now?")
        assert spending.total.cost == COUNT / 4

    on_screen(work, Turn(ContentDelta("New.")))


def test_another_conversation_gets_its_own_earlier_messages(on_screen, monkeypatch):
    monkeypatch.setattr("ui.bridge.conversation._LARGE_PART", 5)

    async def work(screen):
        view = await open_stored(screen, talk())
        other = screen.conversation
        await open_stored(screen, talk())
        QTest.keyClick(view, Qt.Key.Key_Home)
        second = screen.conversation
        screen.desk.library.open(other.id)
        await until(lambda: screen.conversation is not second)
        await screen.idle()
        assert second.history.unloaded_count
        assert view.row_viewport.rows.following
        assert screen.conversation.history.unloaded_count > COUNT * 0.8
        assert len(view.row_viewport.rows) == len(screen.conversation.transcript)

    on_screen(work)


def test_a_long_answer_is_asked_for_anew_from_its_prompt_on(on_screen):
    async def ask(screen):
        await open_stored(screen, work())
        screen.window.page.branches.regenerate("done")
        await until(lambda: screen.answers()[-1:] == ["Again."])
        await screen.idle()
        assert len(screen.conversation.transcript) == 2
        assert not any(isinstance(item, ToolCallItem) for item in screen.conversation.transcript)

    on_screen(ask, Turn(ContentDelta("Again.")))


def test_the_last_prompt_is_edited_however_far_above_it_is(on_screen):
    async def edit(screen):
        await open_stored(screen, work())
        assert not any(isinstance(item, UserItem) for item in screen.conversation.transcript)
        screen.window.page.editing.edit_last()
        await until(lambda: screen.editor.toPlainText() == "Do all of it.")

    on_screen(edit)


def test_one_that_another_process_has_open_opens_at_its_end_too(on_screen):
    async def work(screen):
        store = screen.engine.store
        record = await store.create_conversation(title="long", endpoint_id="scripted", model="m")
        await store.commit(record.id, *talk())
        other = await Engine.open(screen.engine.folder)
        owner = await other.session(record.id)
        screen.desk.library.open(record.id)
        await until(lambda: screen.conversation is not None and screen.conversation.id == record.id)
        view, history = screen.window.page.transcript, screen.conversation.history
        assert history.unloaded_count > COUNT * 0.8
        await until(lambda: not history.spending.lacks_earlier)
        assert history.spending.total.cost == COUNT / 4
        rows = view.row_viewport.rows
        while history.unloaded_count or rows.top:
            view.scroller.scroll_by(-300)
            await asyncio.sleep(0.001)
        assert first_text(view) == "Question 000"
        assert len(owner.history) == COUNT
        await other.close()
        await until(lambda: screen.conversation.held_by is None)

    on_screen(work)


def test_from_the_tree_of_branches_one_continues_after_a_message_that_is_not_loaded(on_screen):
    async def work(screen):
        await open_stored(screen, talk())
        conversation, tree = screen.conversation, screen.window.page.branches.tree
        await until(lambda: conversation.history.unloaded_count > 100)
        tree.open()
        await until(lambda: tree._dialog.tree.model().rowCount())
        roots = (await conversation.branches.load_tree()).roots
        tree._dialog.branch_requested.emit(roots[0].children[-1])
        await until(lambda: len(conversation.transcript) == 2)
        assert conversation.history.unloaded_count == 0

    on_screen(work)


def test_a_hit_on_another_branch_is_opened_without_all_that_is_above(on_screen):
    async def work(screen):
        store = screen.engine.store
        view = await open_stored(screen, talk())
        conversation = screen.conversation
        loaded = await store.load(conversation.id, 24)
        record = await store.update_conversation(conversation.id, head_message_id=loaded.messages[0].id)
        messages = [Message.user(f"Other {number}").model_copy(update={"id": f"o{number}"}) for number in range(100)]
        await store.commit(record.id, *messages)
        arrivals = Heard(screen.window.page.messages.arrived)
        screen.window.page.messages.open(conversation.id, "o90")
        _, index = await arrivals.next()
        await screen.idle()
        assert view.row_viewport.rows.transcript[index].text == "Other 90"
        assert conversation.history.unloaded_count > COUNT / 2
        assert len(view.row_viewport.rows) == len(conversation.transcript)
        rows = view.row_viewport.rows
        while rows.top:
            view.scroller.scroll_by(-300)
            await asyncio.sleep(0)
            await screen.idle()
        assert conversation.history.unloaded_count == 0
        assert first_text(view) == "Question 000"
        assert conversation.history.spending.is_complete
        answers = [item for item in conversation.transcript if isinstance(item, AnswerItem)]
        assert conversation.history.spending.total.cost == len(answers) / 2

    on_screen(work)


def with_pictures(*numbers):
    for number, message in enumerate(talk()):
        colour = QColor(number, 40, 80)
        source = Base64Source(media_type="image/png", data=b64encode(png(8, 8, colour)).decode())
        picture = Image(source=source, name=f"picture {number}")
        yield message.model_copy(update={"blocks": (*message.blocks, picture)}) if number in numbers else message


def test_stepping_before_the_first_picture_loads_those_of_earlier_messages(on_screen):
    async def work(screen):
        view = await open_stored(screen, with_pictures(0, 2, COUNT - 2))
        await screen.idle()
        rows, history = view.row_viewport.rows, screen.conversation.history
        assert history.unloaded_count
        (last,) = [item for item in rows.transcript if isinstance(item, UserItem) and item.images]
        view.image_opened.emit(last.images[0])
        viewer = await until(lambda: screen.window.findChild(PictureViewer))
        names = [button.accessibleName() for button in viewer.findChildren(QToolButton) if button.isVisible()]
        assert "Previous picture" in names
        assert not any(" of " in words for words in screen.words(viewer))
        viewer.step(-1)
        await until(lambda: viewer.current.name == "picture 2")
        assert history.unloaded_count == 0
        assert "2 of 3" in screen.words(viewer)
        viewer.step(-1)
        assert viewer.current.name == "picture 0"
        viewer.step(-1)
        assert viewer.current.name == "picture 0"
        viewer.close()
        await screen.idle()

    on_screen(work)


def test_a_viewer_of_another_conversation_asks_for_nothing(on_screen):
    async def work(screen):
        view = await open_stored(screen, with_pictures(0, COUNT - 2))
        await screen.idle()
        (last,) = [item for item in view.row_viewport.rows.transcript if isinstance(item, UserItem) and item.images]
        view.image_opened.emit(last.images[0])
        viewer = await until(lambda: screen.window.findChild(PictureViewer))
        await open_stored(screen, with_pictures(0, COUNT - 2))
        await screen.idle()
        count = screen.conversation.history.unloaded_count
        viewer.step(-1)
        await screen.idle()
        assert screen.conversation.history.unloaded_count == count > 0
        assert viewer.current.name == f"picture {COUNT - 2}"
        viewer.close()
        await screen.idle()

    on_screen(work)
