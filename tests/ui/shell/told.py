"""A conversation on the screen that says what a test wants to be said."""

from desktop_agent.types.blocks import Text
from desktop_agent.types.messages import Message, Role


async def told(screen, reader, text, images=()):
    """Shows it, and answers with a reader of it."""
    page = screen.window.page
    screen.window.resize(1000, 800)
    transcript = screen.conversation.transcript
    transcript.add_message(Message.user_with_blocks([*images, Text(text="Look")]))
    transcript.add_message(Message(role=Role.ASSISTANT, blocks=(Text(text=text),)))
    page.transcript.set_transcript(transcript)
    return reader(screen)
