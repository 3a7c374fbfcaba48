"""Coroutines inside Qt's own event loop, as the program runs them."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from desktop_agent.conversation.items import UserItem
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.types.errors import AgentError
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from desktop_agent.types.providers import Endpoint
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.frame.patience import PATIENCE
from ui.bridge.event_loop import BackgroundTasks, EventLoop, FrameClock
from ui.bridge.library import ConversationLibrary
from ui.bridge.model_servers import ModelServers
from ui.bridge.settings import Settings
from ui.bridge.storage import PictureStore

T = TypeVar("T")
LIMIT = PATIENCE
"""Seconds until a test that waits in vain fails."""
SCRIPTED = Endpoint(id="scripted", title="Scripted", base_url="http://127.0.0.1:9/v1")

InLoop = Callable[[Coroutine[Any, Any, T]], T]


@pytest.fixture
def in_loop(qapp) -> Iterator[InLoop]:
    """Return a function that runs a coroutine to its end. The loop is closed after the test."""
    quits = qapp.quitOnLastWindowClosed()
    qapp.setQuitOnLastWindowClosed(False)  # as ui.bridge.event_loop does: the loop ends with its coroutine
    loop = EventLoop(qapp)
    asyncio.set_event_loop(loop)

    def run(work):
        async def limited():
            async with asyncio.timeout(LIMIT):
                return await work

        return loop.run_until_complete(limited())

    yield run
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    asyncio.set_event_loop(None)
    qapp.setQuitOnLastWindowClosed(quits)


async def until(true: Callable[[], Any]) -> Any:
    """Wait until the condition is true; return its value."""
    while not (answer := true()):
        await asyncio.sleep(0.002)
    return answer


class Heard(list):
    """The arguments of each emission of a signal."""

    def __init__(self, signal) -> None:
        super().__init__()
        self._signal = signal
        signal.connect(self._on_signal)

    def _on_signal(self, *arguments) -> None:
        self.append(arguments[0] if len(arguments) == 1 else arguments)

    async def next(self):
        """Wait for one more emission, and return its arguments."""
        count = len(self)
        await until(lambda: len(self) > count)
        return self[-1]

    def leave(self) -> None:
        """Disconnect from the signal."""
        self._signal.disconnect(self._on_signal)


def prompts(conversation):
    """The texts that the person has sent."""
    return [item.text for item in conversation.transcript if isinstance(item, UserItem)]


class Bridge:
    """The whole bridge over a real engine whose server `scripted` plays these turns."""

    def __init__(self, engine: Engine, provider: ScriptedProvider) -> None:
        self.engine = engine
        self.provider = provider
        self.errors: list[AgentError] = []
        self.clock = FrameClock()
        self.tasks = BackgroundTasks(self.errors.append)
        self.pictures = PictureStore(engine.store)
        self.library = ConversationLibrary(engine, self.clock, self.tasks, self.pictures)
        self.servers = ModelServers(engine, self.tasks)
        self.settings = Settings(engine, self.tasks)

    @classmethod
    async def open(cls, folder, *turns: Turn, connected: bool = True, titles: bool = False) -> "Bridge":
        engine = await Engine.open(folder, RunDefaults(titles=titles))
        provider = ScriptedProvider(*turns)
        if connected:
            engine.connections._providers["scripted"] = provider
            providers = ProviderPreferences(endpoints=(SCRIPTED,), endpoint_id="scripted", model="m")
            await engine.change_preferences(Preferences(providers=providers))
        return cls(engine, provider)

    async def idle(self) -> None:
        """Wait until no background task runs."""
        await until(lambda: not self.tasks._running)

    async def close(self) -> None:
        await self.tasks.close()
        self.library.close()
        self.clock.stop()
        await self.engine.close()


def held(target: object, name: str) -> tuple[asyncio.Event, asyncio.Event]:
    """Make this method of an object wait; return the event that its call sets, and the one that it waits for."""
    method, is_called, may_go_on = getattr(target, name), asyncio.Event(), asyncio.Event()

    async def wait_first(*args, **kwargs):
        is_called.set()
        await may_go_on.wait()
        return await method(*args, **kwargs)

    setattr(target, name, wait_first)
    return is_called, may_go_on
