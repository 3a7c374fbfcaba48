"""Resources and prompts of a server, as the composer shows them and as a message takes them."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from desktop_agent.tools.answers import MAX_PARTS
from desktop_agent.tools.in_thread import run_by_size
from desktop_agent.tools.mcp.offering.naming import visible_text
from desktop_agent.tools.mcp.offering.results import ContentConverter, Redact
from desktop_agent.tools.mcp.server import McpClient
from desktop_agent.vocabulary.blocks import Image, Text
from desktop_agent.vocabulary.mcp.contents import (
    McpPrompt,
    McpPromptArgument,
    McpResource,
    McpResourceTemplate,
    McpServerCatalog,
)

if TYPE_CHECKING:
    from mcp_types import GetPromptResult, Prompt, ReadResourceResult, Resource, ResourceTemplate

MAX_TITLE_LENGTH = 300
MAX_URI_LENGTH = 4_000
"""A resource with a longer one is not offered: cut, it would be another."""
_MAX_TEXT_LENGTH = 2_000
_MAX_ARGUMENTS = 50
_MAX_COMPLETIONS = 100


async def load_catalog(client: McpClient) -> McpServerCatalog:
    """All that it offers beside tools. Raises ToolFailed."""
    resources = await client.resources()
    templates = await client.resource_templates()
    prompts = await client.prompts()
    return McpServerCatalog(
        server_id=client.server.id,
        title=client.server.title,
        resources=tuple(_resource(each) for each in resources if len(str(each.uri)) <= MAX_URI_LENGTH),
        templates=tuple(_template(each) for each in templates if len(each.uri_template) <= MAX_URI_LENGTH),
        prompts=tuple(_prompt(each) for each in prompts if len(each.name) <= MAX_URI_LENGTH),
    )


async def resource_blocks(result: "ReadResourceResult", redact: Redact = str) -> tuple[Text | Image, ...]:
    """Text and pictures; of what is neither, a word about it."""
    found = result.contents
    return await _to_blocks([("resource", each) for each in found], redact)


async def prompt_blocks(result: "GetPromptResult", redact: Redact = str) -> tuple[Text | Image, ...]:
    """Those of all its messages, in order."""
    return await _to_blocks([("block", each.content) for each in result.messages], redact)


async def complete_argument(
    client: McpClient, of: str, argument: str, value: str, others: Mapping[str, str]
) -> tuple[str, ...]:
    """What the server would fill in for an argument of a prompt, or of a template. Raises ToolFailed."""
    found = await client.complete(of, argument, value, others)
    return tuple(visible_text(each, _MAX_TEXT_LENGTH) for each in found[:_MAX_COMPLETIONS])


async def _to_blocks(blocks: "list[tuple[str, Any]]", redact: Redact) -> tuple[Text | Image, ...]:
    def take() -> tuple[Text | Image, ...]:
        converter = ContentConverter(redact)
        parts = [
            converter.resource(block) if kind == "resource" else converter.part(block)
            for kind, block in blocks[:MAX_PARTS]
        ]
        rest = len(blocks) - MAX_PARTS
        return (*parts, Text(text=f"[left out: {rest:,} more parts]")) if rest > 0 else tuple(parts)

    return await run_by_size(take, [block.model_dump() for _, block in blocks[:MAX_PARTS]])


def _resource(theirs: "Resource") -> McpResource:
    return McpResource(
        uri=str(theirs.uri),
        **_names(theirs),
        media_type=visible_text(theirs.mime_type or "", MAX_TITLE_LENGTH),
        size=theirs.size if theirs.size is not None and theirs.size >= 0 else None,
    )


def _template(theirs: "ResourceTemplate") -> McpResourceTemplate:
    return McpResourceTemplate(uri_template=theirs.uri_template, **_names(theirs))


def _prompt(theirs: "Prompt") -> McpPrompt:
    names = {**_names(theirs), "name": theirs.name}
    return McpPrompt(**names, arguments=tuple(_arguments(theirs.arguments or ())))


def _arguments(theirs: "Iterable[Any]") -> Iterable[McpPromptArgument]:
    for each in list(theirs)[:_MAX_ARGUMENTS]:
        yield McpPromptArgument(
            each.name, visible_text(each.description or "", _MAX_TEXT_LENGTH), each.required is True
        )


def _names(theirs: "Resource | ResourceTemplate | Prompt") -> dict[str, str]:
    return {
        "name": visible_text(theirs.name, MAX_TITLE_LENGTH),
        "title": visible_text(theirs.title or theirs.name, MAX_TITLE_LENGTH),
        "description": visible_text(theirs.description or "", _MAX_TEXT_LENGTH),
    }
