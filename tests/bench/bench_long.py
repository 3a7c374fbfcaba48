"""Opening a long conversation and sending in it, beside one of ten messages, or of ten tool calls.

Conversations whose last answer was cut off are also followed, as by another process, and recovered.

    python -m tests.bench.bench_long

Each figure is that of the long conversation over that of the short one. One process opens both in turn, after another
conversation that is not measured. Memory is by how much the private memory of the process grew. The demo model answers
the first prompt.
"""

import asyncio
import gc
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from desktop_agent.conversation.history import COMPACTION_AUTHOR
from desktop_agent.engine.engine import Engine
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Summary, Text, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.engine_events import (
    Envelope,
    Event,
    RunStarted,
    ToolCallPending,
    ToolFinished,
    ToolResultsReceived,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message, Role, now
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.providers import DEMO_ENDPOINT
from desktop_agent.types.tool_calls import ToolClass

GOALS = {
    "messages.open": 1.2,
    "messages.megabytes": 10.0,
    "messages.follow": 1.5,
    "messages.recover": 1.5,
    "calls.open": 1.2,
    "calls.megabytes": 10.0,
    "calls.follow": 1.5,
}
MESSAGES, CALLS, SHORT = 20_000, 5_000, 10
ROUNDS = 5
_TEXT = "Some words of a message, about five hundred and fifty characters of them, as is usual. " * 6
_LONG = ("messages", "calls")
_TIMES = ("open", "wall", "send", "follow", "recover")


def run() -> dict[str, Any]:
    """Return the figures of both long conversations; medians of the rounds."""
    with tempfile.TemporaryDirectory(prefix="bench-long-") as name:
        asyncio.run(_fill(Path(name, "data")))
        return {kind: _figures(kind, Path(name)) for kind in _LONG}


def _figures(kind: str, folder: Path) -> dict[str, float]:
    rounds: list[dict[str, dict[str, float]]] = []
    for number in range(ROUNDS):
        # A conversation can be recovered only once.
        copied = shutil.copytree(folder / "data", folder / f"{kind} {number}")
        command = [sys.executable, "-m", "tests.bench.bench_long", kind, str(copied)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
        rounds.append(json.loads(done.stdout))
        shutil.rmtree(copied)

    def median(size: str, figure: str) -> float:
        return statistics.median(figures[size][figure] for figures in rounds)

    figures = {figure: median("long", figure) / median("short", figure) for figure in _TIMES}
    figures["megabytes"] = median("long", "megabytes") - median("short", "megabytes")
    for figure in _TIMES:
        figures[f"{figure} ms"] = 1000 * median("long", figure)
    return {name: round(value, 2) for name, value in figures.items()}


async def _fill(folder: Path) -> None:
    store = await Store.open(folder)
    await _fill_store(store)
    await store.close()


async def _fill_store(store: Store) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for id_, messages in (
        ("warm", _talk(SHORT)),
        ("short messages", _talk(SHORT)),
        ("short calls", _calls(SHORT)),
        ("messages", _talk(MESSAGES)),
        ("calls", _calls(CALLS)),
        ("broken warm", _talk(SHORT)),
        ("broken short messages", _talk(SHORT)),
        ("broken short calls", _calls(SHORT)),
        ("broken messages", _talk(MESSAGES)),
        ("broken calls", _calls(CALLS)),
    ):
        nodes: list[TreeMessage] = []
        for message in messages:
            nodes.append(TreeMessage(message=message, parent=nodes[-1].message.id if nodes else None))
        tree = ConversationTree(
            id=id_, title=id_, created_at=moment, updated_at=moment, messages=nodes, head=nodes[-1].message.id
        )
        await store.import_tree(tree)
        if id_.startswith("broken"):
            await store.append_journal(id_, list(_broken_run([node.message for node in nodes])))


def _broken_run(messages: list[Message]) -> Iterator[Envelope]:
    """Yield the journal of the run after the last prompt, whose next answer was cut off."""
    last = max(index for index, message in enumerate(messages) if message.role is Role.USER)
    events: list[tuple[str | None, Event]] = [(None, RunStarted(messages[last].id))]
    for message in messages[last + 1 :]:
        if message.role is Role.TOOL:
            results = [block for block in message.blocks if isinstance(block, ToolResult)]
            finished = [
                event for result in results for event in (ToolStarted(result.tool_use_id, {}), _finished(result))
            ]
            events += [(events[-1][0], event) for event in (*finished, ToolResultsReceived(len(results)))]
            continue
        began = TurnStarted(f"turn of {message.id}", message.id, "m")
        pieces = [ContentDelta(word) for word in message.text.split(" ")]
        pending = [ToolCallPending(use.id, use.name, use.input, ToolClass.READ_ONLY) for use in message.tool_uses]
        answer = (began, *pieces, UsageUpdate(Usage(total_tokens=9)), *message.tool_uses, *pending)
        events += [(began.turn_id, event) for event in answer]
    events += [("broken", event) for event in (TurnStarted("broken", "broken", "m"), ContentDelta("The next"))]
    for seq, (turn_id, event) in enumerate(events, 1):
        yield Envelope(seq, f"run of {messages[last].id}", None, turn_id, now(), event)


def _finished(result: ToolResult) -> ToolFinished:
    return ToolFinished(result.tool_use_id, result)


def _talk(count: int) -> Iterator[Message]:
    """Yield prompts and answers; a long conversation is summarised at times, as any of that length is."""
    used = Usage(input_tokens=1_000, output_tokens=100, total_tokens=1_100, cost=0.001)
    first_kept_id = ""
    for number in range(count // 2):
        prompt = Message.user(_TEXT)
        if number % 500 == 499:
            yield Message(
                id=f"summary-{number}",
                role=Role.SYSTEM,
                blocks=(Summary(text="What was said.", first_kept_id=first_kept_id),),
                injected_by=COMPACTION_AUTHOR,
            )
        first_kept_id = prompt.id
        yield prompt
        yield Message.assistant(_TEXT).model_copy(update={"usage": used})


def _calls(count: int) -> Iterator[Message]:
    """Yield one prompt, and the many calls of an agent that works on it."""
    yield Message.user("Work on this until it is done.")
    for number in range(count):
        use = ToolUse(id=f"call-{number}", name="read_file", input={"path": f"src/module_{number}.py"})
        yield Message(role=Role.ASSISTANT, blocks=(Text(text="I read the next one."), use))
        yield Message.tool_results([ToolResult(tool_use_id=use.id, content=(Text(text=_TEXT),))])
    yield Message.assistant("Done.")


async def _measure(kind: str, folder: Path) -> dict[str, dict[str, float]]:
    engine = await Engine.open(folder)
    await engine.connections.start_demo()
    sessions = [await _opened_and_sent(engine, "warm", {})]
    figures: dict[str, dict[str, float]] = {}
    for size, id_ in (("short", f"short {kind}"), ("long", kind)):
        figures[size] = {}
        sessions.append(await _opened_and_sent(engine, id_, figures[size]))
    sessions += await _followed_and_recovered(engine, "broken warm", {})
    for size, id_ in (("short", f"broken short {kind}"), ("long", f"broken {kind}")):
        sessions += await _followed_and_recovered(engine, id_, figures[size])
    await engine.close()
    return figures


async def _opened_and_sent(engine: Engine, id_: str, figures: dict[str, float]) -> Any:
    memory, cpu, wall = _megabytes(), time.process_time(), time.perf_counter()
    session = await engine.session(id_, whole=False)
    figures["open"], figures["wall"] = time.process_time() - cpu, time.perf_counter() - wall
    figures["megabytes"] = _megabytes() - memory
    session.change_record(endpoint_id=DEMO_ENDPOINT, model="demo")
    cpu = time.process_time()
    session.send(Message.user("Hello?"))
    await session.wait_idle()
    figures["send"] = time.process_time() - cpu
    return session


async def _followed_and_recovered(engine: Engine, id_: str, figures: dict[str, float]) -> list[Any]:
    # Else one that falls into a measurement takes twice as long as what is measured.
    gc.collect()
    cpu = time.process_time()
    follower = await engine.follow_conversation(id_, StorageFailed("Another process writes it."))
    figures["follow"] = time.process_time() - cpu
    cpu = time.process_time()
    session = await engine.session(id_, whole=False)
    figures["recover"] = time.process_time() - cpu
    if session.history[-1].text != "The next" or follower.session.history[-1].text == "The next":
        raise ValueError(id_)
    return [follower, session]


def _megabytes() -> float:
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")) / 1024


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write(json.dumps(asyncio.run(_measure(sys.argv[1], Path(sys.argv[2])))))
    else:
        sys.stdout.write(json.dumps(run(), indent=1) + "\n")
