"""One life of the program in a random world: a process that may die at any await, over a database that does not.

Everything is real but the clock, the thread of the database (its jobs run on the loop, one step later, so that every
run is the same) and the model.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.storage.database_thread import DatabaseThread
from desktop_agent.storage.opening import DATABASE_NAME, open_database
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.providers import Capabilities, ImageLimits, ModelInfo, ModelRequest, ProviderState
from desktop_agent.types.tool_calls import Effect, ToolClass
from tests.invariants.scripts import BREAK, HANG, READ, STUBBORN, WRITE, ScriptedAnswer
from tests.invariants.virtual_loop import VirtualLoop

T = TypeVar("T")
WINDOW = 2_000


class InlineWorker(WorkerThread):
    """Runs each job one step of the loop later. When the process is dead, nothing is written any more."""

    def __init__(self, life: "Life") -> None:
        self._life = life

    def submit(self, job: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._life.loop.call_soon(self._work, job, future)
        return future

    async def run(self, job: Callable[[], T]) -> T:
        done: asyncio.Future[T] = self._life.loop.create_future()

        def work() -> None:
            if done.cancelled():
                run_if_alive(job, self._life)
                return
            try:
                if not self._life.alive:
                    raise StorageFailed("the process is dead")
                done.set_result(job())
            except Exception as error:
                done.set_exception(error)

        self._life.loop.call_soon(work)
        return await asyncio.shield(done)

    def stop(self) -> None:
        pass

    def _work(self, job: Callable[[], T], future: "Future[T]") -> None:
        if self._life.alive:
            future.set_result(job())


def run_if_alive(job: Callable[[], Any], life: "Life") -> None:
    if life.alive:
        job()


class Words(BaseModel):
    model_config = ConfigDict(extra="forbid")

    word: str = "x"


class _Known(ModelSchema[Words]):
    """Builds its JSON schema once: that takes longer than everything else about a request."""

    def __init__(self) -> None:
        super().__init__(Words)
        self._written = super().json_schema

    @property
    def json_schema(self) -> dict[str, Any]:
        return self._written


_WORDS = _Known()


class Life:
    """The loop, the store and the tools between one start of the program and its end."""

    def __init__(self, folder: Path, observe: "Observer") -> None:
        self.loop = VirtualLoop()
        self.alive = True
        self.folder = folder
        self.observe = observe
        opened = open_database(folder)
        self.store = Store(folder, DatabaseThread(folder, InlineWorker(self), opened))
        self._connection = opened.connection
        self.watch = sqlite3.connect(folder / DATABASE_NAME)
        """Another connection: it sees what is written, and nothing else."""

    def die(self) -> None:
        """As by `kill -9`: from now on nothing is written and nothing has an effect."""
        self.alive = False
        self._bury()

    def end(self) -> None:
        """End in order: close the store."""
        self.loop.complete(self.store.close())
        self.alive = False
        self._bury()

    def _bury(self) -> None:
        # More than once: where a message waits, the end of a run begins the next one.
        for _ in range(20):
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            # Without timers, or what the dead process cannot write would be tried again for ever.
            self.loop.steps_now(3_000)
            self.loop.forget_timers()
        assert not asyncio.all_tasks(self.loop), "tasks that do not heed a cancel"
        self.watch.close()
        self._connection.close()
        self.loop.complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def journalled(self, kind: str, id_: str) -> int:
        """Return how many rows of this kind another connection sees in the journal of a call."""
        query = "SELECT count(*) FROM journal WHERE type = ? AND json_extract(event, '$.id') = ?"
        return int(self.watch.execute(query, (kind, id_)).fetchone()[0])

    def tools(self) -> tuple[AnyTool, ...]:
        """Return all tools that a model may call, but for the unknown one."""
        return (
            self._tool(READ, mutating=False),
            self._tool(WRITE, mutating=True),
            self._tool(HANG, mutating=True),
            self._tool(STUBBORN, mutating=False),
            self._tool(BREAK, mutating=True),
        )

    def _tool(self, name: str, *, mutating: bool) -> AnyTool:
        async def run(arguments: Words, call: RunningCall) -> tuple[Text, ...]:
            return await self._work(name, arguments.word, call)

        return Tool(
            name=name,
            description=name,
            schema=_WORDS,
            run=run,
            tool_class=ToolClass.MUTATING if mutating else ToolClass.READ_ONLY,
            effects=frozenset({Effect.WRITE}) if mutating else frozenset({Effect.READ}),
            timeout=30.0,
        )

    async def _work(self, name: str, word: str, call: RunningCall) -> tuple[Text, ...]:
        if not self.alive:
            raise asyncio.CancelledError
        with self.observe.effect(self, name, word, call):
            await asyncio.sleep(0)
            call.progress("working")
            await asyncio.sleep(0.01)
            if name == BREAK:
                raise ValueError("a fault inside")
            if name == HANG:
                await asyncio.Event().wait()
            if name == STUBBORN:
                for _ in range(5):
                    try:
                        await asyncio.sleep(1.0)
                    except asyncio.CancelledError:
                        continue
            return (Text(text=f"{name} {word}"),)


class Observer:
    """Is told of the effects of the tools of a life."""

    def effect(self, life: Life, name: str, word: str, call: RunningCall) -> Any:
        raise NotImplementedError


class RandomModel:
    """Answers each request with what the world's `next_answer` returns for it."""

    def __init__(self, next_answer: Callable[[ModelRequest], tuple[int, ScriptedAnswer]]) -> None:
        self._next_answer = next_answer
        self._state = ProviderState()

    @property
    def dialect(self) -> str:
        return "scripted"

    @property
    def state(self) -> ProviderState:
        return self._state

    async def stream(self, request: ModelRequest) -> Any:
        serial, scripted = self._next_answer(request)
        for step in scripted.steps(serial):
            await asyncio.sleep(scripted.pause)
            if isinstance(step, Exception):
                raise type(step)(str(step))
            yield step
        await asyncio.sleep(0)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return ()

    def model_info(self, model: str) -> ModelInfo:
        return ModelInfo(model, capabilities=Capabilities(context_window=WINDOW))

    def picture_limits(self, model: str) -> ImageLimits:
        return ImageLimits()

    async def aclose(self) -> None:
        pass
