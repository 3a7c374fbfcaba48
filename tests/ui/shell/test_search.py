"""The search of the sidebar over a real store."""

import asyncio

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QListView

from desktop_agent.storage.file_lock import FileLock, Holder, host_name, lock_path
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.search import SearchHit, SearchPlace
from tests.fakes.qt_loop import Bridge, Heard, held, until
from tests.fakes.scripted_provider import Turn, Wait
from ui.shell.earlier_messages import MessageOpener

LONG = "\n\n".join(f"Paragraph {number} is about nothing." for number in range(40))


async def write(screen, title, *messages):
    record = await screen.engine.store.create_conversation(title=title, endpoint_id="scripted", model="m")
    await screen.engine.store.commit(record.id, *messages)
    await screen.engine.store.search.index_all()
    return record


async def search(screen, words):
    screen.action("Search conversations").trigger()
    field = screen.find(QLineEdit, "Search conversations")
    QTest.keyClicks(field, words)
    results = await screen.wait_for(QListView, "Search results")
    await until(lambda: results.query.text == words)
    return field, results


def test_enter_opens_the_message_at_its_place_with_its_words_marked(on_screen):
    async def work(screen):
        match = Message.assistant(f"{LONG}\n\nThe harbour office is open.\n\n{LONG}")
        record = await write(
            screen, "Boats", Message.user("harbour?"), match, Message.user("And?"), Message.assistant(LONG)
        )
        field, results = await search(screen, "harbour office")
        QTest.keyClick(field, Qt.Key.Key_Down)
        QTest.keyClick(results, Qt.Key.Key_Down)
        QTest.keyClick(results, Qt.Key.Key_Return)
        find_field = await screen.wait_for(QLineEdit, "Find in conversation")
        assert screen.conversation.id == record.id
        assert find_field.text() == "harbour office"
        await until(lambda: find_field.accessibleDescription() == "1 of 1")
        finder = screen.window.page.transcript.finder
        await until(lambda: finder._current == (1, 0))
        rows = screen.window.page.transcript.row_viewport.rows
        await until(
            lambda: not finder._is_coming and rows.row_at(rows.top) <= 1 < rows.row_at(rows.top + rows.view) + 1
        )
        assert field.text() == "harbour office"
        assert results.isVisible()

    on_screen(work)


def call(arguments, result):
    request = Message(role=Role.ASSISTANT, blocks=[ToolUse(id="1", name="run_command", input=arguments)])
    return request, Message.tool_results([ToolResult(tool_use_id="1", content=[Text(text=result)])])


LINES = "\n".join(f"line {number}" for number in range(25_000))
LONG_MESSAGES = {
    "prompt": (Message.user(f"{LONG * 100} The zebrafish swims. {LONG * 100}"),),
    "code": (Message.assistant(f"```\n{LINES}\nzebrafish\n{LINES}\n```"),),
    "arguments": call({"lines": [*LINES.split("\n"), "zebrafish"]}, "done"),
    "result": call({"command": "list"}, f"{LINES}\nzebrafish\n{LINES}"),
}


@pytest.mark.parametrize("case", LONG_MESSAGES)
def test_a_long_message_opens_at_its_place(case, on_screen):
    async def work(screen):
        await write(screen, "Boats", Message.user("Hello"), *LONG_MESSAGES[case])
        field, results = await search(screen, "zebrafish")
        QTest.keyClick(field, Qt.Key.Key_Down)
        QTest.keyClick(results, Qt.Key.Key_Down)
        QTest.keyClick(results, Qt.Key.Key_Return)
        find_field = await screen.wait_for(QLineEdit, "Find in conversation")
        await until(lambda: find_field.accessibleDescription() == "1 of 1")
        transcript = screen.window.page.transcript
        await until(lambda: not transcript.finder._is_coming and transcript.row_viewport.rows.top > 1000)

    on_screen(work)


def test_the_second_of_equal_messages_is_the_current_match(on_screen):
    async def work(screen):
        messages = [Message.user("The same harbour") for _ in range(4)]
        await write(screen, "Boats", *messages)
        _, results = await search(screen, "harbour")
        results.hit_chosen.emit(
            screen.window.sidebar._results.rows.row(0).conversation_id, _hit(messages[2]), "harbour"
        )
        find_field = await screen.wait_for(QLineEdit, "Find in conversation")
        await until(lambda: find_field.accessibleDescription() == "3 of 4")
        results.hit_chosen.emit(results.rows.row(0).conversation_id, _hit(messages[1]), "harbour")
        await until(lambda: find_field.accessibleDescription() == "2 of 4")

    on_screen(work)


def test_the_words_of_a_search_are_not_marked_where_a_link_leads_to_later(on_screen):
    async def work(screen):
        messages = Message.user("The harbour"), Message.assistant("Another harbour")
        record = await write(screen, "Boats", *messages)
        _, results = await search(screen, "harbour")
        results.hit_chosen.emit(record.id, _hit(messages[0]), "harbour")
        find_field = await screen.wait_for(QLineEdit, "Find in conversation")
        QTest.keyClick(find_field, Qt.Key.Key_Escape)
        await until(lambda: not find_field.isVisible())
        arrivals = Heard(screen.window.page.messages.arrived)
        screen.window.page.messages.open(record.id, messages[1].id)
        await until(lambda: arrivals)
        assert not find_field.isVisible()

    on_screen(work)


def _hit(message):
    return SearchHit(message.id, message.role, message.created_at, SearchPlace.TEXT, "harbour", ((0, 7),))


