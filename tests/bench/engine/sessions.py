"""Sessions for measurements: a scripted model, a tool that does nothing, and a real store or none."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel

from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_opening import in_memory_session as open_in_memory
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool, ToolRegistry
from desktop_agent.types.blocks import Text
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import ProviderConfig
from desktop_agent.types.tool_calls import Effect, ToolClass

MODEL = "measured"


class Arguments(BaseModel):
    """The arguments of the tool; `at` is when the last byte of the call was written, in seconds."""

    at: float = 0.0
    number: int = 0


class Noting:
    """Has a tool that only notes how long after its call it began, in seconds of the clock that all processes share."""

    def __init__(self, clock: Any) -> None:
        self.seconds: list[float] = []
        self._clock = clock

    @property
    def tool(self) -> Tool[Arguments]:
        async def run(arguments: Arguments, call: RunningCall) -> tuple[Text, ...]:
            self.seconds.append(self._clock() - arguments.at)
            return (Text(text="done"),)

        return Tool(
            name="note",
            description="Notes that it was called.",
            schema=ModelSchema(Arguments),
            run=run,
            tool_class=ToolClass.READ_ONLY,
            effects=frozenset({Effect.READ}),
        )


def set_up(provider: Any, *tools: Tool[Any], **options: Any) -> SessionSetup:
    """Return the setup of a session; `options` are further fields of it."""

    async def open_provider(*_: Any) -> Any:
        return provider

    async def no_picture(source: Any) -> bytes:
        raise LookupError(source)

    return SessionSetup(
        open_provider=open_provider,
        read_picture=no_picture,
        tools_for=lambda _: ToolRegistry(tools),
        config_for=lambda _: ProviderConfig(),
        **options,
    )


@asynccontextmanager
async def stored_session(setup: SessionSetup, messages: Sequence[Message] = ()) -> AsyncIterator[Session]:
    """A session with a store in a temporary folder."""
    with TemporaryDirectory(prefix="bench-engine-") as folder:
        store = await Store.open(Path(folder))
        try:
            record = await store.create_conversation(title="measured", model=MODEL)
            await store.commit(record.id, *messages)
            session = Session(SessionWriter(JournalQueue(store, record, is_new=False), messages), setup)
            yield session
            await session.close()
        finally:
            await store.close()


@asynccontextmanager
async def in_memory_session(setup: SessionSetup, messages: Sequence[Message] = ()) -> AsyncIterator[Session]:
    """A session that stores nothing."""
    session = open_in_memory(setup, model=MODEL, messages=messages)
    yield session
    await session.close()


async def say(session: Session, text: str = "go") -> None:
    """Send a prompt, and wait until its run has ended."""
    session.send(Message.user(text))
    await session.wait_idle()
    if session.history[-1].text != "done":
        raise RuntimeError("the run did not end as it should")
    await asyncio.sleep(0)
