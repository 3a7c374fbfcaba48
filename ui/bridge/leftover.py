"""What the disk refused until the end, for the screens."""

from base64 import b64encode
from dataclasses import dataclass

from desktop_agent.engine.unsaved import UnsavedConversation, unsaved_as_markdown
from desktop_agent.vocabulary.blocks import Block, Image, Text
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.images import Base64Source
from desktop_agent.vocabulary.messages import Message
from ui.bridge.drafts import ComposerDraft

_MAX_NAMED = 3
"""So many conversations are named; the others are counted."""
_DRAFT_UNSAVED = Sentence("What is being written could not be saved.")
_DRAFT_UNSAVED_TOO = Sentence("What is being written could not be saved either.")


@dataclass(frozen=True, slots=True)
class UnsavedContent:
    """What the disk refused: conversations, and what was being written."""

    conversations: tuple[UnsavedConversation, ...] = ()
    draft: ComposerDraft | None = None

    def __bool__(self) -> bool:
        return bool(self.conversations or self.draft)

    @property
    def sentence(self) -> Sentence:
        """What could not be saved, and why."""
        if not self.conversations:
            return _DRAFT_UNSAVED
        titles = ", ".join(f"“{each.record.title}”" for each in self.conversations[:_MAX_NAMED])
        more = len(self.conversations) - _MAX_NAMED
        values = {"titles": titles, "more": str(more), "why": self.conversations[0].reason.sentence}
        sentence = Sentence("{titles} could not be saved: {why}", values)
        if more > 0:
            sentence = Sentence("{titles} and {more} more could not be saved: {why}", values)
        if self.draft is None:
            return sentence
        return Sentence("{conversations} {draft}", {"conversations": sentence, "draft": _DRAFT_UNSAVED_TOO})

    def to_markdown(self) -> bytes:
        """See `desktop_agent.engine.unsaved`. Takes time where there are pictures."""
        draft = None if self.draft is None else _as_message(self.draft)
        return unsaved_as_markdown(self.conversations, draft).encode("utf-8", "backslashreplace")


def _as_message(draft: ComposerDraft) -> Message:
    blocks: list[Block] = [Text(text=text) for text in (draft.text, *draft.pasted) if text]
    blocks += [Text(text=f"{each.title} ({each.uri}):\n\n{each.text}") for each in draft.resources]
    for taken, name in draft.pictures:
        source = Base64Source(media_type=taken.media_type, data=b64encode(taken.data).decode())
        blocks.append(Image(source=source, name=name))
    blocks += draft.unreadable
    return Message.user_with_blocks(blocks)
