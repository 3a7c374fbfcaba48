"""An answer with a given text, shown in the conversation on the screen."""

from desktop_agent.types.blocks import Text
from desktop_agent.types.messages import Message, Role


async def show_answer(screen, reader, text, images=()):
    """Show an answer with this text, and return a reader of the screen."""
    page = screen.window.page
    screen.window.resize(1000, 800)
    transcript = screen.conversation.transcript
    transcript.add_message(Message.user_with_blocks([*images, Text(text="Look")]))
    transcript.add_message(Message(role=Role.ASSISTANT, blocks=(Text(text=text),)))
    page.transcript.set_transcript(transcript)
    return reader(screen)
