"""Preferences for the screens."""

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.own_prices import ModelPriceEntry
from desktop_agent.vocabulary.preferences import Preferences
from desktop_agent.vocabulary.requests import Price
from ui.bridge.conduct.known_tools import AvailableTools
from ui.bridge.tasks import BackgroundTasks

ZOOM_STEP, ZOOM_LEAST, ZOOM_MOST = 10, 50, 300


class Settings(QObject):
    """`changed` carries the preferences that hold from now on."""

    changed = Signal(Preferences)
    prices_changed = Signal()

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self.tools = AvailableTools(engine, tasks, self)
        engine.on_preferences(self.changed.emit)

    @property
    def preferences(self) -> Preferences:
        """As they are now."""
        return self._engine.preferences

    def change(self, preferences: Preferences) -> None:
        """Use and save these."""
        self._tasks.start(self._engine.change_preferences(preferences))

    def prices(self) -> tuple[ModelPriceEntry, ...]:
        """What the models of all servers in use cost, as far as is known."""
        return self._engine.prices.models()

    def change_price(self, vendor: str, model: str, changes: Price | None) -> None:
        """Write these numbers into the person's table of models, or take the price out of it."""
        self._tasks.start(self._change_price(vendor, model, changes))

    async def _change_price(self, vendor: str, model: str, changes: Price | None) -> None:
        try:
            await self._engine.prices.change(vendor, model, changes)
        finally:
            # Also when it failed: what is shown then goes back to what holds.
            self.prices_changed.emit()

    def zoom(self, steps: int) -> None:
        """Larger or smaller text; 0 is the normal size."""
        now = self.preferences.appearance.zoom
        zoom = 100 if steps == 0 else min(ZOOM_MOST, max(ZOOM_LEAST, now + steps * ZOOM_STEP))
        appearance = self.preferences.appearance.model_copy(update={"zoom": zoom})
        self.change(self.preferences.model_copy(update={"appearance": appearance}))
