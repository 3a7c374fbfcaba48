"""The rows of what servers offer: prompts, resources and templates under their server, narrowed by what is typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.mcp.contents import McpPrompt, McpResource, McpResourceTemplate
from ui.bridge.mcp.offers import ServerCatalog
from ui.look.parts.found_rows import ResultRow
from ui.look.sentences import format_bytes, translate_sentence
from ui.look.visible_text import show_hidden

CompletionKind = Literal["all", "prompts", "resources"]
CatalogItem = McpPrompt | McpResource | McpResourceTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionItem(ResultRow):
    """Something to take, or a heading or a remark (then `offered` is None)."""

    server_id: str
    server: str
    offered: CatalogItem | None = None


def completion_items(groups: Sequence[ServerCatalog], typed: str, wanted: CompletionKind) -> list[CompletionItem]:
    """What has `typed` in its title, name, address or description, of each server."""
    return [row for group in groups for row in _items_of(group, typed.strip().casefold(), wanted)]


def _items_of(group: ServerCatalog, typed: str, wanted: CompletionKind) -> list[CompletionItem]:
    title, found, of = show_hidden(group.title), group.contents, (group.server_id, group.title)
    heading = CompletionItem(text=title, server_id=of[0], server=of[1], is_heading=True)
    if found is None:
        words = translate_sentence(group.problem) if group.problem is not None else _tr("Starting…")
        badge = "problem" if group.problem is not None else ""
        return [heading, CompletionItem(text=words, server_id=of[0], server=of[1], badge=badge, is_faded=True)]
    prompts: tuple[CatalogItem, ...] = found.prompts if wanted != "resources" else ()
    readable: tuple[CatalogItem, ...] = (*found.resources, *found.templates) if wanted != "prompts" else ()
    rows = [_item_of(group, each) for each in (*prompts, *readable) if typed in _search_text(each)]
    if not rows and not typed:
        rows = [CompletionItem(text=_empty_text(wanted), server_id=of[0], server=of[1], is_faded=True)]
    return [heading, *rows] if rows else []


def _empty_text(wanted: CompletionKind) -> str:
    return {
        "all": _tr("It offers no prompts and no resources."),
        "prompts": _tr("It offers no prompts."),
        "resources": _tr("It offers no resources."),
    }[wanted]


def _item_of(group: ServerCatalog, offered: CatalogItem) -> CompletionItem:
    parts = [" ".join(show_hidden(offered.description).split())]
    if isinstance(offered, McpResource):
        parts += [format_bytes(offered.size)] if offered.size is not None else []
        parts += [] if parts[0] else [show_hidden(offered.uri)]
    elif isinstance(offered, McpResourceTemplate):
        parts.append(show_hidden(offered.uri_template))
    elif any(each.required for each in offered.arguments):
        parts.append(_tr("asks for more"))
    return CompletionItem(
        text=show_hidden(offered.title),
        under=" · ".join(each for each in parts if each),
        icon=_icon_of(offered),
        is_choosable=True,
        server_id=group.server_id,
        server=group.title,
        offered=offered,
    )


def _icon_of(offered: CatalogItem) -> str:
    match offered:
        case McpPrompt():
            return "pencil"
        case McpResource(media_type=kind) if kind.startswith("image/"):
            return "picture"
        case McpResource():
            return "document"
        case McpResourceTemplate():
            return "more"


def _search_text(offered: CatalogItem) -> str:
    address = ""
    if isinstance(offered, McpResource):
        address = offered.uri
    elif isinstance(offered, McpResourceTemplate):
        address = offered.uri_template
    return f"{offered.title}\n{offered.name}\n{offered.description}\n{address}".casefold()


def _tr(text: str) -> str:
    return QCoreApplication.translate("OfferRows", text)
