"""What was copied or imported from another program says so on its page."""

from datetime import UTC, datetime

from PySide6.QtWidgets import QLabel

from desktop_agent.types.conversation_tree import ConversationOrigin, ConversationTree, TreeMessage
from desktop_agent.types.messages import Message, new_id
from tests.fakes.qt_loop import until

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


def from_program(program):
    prompt = Message.user(f"asked in {program}")
    return ConversationTree(
        id=new_id(),
        title="Elsewhere",
        created_at=MOMENT,
        updated_at=MOMENT,
        messages=[TreeMessage(message=prompt)],
        head=prompt.id,
        origin=ConversationOrigin(program=program, id="1"),
    )


def origin_texts(screen):
    labels = screen.window.frame.findChildren(QLabel)
    return [label.text() for label in labels if label.text().startswith("From ") and label.isVisible()]


async def open_tree(screen, tree):
    await screen.engine.store.import_tree(tree)
    screen.desk.library.open(tree.id)
    await until(lambda: screen.conversation.id == tree.id)


def test_a_conversation_from_elsewhere_says_which_program_it_is_from(on_screen):
    async def work(screen):
        assert origin_texts(screen) == []
        for program, words in (
            ("claude-code", "From Claude Code"),
            ("chatgpt", "From ChatGPT"),
            ("an unknown\none", "From an unknown one"),
        ):
            await open_tree(screen, from_program(program))
            assert origin_texts(screen) == [words]
        # A copy of an own one, and one that began here.
        await open_tree(screen, from_program("desktop-agent"))
        assert origin_texts(screen) == []
        await open_tree(screen, from_program("chatgpt"))
        screen.desk.library.new()
        await until(lambda: origin_texts(screen) == [])

    on_screen(work)
