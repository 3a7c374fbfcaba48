"""Lives of one conversation, each in a process of its own that kills itself at a chosen place.

    python -m tests.whole_app.dying

Each line of JSON on the standard input is a life (see Life). It is forked from this process, so that the program is
loaded only once. The answer is a line too: minus the signal that ended the life, or 0. A life writes its report into a
file.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.storage import write_behind
from desktop_agent.storage.content_files import CheckpointRows
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool, ToolRegistry
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, Envelope, ToolFinished, ToolStarted
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Specialist
from desktop_agent.types.provider_events import ContentDelta, ProviderEvent
from desktop_agent.types.providers import ModelRequest
from desktop_agent.types.tool_calls import AllowOnce, Effect, ToolClass
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.frame.patience import PATIENCE

FINDER = Specialist(name="finder", description="Finds.", system_prompt="You find.", tools=("look", "write", "mark"))
TOOLS = ("look", "write", "mark")
NEVER = -1
LIMIT = PATIENCE
"""Seconds until a life that does not end has failed."""


@dataclass(frozen=True)
class Life:
    """`after`: it kills itself when so many records are durable (NEVER: it runs to the end). `inside`: it kills itself
    in this tool, after the tool's effect. `delegates`: a specialist is called, which calls the tools. `answer`: the
    file of its report.
    """

    data: str
    work: str
    answer: str
    after: int = NEVER
    inside: str = ""
    delegates: bool = False


@dataclass
class Found:
    """What a life finds in the journal of the previous one, by the ids of calls. `whole`: the journal ends with a
    complete answer that has open calls."""

    whole: bool = False
    runs: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    finished: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    allowed: list[str] = field(default_factory=list)
    seq: dict[str, int] = field(default_factory=dict)


@dataclass
class Report:
    """What a life did. `asked`: call and approval. `heard`: run and number of each event."""

    records: int = 0
    found: Found = field(default_factory=Found)
    conversation: str = ""
    resumed: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    heard: list[tuple[str, int]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Death:
    """Kills the process after so many durable records. Rows of the journal are written one at a time, which the timer
    that writes them could also do. The timer itself is off: on a busy machine it would write more of them, and the
    places would be other ones in each life."""

    def __init__(self, after: int) -> None:
        self.records = 0
        self._after = after
        write_behind.FLUSH_INTERVAL = 2 * LIMIT
        for owner, name in (
            (Store, "create_conversation"),
            (Store, "update_conversation"),
            (Store, "commit"),
            (Store, "finish_run"),
            (CheckpointRows, "save"),
        ):
            setattr(owner, name, self._counted(getattr(owner, name)))
        append = self._counted(Store.append_journal)

        async def append_one_by_one(self: Store, conversation_id: str, envelopes: Sequence[Envelope]) -> None:
            for envelope in envelopes:
                await append(self, conversation_id, [envelope])

        Store.append_journal = append_one_by_one

    def check(self) -> None:
        if self.records == self._after:
            die()

    def _counted(self, real: Any) -> Any:
        async def counted(*args: Any, **kwargs: Any) -> Any:
            answer = await real(*args, **kwargs)
            self.records += 1
            self.check()
            return answer

        return counted


class Model(ScriptedProvider):
    """Chooses its next answer from the history alone, so that any life can continue with it."""

    def __init__(self, *, delegates: bool) -> None:
        super().__init__()
        self._delegates = delegates

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        self._turns = [self._turn(request)]
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                yield event

    def _turn(self, request: ModelRequest) -> Turn:
        blocks = [block for message in request.messages for block in message.blocks]
        if any(isinstance(block, ToolResult) and block.outcome is not Outcome.CANCELLED for block in blocks):
            return Turn(ContentDelta("done"))
        answer_count = sum(message.role is Role.ASSISTANT for message in request.messages)
        is_finder = (request.config.system_prompt or "").startswith(FINDER.system_prompt)
        if self._delegates and not is_finder:
            return Turn(ContentDelta("I ask. "), ToolUse(id=f"r{answer_count}", name="finder", input={"task": "t"}))
        calls = [ToolUse(id=f"{'f' if is_finder else ''}{answer_count}-{name}", name=name, input={}) for name in TOOLS]
        return Turn(ContentDelta("I look. "), *calls)


class Nothing(BaseModel):
    pass


def effect_tool(name: str, life: Life) -> AnyTool:
    """Return a tool that appends the id of its call to a file, so that a call that ran twice is visible."""
    file = Path(life.work, f"{name}.txt")

    def work(call: RunningCall) -> None:
        with file.open("a", encoding="utf-8") as lines:
            lines.write(f"{call.tool_use_id}\n")
        if life.inside == name:
            die()

    async def run(_: Nothing, call: RunningCall) -> tuple[Text, ...]:
        work(call)
        return (Text(text=f"{name} is done"),)

    async def changes(_: Nothing) -> tuple[str, ...]:
        return (file.name,)

    reads = name == "look"
    return Tool(
        name,
        name,
        ModelSchema(Nothing),
        run,
        tool_class=ToolClass.READ_ONLY if reads else ToolClass.MUTATING,
        effects=frozenset({Effect.READ if reads else Effect.WRITE}),
        changes=changes if name == "write" else None,
    )


class MortalEngine(Engine):
    """The engine with the tools and the model of this test."""

    life: Life

    def _setup(self, store: Store) -> SessionSetup:
        model, life = Model(delegates=self.life.delegates), self.life

        async def open_provider(*_: object) -> Model:
            return model

        def refuse_none(_: object) -> None: ...

        def tools_for(_: object) -> ToolRegistry:
            return ToolRegistry(effect_tool(name, life) for name in TOOLS)

        return replace(
            super()._setup(store),
            open_provider=open_provider,
            require_endpoint=refuse_none,
            tools_for=tools_for,
            specialists=lambda: (FINDER,) if life.delegates else (),
        )


async def live(life: Life) -> Report:
    """Open the conversation, allow every call, and run to the end."""
    death, report = Death(life.after), Report()
    engine = await MortalEngine.open(Path(life.data), RunDefaults(model="m"))
    assert isinstance(engine, MortalEngine)
    engine.life = life
    # What is in the system's cache survives a kill; waiting for the disk would only take time.
    await engine.store.run(lambda db: db.execute("PRAGMA synchronous=OFF"))
    death.check()
    session = await open_session(engine, report, life)
    session.subscribe(on_event=lambda envelope: record_event(envelope, session, report))
    report.resumed = resume_or_send(session)
    async with asyncio.timeout(LIMIT):
        await session.wait_idle()
    report.history = [describe(message) for message in session.history]
    await engine.close()
    report.records = death.records
    return report


async def open_session(engine: MortalEngine, report: Report, life: Life) -> Session:
    known = await engine.store.list_conversations()
    if not known:
        session = engine.new_session(endpoint_id="e", workspace=life.work)
    else:
        loaded = await engine.store.load(known[0].id)
        report.found = read_journal(loaded.messages, loaded.journal)
        session = await engine.session(known[0].id)
    report.conversation = session.record.id
    return session


def read_journal(messages: Sequence[Message], journal: Sequence[Envelope]) -> Found:
    last = messages[-1] if messages else None
    seen = Found(whole=last is not None and bool(last.tool_uses) and last.state is MessageState.COMPLETE)
    for envelope in journal:
        seen.seq[envelope.run_id] = envelope.seq
        if envelope.run_id not in seen.runs:
            seen.runs.append(envelope.run_id)
        match envelope.event:
            case ApprovalRequested() as event:
                seen.waiting[event.tool_use_id] = event.approval_id
            case ApprovalResolved() as event:
                seen.waiting.pop(event.tool_use_id)
                seen.allowed.append(event.tool_use_id)
            case ToolStarted() as event:
                seen.started.append(event.id)
            case ToolFinished() as event:
                seen.finished[event.id] = event.result.outcome.value
            case _:
                pass
    return seen


def record_event(envelope: Envelope, session: Session, report: Report) -> None:
    if envelope.run_id:
        report.heard.append((envelope.run_id, envelope.seq))
    event = envelope.event
    if isinstance(event, ApprovalRequested):
        report.asked.append((event.tool_use_id, event.approval_id))
        # The person decides only after the card is shown.
        asyncio.get_running_loop().call_soon(session.approvals.answer, event.approval_id, AllowOnce())


def resume_or_send(session: Session) -> bool:
    """Return whether there were calls to resume; else send the first prompt, or ask again for a missing answer."""
    if session.resume():
        return True
    if not session.history:
        session.send(Message.user("go"))
        return False
    try:
        session.continue_run()
    except WrongUse:
        assert session.history[-1].text == "done"
    return False


def describe(message: Message) -> dict[str, Any]:
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    return {
        "role": message.role.value,
        "text": message.text,
        "calls": [call.id for call in message.tool_uses],
        "results": [(result.tool_use_id, result.outcome.value, words_of(result)) for result in results],
    }


def words_of(result: ToolResult) -> str:
    return " ".join(part.text for part in result.content if isinstance(part, Text))


def main() -> None:
    """Fork a process for each life, and wait for its end."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                life = Life(**json.loads(line))
                report = asyncio.run(live(life))
                Path(life.answer).write_text(json.dumps(asdict(report)), encoding="utf-8")
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        ended = os.waitstatus_to_exitcode(status)
        sys.stdout.write(f"{ended}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
