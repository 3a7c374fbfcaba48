"""What is known about models: the person's own table over the shipped one."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from desktop_agent.vocabulary.requests import ModelInfo, Price

if TYPE_CHECKING:
    from desktop_agent.providers.catalogue.tables import ModelTable

# Gateways whose models carry their maker's name in front: there the maker's row holds.
_GATEWAYS = frozenset({"openrouter", "litellm"})
# These pass the maker's prices on.
_SAME_PRICES = frozenset({"openrouter"})
_MAKERS = {"google": "gemini", "x-ai": "xai", "mistralai": "mistral"}
# The same models behind another interface.
_SAME_VENDOR = {"google-openai": "gemini"}


class Catalogue:
    """Looks models up by vendor and id.

    `vendor` is anthropic, gemini, openai, or the family of a compatible server (`dialects.servers`). With `shipped`
    the table of the program lies below `own`, the person's; until `warm_up` has read it nothing is known from it.
    `today` decides between prices that change on a day.
    """

    def __init__(
        self,
        own: "ModelTable | None" = None,
        *,
        shipped: bool = False,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        self._own = own
        self._uses_shipped = shipped
        self._shipped: ModelTable | None = None
        self._today = today

    async def warm_up(self) -> None:
        """Read the shipped table, in a thread; at once where that was done before."""
        if self._uses_shipped and self._shipped is None:
            self._shipped = await asyncio.to_thread(_shipped_table)

    def set_overrides(self, own: "ModelTable | None") -> None:
        """Another table of the person's, from now on."""
        self._own = own

    def override_price(self, vendor: str, model: str) -> Price | None:
        """What the person's own table says this model costs, if it says anything."""
        found = self._row(self._own, vendor, model)
        return None if found is None else found.price

    def find(self, vendor: str, model: str) -> ModelInfo | None:
        """What the tables say about a model."""
        known = self.merged(vendor, ModelInfo(model))
        return known if known != ModelInfo(model) else None

    def merged(self, vendor: str, listed: ModelInfo) -> ModelInfo:
        """What the person says, then what the server says, then what the shipped table says."""
        own, shipped = (self._row(table, vendor, listed.id) for table in (self._own, self._shipped))
        known = listed if shipped is None else _overlay(listed, shipped)
        return known if own is None else replace(_overlay(own, known), id=listed.id)

    def _row(self, table: "ModelTable | None", vendor: str, model: str) -> ModelInfo | None:
        if table is None:
            return None
        model = model.removeprefix("models/")
        found = table.find(_SAME_VENDOR.get(vendor, vendor), model, self._today())
        if found is None and vendor in _GATEWAYS and "/" in model:
            return self._row_of_maker(table, vendor, model)
        return found

    def _row_of_maker(self, table: "ModelTable", gateway: str, model: str) -> ModelInfo | None:
        """`maker/model`, as gateways write it. A variant behind a colon (`:free`) is served and paid differently."""
        maker, _, name = model.partition("/")
        name, _, variant = name.partition(":")
        found = table.find(_MAKERS.get(maker, maker), name, self._today())
        if found is None:
            return None
        price = found.price if gateway in _SAME_PRICES and not variant else None
        # The makers' own servers check what reasoning follows; gateways do not pass that check on.
        return replace(found, price=price, capabilities=replace(found.capabilities, binds_prefix=None))


def _overlay(upper: ModelInfo, lower: ModelInfo) -> ModelInfo:
    """What the upper says, and what only the lower says."""
    return replace(
        upper,
        title=upper.title or lower.title,
        capabilities=upper.capabilities.over(lower.capabilities),
        price=_overlay_price(upper.price, lower.price),
        retires=upper.retires or lower.retires,
    )


def _overlay_price(upper: Price | None, lower: Price | None) -> Price | None:
    """Number by number: a person who changes one keeps the others."""
    if upper is None or lower is None:
        return upper or lower
    said = {name: getattr(upper, name) for name in Price.model_fields if name != "long"}
    update: dict[str, object] = {name: value for name, value in said.items() if value is not None}
    return lower.model_copy(update={**update, "long": _overlay_price(upper.long, lower.long)})


def _shipped_table() -> "ModelTable":
    from desktop_agent.providers.catalogue.tables import load_shipped_table

    return load_shipped_table()
