"""What a conversation is called before the person calls it something."""

from desktop_agent.vocabulary.messages import Message

TITLE_LENGTH = 60


def title_of(message: Message) -> str:
    """The first line of the first prompt, cut at a word."""
    line = next((line.strip() for line in message.text.splitlines() if line.strip()), "")
    if not line:
        return "Picture"
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"
