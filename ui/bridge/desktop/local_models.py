"""Model files of this computer for the screens: what is found, what runs, and the person's choices."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.types.errors import AgentError
from desktop_agent.types.providers import LOCAL_ENDPOINT, LocalModel, LocalPhase
from ui.bridge.event_loop import BackgroundTasks


class LocalModelRunner(QObject):
    """Finds and runs model files; a failure is a state too."""

    found = Signal(object)
    """FoundModels."""
    state_changed = Signal(object)
    """A LocalState."""
    failed = Signal(object)
    """A Sentence about a choice that did not work."""
    chosen = Signal()
    """A model is about to be started by `run` or `run_file`."""
    ready = Signal(str, str)
    """Endpoint id and model of a model that `run` or `run_file` started."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._is_listening = False

    def refresh(self) -> None:
        """Look for models and the server, and emit the state."""
        # Late: the server is not needed before the person looks at the models.
        local = self._engine.connections.local
        if not self._is_listening:
            self._is_listening = True
            local.on_state(self.state_changed.emit)
        self.state_changed.emit(local.state)
        self._tasks.start(self._find())

    def run(self, model: LocalModel) -> None:
        """Choose a model and load it."""
        self.chosen.emit()
        self._tasks.start(self._run(model))

    def run_file(self, path: Path) -> None:
        """Choose a file and load it."""
        self.chosen.emit()
        self._tasks.start(self._run_file(path))

    def stop(self) -> None:
        """End the server."""
        self._tasks.start(self._engine.connections.local.stop())

    async def _find(self) -> None:
        from desktop_agent.local_models.model_files import find_models

        self.found.emit(await asyncio.to_thread(find_models))

    async def _run_file(self, path: Path) -> None:
        from desktop_agent.local_models.model_files import read_model

        try:
            model = await asyncio.to_thread(read_model, path)
        except AgentError as error:
            self.failed.emit(error.whole)
        else:
            await self._run(model)

    async def _run(self, model: LocalModel) -> None:
        model = await self._choose(model)
        local = self._engine.connections.local
        if local.state.phase is LocalPhase.LOADING and local.state.model not in (None, model):
            # Loading may take minutes, and the person wants another model now.
            await local.stop()
        try:
            await local.start(model)
        except AgentError as error:
            self.failed.emit(error.whole)
        else:
            self.ready.emit(LOCAL_ENDPOINT, model.id)

    async def _choose(self, model: LocalModel) -> LocalModel:
        """Add the model to the preferences, with a number if another file has its name."""
        others = tuple(other for other in self._engine.preferences.local.models if other.path != model.path)
        id_, number = model.id, 2
        while any(other.id == id_ for other in others):
            id_, number = f"{model.id} ({number})", number + 1
        model = model.model_copy(update={"id": id_})
        await self._engine.change_preferences(self._engine.preferences.with_changes("local", models=(*others, model)))
        return model
