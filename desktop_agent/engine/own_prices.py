"""The person's own prices: what each model of the servers in use costs, and changes written into `models.toml`."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.engine.connections import Connections
from desktop_agent.engine.model_tables.own_models import MODELS_FILE, load_model_overrides
from desktop_agent.engine.model_tables.price_lines import set_price_in_text
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.connect import catalogue_vendor
from desktop_agent.storage.files import file_error, write_atomically
from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import Sentence, StorageFailed
from desktop_agent.vocabulary.requests import Price


@dataclass(frozen=True, slots=True)
class ModelPriceEntry:
    """One model of one server. `is_own`: a number of its price is the person's."""

    endpoint_id: str
    server: str
    vendor: str
    model: str
    price: Price
    is_own: bool


class PriceOverrides:
    """Reads prices from the catalogue, changes them in the person's file, and has the servers use them at once."""

    def __init__(self, folder: Path, catalogue: Catalogue, connections: Connections) -> None:
        self._folder = folder
        self._catalogue = catalogue
        self._connections = connections
        self._lock = asyncio.Lock()

    def models(self) -> tuple[ModelPriceEntry, ...]:
        """Every model that a server in use has listed, server by server."""
        return tuple(
            ModelPriceEntry(
                endpoint.id,
                endpoint.title,
                vendor,
                model.id,
                model.price or Price(),
                self._catalogue.override_price(vendor, model.id) is not None,
            )
            for endpoint, vendor in self._servers()
            for model in self._connections.listed_models(endpoint)
        )

    async def change(self, vendor: str, model: str, changes: Price | None) -> None:
        """Write these numbers over what the file says about this model; None takes its price out of the file.

        Raises StorageFailed: the disk refuses, or the file is written in a way that cannot be changed safely.
        """
        async with self._lock:
            await asyncio.to_thread(_write_price, self._folder / MODELS_FILE, vendor, model, changes)
            table, _ = await load_model_overrides(self._folder)
            self._catalogue.set_overrides(table)
            for endpoint, its_vendor in self._servers():
                if its_vendor == vendor:
                    self._connections.forget(endpoint.id, prices_only=True)

    def _servers(self) -> list[tuple[Endpoint, str]]:
        """Those in use but the demo, each with its vendor in the tables of models."""
        return [
            (each, catalogue_vendor(each.dialect, each.base_url))
            for each in self._connections.endpoints()
            if each.kind != "demo"
        ]


def _write_price(path: Path, vendor: str, model: str, changes: Price | None) -> None:
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        changed = set_price_in_text(text, vendor, model, changes)
        if changed is None:
            raise StorageFailed(
                Sentence(
                    "Your file “{name}” is written in a way that cannot be changed from here.", {"name": MODELS_FILE}
                ),
                "Change the price in the file itself.",
                detail=str(path),
            )
        if changed != text:
            write_atomically(path, changed.encode("utf-8"))
    except UnicodeDecodeError as error:
        raise StorageFailed(
            Sentence("Your file “{name}” is not text in UTF-8.", {"name": MODELS_FILE}),
            "Save it as UTF-8.",
            detail=str(path),
        ) from error
    except OSError as error:
        raise file_error(error, path) from error
