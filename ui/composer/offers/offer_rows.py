"""The rows of what servers offer: prompts, resources and templates under their server, narrowed by what is typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.mcp.contents import OfferedPrompt, OfferedResource, OfferedTemplate
from ui.bridge.mcp.offers import ServerOffers
from ui.look.parts.found_rows import FoundRow
from ui.look.sentences import size_in_words, spoken
from ui.look.visible_text import with_hidden_shown

Wanted = Literal["all", "prompts", "resources"]
Offered = OfferedPrompt | OfferedResource | OfferedTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow(FoundRow):
    """Something to take, or a heading or a remark (then `offered` is None)."""

    server_id: str
    server: str
    offered: Offered | None = None


def offer_rows(groups: Sequence[ServerOffers], typed: str, wanted: Wanted) -> list[OfferRow]:
    """What has `typed` in its title, name, address or description, of each server."""
    return [row for group in groups for row in _rows_of(group, typed.strip().casefold(), wanted)]


def _rows_of(group: ServerOffers, typed: str, wanted: Wanted) -> list[OfferRow]:
    title, found, of = with_hidden_shown(group.title), group.contents, (group.server_id, group.title)
    heading = OfferRow(text=title, server_id=of[0], server=of[1], is_heading=True)
    if found is None:
        words = spoken(group.problem) if group.problem is not None else _tr("Starting…")
        badge = "problem" if group.problem is not None else ""
        return [heading, OfferRow(text=words, server_id=of[0], server=of[1], badge=badge, is_faded=True)]
    prompts: tuple[Offered, ...] = found.prompts if wanted != "resources" else ()
    readable: tuple[Offered, ...] = (*found.resources, *found.templates) if wanted != "prompts" else ()
    rows = [_row_of(group, each) for each in (*prompts, *readable) if typed in _searched(each)]
    if not rows and not typed:
        rows = [OfferRow(text=_nothing(wanted), server_id=of[0], server=of[1], is_faded=True)]
    return [heading, *rows] if rows else []


def _nothing(wanted: Wanted) -> str:
    return {
        "all": _tr("It offers no prompts and no resources."),
        "prompts": _tr("It offers no prompts."),
        "resources": _tr("It offers no resources."),
    }[wanted]


def _row_of(group: ServerOffers, offered: Offered) -> OfferRow:
    parts = [" ".join(with_hidden_shown(offered.description).split())]
    if isinstance(offered, OfferedResource):
        parts += [size_in_words(offered.size)] if offered.size is not None else []
        parts += [] if parts[0] else [with_hidden_shown(offered.uri)]
    elif isinstance(offered, OfferedTemplate):
        parts.append(with_hidden_shown(offered.uri_template))
    elif any(each.required for each in offered.arguments):
        parts.append(_tr("asks for more"))
    return OfferRow(
        text=with_hidden_shown(offered.title),
        under=" · ".join(each for each in parts if each),
        icon=_icon_of(offered),
        is_choosable=True,
        server_id=group.server_id,
        server=group.title,
        offered=offered,
    )


def _icon_of(offered: Offered) -> str:
    match offered:
        case OfferedPrompt():
            return "pencil"
        case OfferedResource(media_type=kind) if kind.startswith("image/"):
            return "picture"
        case OfferedResource():
            return "document"
        case OfferedTemplate():
            return "more"


def _searched(offered: Offered) -> str:
    address = ""
    if isinstance(offered, OfferedResource):
        address = offered.uri
    elif isinstance(offered, OfferedTemplate):
        address = offered.uri_template
    return f"{offered.title}\n{offered.name}\n{offered.description}\n{address}".casefold()


def _tr(text: str) -> str:
    return QCoreApplication.translate("OfferRows", text)
