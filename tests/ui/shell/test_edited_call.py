"""A call whose arguments a person changed shows what ran: while it runs, and when the conversation is opened again."""

from desktop_agent.conversation.items import ToolCallItem
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce
from tests.fakes.agent_run import call
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn

ASKED = {"path": "hello.txt", "content": "Hello"}
RAN = {"path": "adam.txt", "content": "Goodbye"}


def card(screen):
    """Return the call, and what assistive technology reads of its card."""
    numbered = enumerate(screen.conversation.transcript)
    place, item = next((index, row_item) for index, row_item in numbered if type(row_item) is ToolCallItem)
    return item, screen.window.page.transcript.row_viewport.rows.row(place).spoken_text()


def test_the_card_of_an_edited_call_shows_what_ran_after_the_conversation_was_opened_again(on_screen, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    write = call("1", "write_file").model_copy(update={"input": ASKED})

    async def edit(screen):
        screen.conversation.change(workspace=str(folder))
        screen.write("Write")
        screen.press("Send")
        approvals = screen.engine._sessions[screen.conversation.id].approvals
        await until(lambda: approvals.open_approvals)
        approvals.answer(approvals.open_approvals[0].approval_id, AllowOnce(edited_input=RAN))
        await until(lambda: screen.answers() == ["Done"])
        assert (folder / "adam.txt").read_text() == "Goodbye"
        item, spoken = card(screen)
        assert item.effective_input == RAN
        assert "arguments, edited: adam.txt +1" in spoken
        await screen.idle()

    async def look(screen):
        await until(lambda: screen.answers() == ["Done"])
        item, spoken = card(screen)
        assert item.input == ASKED
        assert item.effective_input == RAN
        assert "arguments, edited: adam.txt +1" in spoken
        assert "hello.txt" not in spoken

    on_screen(edit, Turn(write), Turn(ContentDelta("Done")), folder=tmp_path / "data")
    on_screen(look, folder=tmp_path / "data")
