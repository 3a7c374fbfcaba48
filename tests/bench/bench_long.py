"""Opening a long conversation and sending in it, beside one of ten messages, or of ten tool calls.

    python -m tests.bench.bench_long

Each figure is that of the long conversation over that of the short one, both opened in turn by one process after one
that nobody measures; memory is what the process grew by, of its own. The first send is answered by the demo.
"""

import asyncio
import json
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
from desktop_agent.engine.connections import DEMO
from desktop_agent.engine.engine import Engine
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Summary, Text, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Usage

GOALS = {"messages.open": 1.2, "messages.megabytes": 10.0, "calls.open": 1.2, "calls.megabytes": 10.0}
MESSAGES, CALLS, SHORT = 20_000, 5_000, 10
ROUNDS = 5
_TEXT = "Some words of a message, about five hundred and fifty characters of them, as is usual. " * 6
_LONG = ("messages", "calls")


def run() -> dict[str, Any]:
    """Figures of both long conversations; medians of the rounds."""
    with tempfile.TemporaryDirectory(prefix="bench-long-") as name:
        asyncio.run(_fill(Path(name)))
        return {kind: _figures(kind, Path(name)) for kind in _LONG}


def _figures(kind: str, folder: Path) -> dict[str, float]:
    rounds: list[dict[str, dict[str, float]]] = []
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "tests.bench.bench_long", kind, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
        rounds.append(json.loads(done.stdout))

    def median(size: str, figure: str) -> float:
        return statistics.median(figures[size][figure] for figures in rounds)

    figures = {figure: median("long", figure) / median("short", figure) for figure in ("open", "wall", "send")}
    figures["megabytes"] = median("long", "megabytes") - median("short", "megabytes")
    for figure in ("open", "wall", "send"):
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
    ):
        nodes: list[TreeMessage] = []
        for message in messages:
            nodes.append(TreeMessage(message=message, parent=nodes[-1].message.id if nodes else None))
        tree = ConversationTree(
            id=id_, title=id_, created_at=moment, updated_at=moment, messages=nodes, head=nodes[-1].message.id
        )
        await store.import_tree(tree)


def _talk(count: int) -> Iterator[Message]:
    """Prompts and answers; a long talk was summarised now and then, as any of that length is."""
    used = Usage(input_tokens=1_000, output_tokens=100, total_tokens=1_100, cost=0.001)
    kept = ""
    for number in range(count // 2):
        prompt = Message.user(_TEXT)
        if number % 500 == 499:
            yield Message(
                id=f"summary-{number}",
                role=Role.SYSTEM,
                blocks=(Summary(text="What was said.", first_kept_id=kept),),
                injected_by=COMPACTION_AUTHOR,
            )
        kept = prompt.id
        yield prompt
        yield Message.assistant(_TEXT).model_copy(update={"usage": used})


def _calls(count: int) -> Iterator[Message]:
    """One prompt, and an agent that worked long on it."""
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
    await engine.close()
    return figures


async def _opened_and_sent(engine: Engine, id_: str, figures: dict[str, float]) -> Any:
    memory, cpu, wall = _megabytes(), time.process_time(), time.perf_counter()
    session = await engine.session(id_, whole=False)
    figures["open"], figures["wall"] = time.process_time() - cpu, time.perf_counter() - wall
    figures["megabytes"] = _megabytes() - memory
    session.change_record(endpoint_id=DEMO, model="demo")
    cpu = time.process_time()
    session.send(Message.user("Hello?"))
    await session.wait_idle()
    figures["send"] = time.process_time() - cpu
    return session


def _megabytes() -> float:
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")) / 1024


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write(json.dumps(asyncio.run(_measure(sys.argv[1], Path(sys.argv[2])))))
    else:
        sys.stdout.write(json.dumps(run(), indent=1) + "\n")
