"""From a conversation to one question for the model."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from desktop_agent.conversation.repair import repaired
from desktop_agent.vocabulary.blocks import Block, Image, ResultPart, Text, ToolResult
from desktop_agent.vocabulary.errors import ImageRefused
from desktop_agent.vocabulary.images import Base64Source, StoredSource
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.requests import ModelRequest, ProviderConfig
from desktop_agent.vocabulary.tool_calls import ToolSpec

ReadPicture = Callable[[StoredSource], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """What stays the same for all questions of a run."""

    model: str
    config: ProviderConfig = field(default_factory=ProviderConfig)
    conversation_id: str | None = None
    max_tool_iterations: int = 50


async def build_request(
    history: tuple[Message, ...],
    settings: RequestSettings,
    tools: tuple[ToolSpec, ...],
    read_picture: ReadPicture,
) -> ModelRequest:
    """The repaired history with stored pictures as bytes; a picture that is gone is said in words instead."""
    messages = [await _with_bytes(message, read_picture) for message in without_given_up(repaired(history))]
    return ModelRequest(
        model=settings.model,
        messages=tuple(messages),
        tools=tools,
        config=settings.config,
        conversation_id=settings.conversation_id,
    )


def without_given_up(messages: Sequence[Message]) -> list[Message]:
    """Leave out answers that broke off and were asked for again: nobody answers its own half answer.

    They stay in the conversation. One that the person went on from (a prompt follows it) is part of what was said.
    """
    kept: list[Message] = []
    for message in reversed(messages):
        next_is_prompt = bool(kept) and kept[-1].role is not Role.ASSISTANT
        if message.state is MessageState.INTERRUPTED and not message.tool_uses and not next_is_prompt:
            continue
        kept.append(message)
    kept.reverse()
    return kept


async def _with_bytes(message: Message, read_picture: ReadPicture) -> Message:
    blocks: list[Block] = []
    for block in message.blocks:
        if isinstance(block, Image):
            blocks.append(await _picture(block, read_picture))
        elif isinstance(block, ToolResult) and any(isinstance(part, Image) for part in block.content):
            parts: list[ResultPart] = [
                await _picture(part, read_picture) if isinstance(part, Image) else part for part in block.content
            ]
            blocks.append(block.model_copy(update={"content": tuple(parts)}))
        else:
            blocks.append(block)
    return message.model_copy(update={"blocks": tuple(blocks)})


async def _picture(image: Image, read_picture: ReadPicture) -> Image | Text:
    if not isinstance(image.source, StoredSource):
        return image
    try:
        data = await read_picture(image.source)
    except ImageRefused as error:
        return Text(text=f"[{error}]")
    encoded = base64.b64encode(data).decode("ascii")
    return image.model_copy(update={"source": Base64Source(media_type=image.source.media_type, data=encoded)})
