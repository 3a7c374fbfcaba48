"""Resources and prompts of a server, as the composer shows them and as a message takes them."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from desktop_agent.tools.answers import MOST_PARTS
from desktop_agent.tools.in_thread import by_size
from desktop_agent.tools.mcp.offering.naming import shown
from desktop_agent.tools.mcp.offering.results import Hidden, Taking
from desktop_agent.tools.mcp.server import LiveServer
from desktop_agent.vocabulary.blocks import Image, Text
from desktop_agent.vocabulary.mcp.contents import (
    OfferedPrompt,
    OfferedResource,
    OfferedTemplate,
    PromptArgument,
    ServerContents,
)

if TYPE_CHECKING:
    from mcp_types import GetPromptResult, Prompt, ReadResourceResult, Resource, ResourceTemplate

LONGEST_TITLE = 300
LONGEST_ADDRESS = 4_000
"""A resource with a longer one is not offered: cut, it would be another."""
_LONGEST_WORDS = 2_000
_MOST_ARGUMENTS = 50
_MOST_COMPLETIONS = 100


async def contents_of(live: LiveServer) -> ServerContents:
    """All that it offers beside tools. Raises ToolFailed."""
    resources = await live.resources()
    templates = await live.resource_templates()
    prompts = await live.prompts()
    return ServerContents(
        server_id=live.server.id,
        title=live.server.title,
        resources=tuple(_resource(each) for each in resources if len(str(each.uri)) <= LONGEST_ADDRESS),
        templates=tuple(_template(each) for each in templates if len(each.uri_template) <= LONGEST_ADDRESS),
        prompts=tuple(_prompt(each) for each in prompts if len(each.name) <= LONGEST_ADDRESS),
    )


async def blocks_of_resource(result: "ReadResourceResult", hidden: Hidden = str) -> tuple[Text | Image, ...]:
    """Text and pictures; of what is neither, a word about it."""
    found = result.contents
    return await _taken([("resource", each) for each in found], hidden)


async def blocks_of_prompt(result: "GetPromptResult", hidden: Hidden = str) -> tuple[Text | Image, ...]:
    """Those of all its messages, in order."""
    return await _taken([("block", each.content) for each in result.messages], hidden)


async def completions_of(
    live: LiveServer, of: str, argument: str, value: str, others: Mapping[str, str]
) -> tuple[str, ...]:
    """What the server would fill in for an argument of a prompt, or of a template. Raises ToolFailed."""
    found = await live.complete(of, argument, value, others)
    return tuple(shown(each, _LONGEST_WORDS) for each in found[:_MOST_COMPLETIONS])


async def _taken(blocks: "list[tuple[str, Any]]", hidden: Hidden) -> tuple[Text | Image, ...]:
    def take() -> tuple[Text | Image, ...]:
        taking = Taking(hidden)
        parts = [
            taking.resource(block) if kind == "resource" else taking.part(block) for kind, block in blocks[:MOST_PARTS]
        ]
        rest = len(blocks) - MOST_PARTS
        return (*parts, Text(text=f"[left out: {rest:,} more parts]")) if rest > 0 else tuple(parts)

    return await by_size(take, [block.model_dump() for _, block in blocks[:MOST_PARTS]])


def _resource(theirs: "Resource") -> OfferedResource:
    return OfferedResource(
        uri=str(theirs.uri),
        **_names(theirs),
        media_type=shown(theirs.mime_type or "", LONGEST_TITLE),
        size=theirs.size if theirs.size is not None and theirs.size >= 0 else None,
    )


def _template(theirs: "ResourceTemplate") -> OfferedTemplate:
    return OfferedTemplate(uri_template=theirs.uri_template, **_names(theirs))


def _prompt(theirs: "Prompt") -> OfferedPrompt:
    names = {**_names(theirs), "name": theirs.name}
    return OfferedPrompt(**names, arguments=tuple(_arguments(theirs.arguments or ())))


def _arguments(theirs: "Iterable[Any]") -> Iterable[PromptArgument]:
    for each in list(theirs)[:_MOST_ARGUMENTS]:
        yield PromptArgument(each.name, shown(each.description or "", _LONGEST_WORDS), each.required is True)


def _names(theirs: "Resource | ResourceTemplate | Prompt") -> dict[str, str]:
    return {
        "name": shown(theirs.name, LONGEST_TITLE),
        "title": shown(theirs.title or theirs.name, LONGEST_TITLE),
        "description": shown(theirs.description or "", _LONGEST_WORDS),
    }