def test_a_title_opens_its_conversation_and_esc_brings_the_list_back(on_screen):
    async def work(screen):
        record = await write(screen, "Harbours", Message.user("Hello"), Message.assistant("Hello"))
        field, results = await search(screen, "harb")
        QTest.keyClick(field, Qt.Key.Key_Return)
        await until(lambda: screen.conversation.id == record.id)
        assert screen.find(QLineEdit, "Find in conversation") is None
        QTest.keyClick(field, Qt.Key.Key_Escape)
        assert not results.isVisible()
        assert screen.find(QListView, "Conversations") is not None
        await until(screen.editor.hasFocus)

    on_screen(work)


@pytest.mark.parametrize("is_narrow", [False, True])
def test_the_title_of_the_open_conversation_brings_it_to_the_front(on_screen, is_narrow):
    async def work(screen):
        record = await write(screen, "Harbours", Message.user("Hello"), Message.assistant("Hello"))
        if is_narrow:
            screen.window.resize(400, 600)
        field, results = await search(screen, "harb")
        QTest.keyClick(field, Qt.Key.Key_Return)
        await until(lambda: screen.conversation.id == record.id)
        await until(screen.editor.hasFocus)
        screen.action("Search conversations").trigger()
        await until(field.hasFocus)
        place = results.visualRect(results.rows.index(0)).center()
        QTest.mouseClick(results.viewport(), Qt.MouseButton.LeftButton, pos=place)
        await until(lambda: screen.editor.hasFocus() and screen.editor.isVisible())

    on_screen(work)


PROMPT, OLD, NEW = Message.user("Which fruit?"), Message.assistant("Plums, I say."), Message.assistant("Pears.")


async def branched(bridge):
    """Store a conversation with the answer OLD on a branch that is not in view."""
    store = bridge.engine.store
    record = await store.create_conversation(title="Fruit", endpoint_id="scripted", model="m")
    await store.commit(record.id, PROMPT, OLD)
    await store.update_conversation(record.id, head_message_id=PROMPT.id)
    await store.commit(record.id, NEW)
    return record


def test_a_message_of_another_branch_is_brought_into_view(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        record = await branched(bridge)
        opener = MessageOpener(bridge.library, bridge.tasks)
        arrivals = Heard(opener.arrived)
        opener.open(record.id, OLD.id)
        conversation, index = await arrivals.next()
        assert conversation.id == record.id
        assert conversation.transcript[index].message_id == OLD.id
        opener.open(record.id, PROMPT.id)
        assert (await arrivals.next())[1] == 0
        await bridge.close()

    in_loop(work())


def test_while_the_model_works_the_branch_stays_and_it_is_said(in_loop, tmp_path):
    async def work():
        may_answer = asyncio.Event()
        bridge = await Bridge.open(tmp_path, Turn(Wait(may_answer)))
        record = await branched(bridge)
        opener = MessageOpener(bridge.library, bridge.tasks)
        bridge.library.open(record.id)
        await until(lambda: bridge.library.current is not None)
        bridge.library.current.send(Message.user("And which else?"))
        await until(lambda: bridge.library.current.working)
        refusals = Heard(opener.refused)
        opener.open(record.id, OLD.id)
        _, sentence = await refusals.next()
        assert "when the answer has ended" in str(sentence)
        assert await bridge.library.current.history.load_until(NEW.id)
        may_answer.set()
        await bridge.idle()
        await bridge.close()
        assert bridge.errors == []

    in_loop(work())


def test_another_choice_while_it_loads_is_not_overruled(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        record = await branched(bridge)
        opener = MessageOpener(bridge.library, bridge.tasks)
        arrivals = Heard(opener.arrived)
        opener.open(record.id, OLD.id)
        bridge.library.new()
        await bridge.idle()
        bridge.library.open(record.id)
        await until(lambda: bridge.library.current.id == record.id)
        await bridge.idle()
        assert arrivals == []
        await bridge.close()

    in_loop(work())


def test_where_another_program_writes_it_opens_and_the_branch_stays(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        record = await branched(bridge)
        lock = FileLock(lock_path(bridge.engine.folder, f"conversation-{record.id}"))
        lock.acquire(Holder("ask", 4711, host_name(), 1_790_000_000))
        opener = MessageOpener(bridge.library, bridge.tasks)
        refusals, arrivals = Heard(opener.refused), Heard(opener.arrived)
        opener.open(record.id, OLD.id)
        conversation, sentence = await refusals.next()
        assert conversation is bridge.library.current
        assert conversation.held_by is not None
        assert "when the other program has ended" in str(sentence)
        opener.open(record.id, NEW.id)
        assert (await arrivals.next())[1] == 1
        await bridge.close()
        lock.release()

    in_loop(work())


def test_the_message_that_is_chosen_last_is_shown_although_the_one_before_takes_longer(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        record = await branched(bridge)
        bridge.library.open(record.id)
        await bridge.idle()
        opener = MessageOpener(bridge.library, bridge.tasks)
        arrivals = Heard(opener.arrived)
        is_called, may_go_on = held(bridge.library.current, "show_branch_of")
        opener.open(record.id, OLD.id)
        await is_called.wait()
        opener.open(record.id, NEW.id)
        await asyncio.sleep(0)
        may_go_on.set()
        await bridge.idle()
        ((conversation, index),) = arrivals
        assert conversation.transcript[index].message_id == NEW.id
        await bridge.close()
        assert bridge.errors == []

    in_loop(work())
