"""Runs one model file at a time: starts its server with the first request, and ends it after idle minutes."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from pydantic import SecretStr

from desktop_agent.local_models.llama_server import LlamaServer, LocalModelFailed, ServerOptions
from desktop_agent.local_models.model_files import find_server
from desktop_agent.processes.listeners import Listeners
from desktop_agent.processes.run_process import wait_at_most
from desktop_agent.providers.event_batches import EventBatches, ready_events
from desktop_agent.providers.provider import Provider
from desktop_agent.types.errors import CachingNotSupported, ProviderError, Sentence, WrongUse
from desktop_agent.types.preferences import LocalModelPreferences
from desktop_agent.types.provider_events import ProviderEvent
from desktop_agent.types.providers import (
    CachedPrompt,
    Capabilities,
    ImageLimits,
    LocalModel,
    LocalPhase,
    LocalState,
    ModelInfo,
    ModelRequest,
    ProviderState,
    TokenCount,
)

_WATCH_SECONDS = 2.0
_EXIT_GRACE = 0.5
GET_SERVER = "Install llama.cpp (https://github.com/ggml-org/llama.cpp), so that there is a program llama-server."
_NO_SERVER = Sentence("There is no llama.cpp server on this computer.")


class LocalModels:
    """The models that the person has chosen, and the server of the one that runs.

    `connect` makes the provider of an address and its key. `watch_seconds` pass between two checks of memory and idle
    time.
    """

    def __init__(
        self,
        preferences: Callable[[], LocalModelPreferences],
        connect: Callable[[str, SecretStr], Provider],
        *,
        program: Callable[[], str | None] = find_server,
        clock: Callable[[], float] = time.monotonic,
        watch_seconds: float = _WATCH_SECONDS,
    ) -> None:
        self._preferences = preferences
        self._connect = connect
        self._find_program = program
        self._clock = clock
        self._watch_seconds = watch_seconds
        self.state = LocalState()
        self._changed = Listeners[[LocalState]]()
        self.on_state = self._changed.add
        """Call a listener at every change of phase or memory."""
        self._server: LlamaServer | None = None
        self._inner: Provider | None = None
        self._start: asyncio.Task[Provider] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._in_use = 0
        self._last_use = clock()
        self.provider: Provider = _LocalProvider(self)

    def model_info(self, model_id: str) -> ModelInfo:
        """Return what is known of a chosen model without running it."""
        inner = self._inner
        known = Capabilities()
        if inner is not None and self.state.model is not None and self.state.model.id == model_id:
            known = inner.model_info(model_id).capabilities
        model = self._find(model_id)
        window = None if model is None else self._context(model)
        return ModelInfo(model_id, capabilities=replace(known, context_window=window))

    @property
    def infos(self) -> tuple[ModelInfo, ...]:
        return tuple(self.model_info(model.id) for model in self._preferences().models)

    async def start(self, model: LocalModel) -> Provider:
        """Load a model, unless it runs; another one is ended first. `stop` and a cancel of the caller end the loading.

        Raises LocalModelFailed, and WrongUse while another model answers.
        """
        async with self._changing:
            running = self.state.model
            if self._inner is not None and self._server is not None and not self._server.exited.is_set():
                if running is not None and running.path == model.path:
                    return self._inner
                if self._in_use:
                    values = {"model": running.id if running else ""}
                    sentence = Sentence("“{model}” is still answering, and only one model runs at a time.", values)
                    raise WrongUse(sentence, "Wait for its answer or stop it, then try again.")
            await self._end()
            self._start = asyncio.create_task(self._load(model))
            try:
                return await self._start
            except asyncio.CancelledError:
                self._start.cancel()
                await asyncio.gather(self._start, return_exceptions=True)
                # The model may have been loaded at the same moment.
                await self._end()
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    self._set_state(LocalState())
                    raise
                # Stopped by the person while it was loading.
                raise LocalModelFailed(
                    Sentence("“{model}” was stopped.", {"model": model.id}), "Start it again."
                ) from None
            finally:
                self._start = None

    async def stop(self) -> None:
        """End the server, also one that is loading its model."""
        if self._start is not None:
            self._start.cancel()
        async with self._changing:
            await self._end()
            self._set_state(LocalState())

    async def close(self) -> None:
        """End the server; listeners are not notified any more."""
        self._changed.clear()
        await self.stop()

    @asynccontextmanager
    async def lease(self, model_id: str) -> AsyncGenerator[Provider]:
        """Have this model running as long as the context is open. Raises what `start` raises."""
        model = self._find(model_id)
        if model is None:
            sentence = Sentence("The model file “{model}” is no longer chosen.", {"model": model_id})
            raise WrongUse(sentence, "Choose another model, or choose the file again.")
        inner = await self.start(model)
        server = self._server
        self._in_use += 1
        try:
            yield inner
        except ProviderError as error:
            if server is not None:
                # Its exit is noticed a moment after its connections are closed.
                await wait_at_most(server.exited, _EXIT_GRACE)
            if server is self._server and server is not None and not server.exited.is_set():
                raise
            sentence = Sentence("The server of “{model}” ended while it answered.", {"model": model_id})
            raise LocalModelFailed(sentence, "Send the message again: the model is then loaded again.") from error
        finally:
            self._in_use -= 1
            self._last_use = self._clock()

    async def _load(self, model: LocalModel) -> Provider:
        self._set_state(LocalState(LocalPhase.LOADING, model))

        def on_memory(memory: int) -> None:
            self._set_state(LocalState(LocalPhase.LOADING, model, memory))

        try:
            options = ServerOptions(await self._require_program(), self._context(model))
            server = await LlamaServer.start(model, options, on_memory)
        except LocalModelFailed as error:
            self._set_state(LocalState(LocalPhase.FAILED, model, remark=error.sentence))
            raise
        self._server, self._inner = server, self._connect(server.base_url, server.key)
        try:
            # The first request shows which server this is, and what its model can do.
            await self._inner.list_models()
            self._last_use = self._clock()
            self._set_state(LocalState(LocalPhase.READY, model, await server.memory()))
        except BaseException:
            await self._end()
            raise
        self._watching = asyncio.create_task(self._watch(server, model))
        return self._inner

    async def _require_program(self) -> str:
        program = await asyncio.to_thread(self._find_program)
        if program is None:
            raise LocalModelFailed(_NO_SERVER, GET_SERVER)
        return program

    async def _end(self) -> None:
        server, inner, watching = self._server, self._inner, self._watching
        self._server = self._inner = self._watching = None
        if watching is not None and watching is not asyncio.current_task():
            watching.cancel()
        if inner is not None:
            await inner.aclose()
        if server is not None:
            await server.stop()

    async def _watch(self, server: LlamaServer, model: LocalModel) -> None:
        """Report memory, end the server when it was idle for long, and notice its own end."""
        while True:
            await wait_at_most(server.exited, self._watch_seconds)
            if self._server is not server:
                return
            if server.exited.is_set():
                self._server = self._inner = None
                await server.stop()
                remark = Sentence("The server of “{model}” ended by itself.", {"model": model.id})
                self._set_state(LocalState(LocalPhase.FAILED, model, remark=remark))
                return
            if self._is_idle() and await self._unload(model):
                return
            self._set_state(LocalState(LocalPhase.READY, model, await server.memory()))

    async def _unload(self, model: LocalModel) -> bool:
        """End the idle server, unless a request came meanwhile."""
        async with self._changing:
            if not self._is_idle():
                return False
            await self._end()
            remark = Sentence("“{model}” was unloaded, because nobody used it.", {"model": model.id})
            self._set_state(LocalState(remark=remark))
            return True

    def _is_idle(self) -> bool:
        minutes = self._preferences().idle_minutes
        return minutes > 0 and not self._in_use and self._clock() - self._last_use >= minutes * 60

    def _find(self, model_id: str) -> LocalModel | None:
        return next((model for model in self._preferences().models if model.id == model_id), None)

    def _context(self, model: LocalModel) -> int:
        chosen = self._preferences().context_tokens
        return min(chosen, model.context_length or chosen)

    def _set_state(self, state: LocalState) -> None:
        if state == self.state:
            return
        self.state = state
        self._changed.notify(state)


class _LocalProvider:
    """The provider of all chosen model files: a request loads its model first."""

    dialect = "openai-chat"

    def __init__(self, models: LocalModels) -> None:
        self._models = models
        self.state = ProviderState()

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        return EventBatches(self._batches(request))

    async def _batches(self, request: ModelRequest) -> AsyncGenerator[Sequence[ProviderEvent], None]:
        async with self._models.lease(request.model) as inner:
            self.state = inner.state
            async with aclosing(inner.stream(request)) as events:
                take_ready = ready_events(events)
                async for event in events:
                    yield [event, *take_ready()]

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return self._models.infos

    def model_info(self, model: str) -> ModelInfo:
        return self._models.model_info(model)

    def picture_limits(self, model: str) -> ImageLimits:  # noqa: ARG002
        return ImageLimits()

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Return the length of a request, as the model's server counts it."""
        async with self._models.lease(request.model) as inner:
            return await inner.count_tokens(request)

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:  # noqa: ARG002
        """Refuse: the server keeps the last prompt by itself."""
        raise CachingNotSupported("llama.cpp caches the last prompt by itself.")

    async def aclose(self) -> None:
        """Do nothing: the server belongs to LocalModels."""
