"""What is known about a model, held against a request before anything is sent."""

from collections.abc import Iterable
from typing import Any

from desktop_agent.vocabulary.blocks import Image, ToolResult
from desktop_agent.vocabulary.errors import ImagesNotSupported, Sentence, ToolCallingNotSupported
from desktop_agent.vocabulary.requests import Capabilities, ModelRequest


def check_capabilities(request: ModelRequest, known: Capabilities) -> None:
    """Raises ToolCallingNotSupported and ImagesNotSupported for what the model is known to lack."""
    model = {"model": request.model}
    if request.tools and known.tools is False:
        raise ToolCallingNotSupported(Sentence("“{model}” does not call tools.", model))
    if known.images is False and any(_has_image(message.blocks) for message in request.messages):
        raise ImagesNotSupported(Sentence("“{model}” does not read pictures.", model))


def answer_limit(request: ModelRequest, known: Capabilities) -> tuple[int | None, tuple[Sentence, ...]]:
    """The most tokens to ask for, None for the server's own limit, and what is to be said about it.

    More than a model can give is refused by some servers.
    """
    wanted, most = request.config.max_tokens, known.max_output_tokens
    if wanted is None or most is None or wanted <= most:
        return wanted, ()
    values = {"model": request.model, "most": str(most)}
    return most, (Sentence("“{model}” answers with at most {most} tokens, so that is the limit.", values),)


def _has_image(blocks: Iterable[Any]) -> bool:
    return any(
        isinstance(block, Image) or (isinstance(block, ToolResult) and _has_image(block.content)) for block in blocks
    )
