"""A run in a test, with a scripted model, a recorder in memory, and simple tools."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import BaseModel

from desktop_agent.agent.model_request import RunSettings
from desktop_agent.agent.modes import ModeSwitch
from desktop_agent.agent.retry import RetryPolicy
from desktop_agent.agent.run import Run
from desktop_agent.agent.run_context import RunContext
from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool, ToolRegistry
from desktop_agent.types.blocks import Outcome, StoredSource, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import Event, RunEnd, RunFinished
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message, new_id
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.policies import Limits
from desktop_agent.types.providers import ImageLimits, ModelInfo
from desktop_agent.types.tool_calls import Effect, ToolClass
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.frame.patience import PATIENCE


class Words(BaseModel):
    """The input of every tool here."""

    word: str = "x"


class Memory:
    """A recorder that keeps everything in memory; with `refuse` its disk fails."""

    def __init__(self, *messages: Message) -> None:
        self.run_id = new_id()
        self.nested_ones: list[Memory] = []
        self.messages = list(messages)
        self.events: list[Event] = []
        self.settled: list[int] = []
        self.refuse = False

    def emit(self, event: Event, pieces: Sequence[Event] = ()) -> None:
        self.events.extend(pieces or (event,))

    async def flush(self) -> None:
        if self.refuse:
            raise StorageFailed("the disk refuses")
        self.settled.append(len(self.events))

    async def commit(self, *messages: Message) -> None:
        self.messages.extend(messages)

    def history(self) -> tuple[Message, ...]:
        return tuple(self.messages)

    def nested(self) -> "Memory":
        self.nested_ones.append(Memory())
        return self.nested_ones[-1]

    def of(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def end(self) -> RunEnd:
        finished = self.of(RunFinished)
        assert len(finished) == 1
        assert self.events[-1] is finished[0]
        return finished[0].reason

    @property
    def results(self) -> list[ToolResult]:
        return [block for message in self.messages for block in message.blocks if isinstance(block, ToolResult)]

    @property
    def outcomes(self) -> list[Outcome]:
        return [result.outcome for result in self.results]


def tool(
    name: str,
    work: Callable[[str], Awaitable[str]] | None = None,
    *,
    read_only: bool = False,
    timeout: float = 30.0,
) -> Tool[Words]:
    """A tool that answers with its word, or with what `work` returns for it."""

    async def run(given: Words, call: RunningCall) -> tuple[Text, ...]:
        return (Text(text=await work(given.word) if work else given.word),)

    return Tool(
        name=name,
        description=name,
        schema=ModelSchema(Words),
        run=run,
        tool_class=ToolClass.READ_ONLY if read_only else ToolClass.MUTATING,
        effects=frozenset() if read_only else frozenset({Effect.WRITE}),
        timeout=timeout,
    )


def call(id_: str, name: str, word: str = "x") -> ToolUse:
    return ToolUse(id=id_, name=name, input={"word": word})


class Desk:
    """One run with its context, provider and recorder."""

    def __init__(
        self,
        *turns: Turn,
        tools: tuple[Tool[Words], ...] = (),
        iterations: int = 50,
        pictures: ImageLimits | None = None,
        models: tuple[ModelInfo, ...] = (),
        limits: Limits | None = None,
        manual: bool = False,
        **context: Any,
    ) -> None:
        self.provider = ScriptedProvider(*turns, models=models, pictures=pictures)
        self.memory = Memory(Message.user("go"))
        self.approvals = ApprovalBroker()
        self.permission_policy = PermissionPolicy()
        self.modes = ModeSwitch(self.permission_policy, emit=self.memory.emit)
        self.context = RunContext(
            open_provider=self._open,
            recorder=self.memory,
            tools=ToolRegistry(tools),
            approvals=self.approvals,
            permission_policy=self.permission_policy,
            modes=self.modes,
            read_picture=self._picture,
            retry=RetryPolicy(first_delay=0.001, max_delay=0.001),
            **context,
        )
        self.settings = RunSettings(
            model="m", limits=limits or Limits(tool_iterations=iterations), execute_tools=not manual
        )
        self.run = Run(self.context, self.settings)

    async def _open(self, model: str) -> ScriptedProvider:
        return self.provider

    async def _picture(self, source: StoredSource) -> bytes:
        return b"\x89PNG\r\n\x1a\n" + bytes(60)

    async def execute(self, prompt: Message | None = None) -> RunEnd:
        # Not wait_for: it would cancel a run that hangs, and a cancelled run ends without an error.
        running = asyncio.create_task(self.run.execute(prompt))
        done, _ = await asyncio.wait({running}, timeout=PATIENCE)
        assert done, "the run did not end"
        end = running.result()
        assert end is self.memory.end
        return end

    def start(self) -> asyncio.Task[RunEnd]:
        return asyncio.create_task(self.execute())

    async def approvals_open(self, count: int = 1) -> None:
        while len(self.approvals.open_approvals) < count:
            await asyncio.sleep(0.001)

    def allow(self, tool: Tool[Any]) -> None:
        self.permission_policy.add(Rule(effect=RuleEffect.ALLOW, tool=tool.identity))

    def decide(self, decision, position: int = 0) -> None:
        self.approvals.answer(self.approvals.open_approvals[position].approval_id, decision)
