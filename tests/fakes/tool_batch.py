"""A batch of tool calls in a test, with a recorder in memory and simple tools."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from desktop_agent.agent.model_request import RunSettings
from desktop_agent.agent.modes import ModeSwitch
from desktop_agent.agent.run_context import Budget, RunContext
from desktop_agent.agent.tool_calls.tool_batch import ToolBatch
from desktop_agent.agent.tool_calls.tool_execution import RecoveredCalls
from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool, ToolRegistry
from desktop_agent.types.blocks import Outcome, StoredSource, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import Event, ToolFinished
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message, Role, new_id
from desktop_agent.types.permissions import Mode
from desktop_agent.types.policies import Hooks, Limits
from desktop_agent.types.tool_calls import Decision, Effect, ToolClass
from tests.fakes.scripted_provider import ScriptedProvider
from tests.frame.patience import PATIENCE


class Words(BaseModel):
    """The input of every tool here."""

    model_config = ConfigDict(extra="forbid")

    word: str = "x"


class Memory:
    """A recorder that keeps everything in memory.

    With `refuse` its disk fails. While `slow` is cleared, `flush` waits, and with `deaf` it ignores a cancel meanwhile.
    """

    def __init__(self, *messages: Message) -> None:
        self.run_id = new_id()
        self.messages = list(messages)
        self.events: list[Event] = []
        self.settled: list[int] = []
        self.refuse = False
        self.slow = asyncio.Event()
        self.slow.set()
        self.deaf = False
        self.told: Callable[[Event], None] = lambda _event: None

    def emit(self, event: Event, _pieces: object = ()) -> None:
        self.events.append(event)
        self.told(event)

    async def flush(self) -> None:
        if self.refuse:
            raise StorageFailed("the disk refuses")
        count = len(self.events)
        while not self.slow.is_set():
            try:
                await self.slow.wait()
            except asyncio.CancelledError:
                if not self.deaf:
                    raise
        self.settled.append(count)

    async def commit(self, *messages: Message) -> None:
        self.messages.extend(messages)

    def history(self) -> tuple[Message, ...]:
        return tuple(self.messages)

    def nested(self) -> "Memory":
        return Memory()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def about(self, id_: str) -> list[str]:
        """The types of the events of one call, in order."""
        return [
            event.type for event in self.events if id_ in (getattr(event, "id", 0), getattr(event, "tool_use_id", 0))
        ]


Work = Callable[[str, RunningCall], Awaitable[Any]]


def tool(name: str, work: Work | None = None, *, reads: bool = False, **more: Any) -> Tool[Words]:
    """A tool that answers with its word, or with what `work` returns for it: a text, or a finished result."""

    async def run(given: Words, call: RunningCall) -> Any:
        result = given.word if work is None else await work(given.word, call)
        return (Text(text=result),) if isinstance(result, str) else result

    effects = frozenset[Effect]() if reads else frozenset({Effect.WRITE})
    tool_class = ToolClass.READ_ONLY if reads else ToolClass.MUTATING
    fields: dict[str, Any] = {"effects": effects, "tool_class": tool_class, "timeout": 30.0, **more}
    return Tool(name=name, description=name, schema=ModelSchema(Words), run=run, **fields)


def call(id_: str, name: str, word: str = "x") -> ToolUse:
    return ToolUse(id=id_, name=name, input={"word": word})


class Desk:
    """One batch of calls with its context, policy and recorder."""

    def __init__(
        self,
        *uses: ToolUse,
        tools: Sequence[AnyTool] = (),
        hooks: Hooks | None = None,
        limits: Limits | None = None,
        permission_policy: PermissionPolicy | None = None,
        mode: Mode | None = None,
        earlier: Sequence[Message] = (),
        left: RecoveredCalls | None = None,
        **more: Any,
    ) -> None:
        self.uses = uses
        self.answer = Message(role=Role.ASSISTANT, blocks=uses)
        self.memory = Memory(Message.user("go"), *earlier, self.answer)
        self.approvals = ApprovalBroker()
        self.permission_policy = permission_policy or PermissionPolicy(mode=mode)
        self.limits = limits or Limits()
        self.budget = Budget(self.limits)
        self.context = RunContext(
            open_provider=self._open,
            recorder=self.memory,
            tools=ToolRegistry(tools),
            approvals=self.approvals,
            permission_policy=self.permission_policy,
            modes=ModeSwitch(self.permission_policy),
            read_picture=self._picture,
            hooks=hooks or Hooks(),
            **more,
        )
        self.round = ToolBatch(uses, self.context, self.budget, RunSettings("m", limits=self.limits), left)

    async def _open(self, _model: str) -> ScriptedProvider:
        return ScriptedProvider()

    async def _picture(self, _source: StoredSource) -> bytes:
        return b""

    async def run(self) -> bool:
        running = asyncio.create_task(self.round.run())
        done, _ = await asyncio.wait({running}, timeout=PATIENCE)
        assert done, "the round did not end"
        return running.result()

    def start(self) -> asyncio.Task[bool]:
        return asyncio.create_task(self.run())

    async def asked(self, count: int = 1) -> None:
        await until(lambda: len(self.approvals.open_approvals) == count)

    def decide(self, decision: Decision, position: int = 0) -> None:
        self.approvals.answer(self.approvals.open_approvals[position].approval_id, decision)

    @property
    def results(self) -> list[ToolResult]:
        results = self.round.close(Outcome.CANCELLED)
        assert [result.tool_use_id for result in results] == [use.id for use in self.uses]
        return results

    @property
    def outcomes(self) -> list[Outcome]:
        return [result.outcome for result in self.results]

    @property
    def words(self) -> list[str]:
        return ["".join(getattr(part, "text", "") for part in result.content) for result in self.results]

    def finished(self, id_: str) -> bool:
        return any(event.id == id_ for event in self.memory.of(ToolFinished))


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true: first by turns of the loop, then by time."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.002)


class Stubborn:
    """Work that ignores a cancel until it may end."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.may_end = asyncio.Event()
        self.has_begun: list[str] = []

    async def work(self, word: str, _call: RunningCall) -> str:
        self.has_begun.append(word)
        self.reached.set()
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                continue
        return word
