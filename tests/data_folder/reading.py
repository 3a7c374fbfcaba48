"""What a version of the program reads in the kept data folder, in plain words that no renaming touches."""

import asyncio
import hashlib
import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from desktop_agent.conversation.items import (
    AnswerItem,
    Item,
    NoticeItem,
    ServerStepItem,
    ThinkingItem,
    ToolCallItem,
    UserItem,
)
from desktop_agent.engine.engine import Engine
from desktop_agent.engine.mcp_tools import ToolDigestStore
from desktop_agent.engine.model_listings import ModelListingsFile
from desktop_agent.engine.session import Session
from desktop_agent.permissions.gate import strictness
from desktop_agent.storage.records import ConversationRecord, Draft
from desktop_agent.types.blocks import (
    Block,
    Image,
    ServerStep,
    StoredSource,
    Summary,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from desktop_agent.types.messages import Message
from tests.frame.patience import PATIENCE
from ui.bridge.desktop.window_state import WindowStateFile
from ui.shell.window import load_appearance, load_enter_sends

HERE = Path(__file__).parent
KEPT = HERE / "kept"
EXPECTED = HERE / "expected.json"

DATABASE = "conversations.sqlite3"
GARDEN = "/tmp/garden"
"""The folder that the kept conversations work in. It is gone; a copy gets another, wherever a path may stand."""
WITH_PATHS = (("conversations", "workspace"), ("messages", "body"), ("journal", "event"), ("rules", "body"))

PASSING = re.compile(r"^locks/|\.lock$|sqlite3(-wal|-shm|\.last-check|\.before-version-\d+)$")

VERDICTS = ("allowed", "asked", "refused")
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("run_command", {"command": "npm install left-pad"}),
    ("run_command", {"command": "npm install other"}),
    ("run_command", {"command": "curl https://example.org"}),
    ("run_command", {"command": "pytest"}),
    ("run_command", {"command": "pytest && make deploy"}),
    ("write_file", {"path": "beds/rose.txt", "content": ""}),
    ("write_file", {"path": "beds/locked/rose.txt", "content": ""}),
    ("write_file", {"path": "elsewhere.txt", "content": ""}),
    ("delete_file", {"path": "rose.txt"}),
    ("move_file", {"source": "a", "target": "b"}),
    ("fetch_page", {"url": "https://www.example.org/"}),
    ("fetch_page", {"url": "https://example.com/"}),
    ("read_file", {"path": "diary/today.txt"}),
    ("read_file", {"path": "rose.txt"}),
)
"""Calls whose verdicts no sandbox of this machine changes."""


def lost(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Every place where something expected is not there as it was; what is there besides is no loss."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name, value in expected.items():
            yield from lost(value, found.get(name), f"{place}/{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, value in enumerate(expected):
            yield from lost(value, found[number], f"{place}/{number}")
    elif expected != found:
        yield f"{place}: {json.dumps(expected)[:300]} has become {json.dumps(found)[:300]}"


async def described(folder: Path, leaves: dict[str, list[str]]) -> dict[str, Any]:
    """All of the kept folder, by copies of it that are opened in `folder`."""
    found = {
        "branches": await branches(copied(folder / "branches"), leaves),
        "opened": await opened(copied(folder / "opened")),
        "settings": await settings(copied(folder / "settings")),
    }
    return plain(found, folder)


def copied(folder: Path) -> Path:
    """A copy in `folder`/data, and beside it the folder that the conversations work in."""
    shutil.copytree(KEPT, folder / "data")
    (folder / "garden").mkdir()
    with closing(sqlite3.connect(folder / "data" / DATABASE)) as database, database:
        for table, column in WITH_PATHS:
            database.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (GARDEN, f"{folder}/garden"))
    return folder / "data"


def plain(value: Any, folder: Path) -> Any:
    """The same as JSON, so that tuples and enumerations compare; the folder for work is called as in the kept one."""
    text = json.dumps(value, default=lambda each: sorted(each) if isinstance(each, frozenset) else str(each))
    return json.loads(re.sub(re.escape(str(folder)) + r"/\w+/garden", GARDEN, text))


def files(folder: Path) -> set[str]:
    """All but locks, and what comes and goes beside the database."""
    names = {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}
    return {name for name in names if not PASSING.search(name)}


@asynccontextmanager
async def opening(folder: Path) -> AsyncIterator[Engine]:
    engine = await Engine.open(folder)
    try:
        yield engine
    finally:
        await engine.close()


async def branches(folder: Path, leaves: dict[str, list[str]]) -> dict[str, Any]:
    """Every message of every branch, by conversation and last message; what stands in the journals."""
    async with opening(folder) as engine:
        found: dict[str, Any] = {}
        for id_, ends in leaves.items():
            loaded = await engine.store.load(id_)
            found[id_] = {
                "journal": dict(Counter(each.event.type for each in loaded.journal)),
                "unreadable": loaded.skipped,
                "ends": {},
            }
            for leaf in ends:
                await engine.store.update_conversation(id_, head_message_id=leaf)
                messages = (await engine.store.load(id_)).messages
                found[id_]["ends"][leaf] = [await message(engine, each) for each in messages]
        rows, _ = await engine.store.load_call_entries(None, limit=10_000)
        found["decided"] = dict(Counter(each.envelope.event.type for each in rows))
    return found


async def message(engine: Engine, said: Message) -> dict[str, Any]:
    return {
        "id": said.id,
        "role": said.role,
        "state": said.state,
        "at": said.created_at.isoformat(),
        "model": said.model,
        "stop": said.stop_reason,
        "tokens": said.usage and [said.usage.input_tokens, said.usage.output_tokens, said.usage.cost],
        "origin": said.origin and [said.origin.provider, said.origin.account, said.origin.prefix],
        "blocks": [await block(engine, each) for each in said.blocks],
    }


async def block(engine: Engine, part: Block) -> list[Any]:
    match part:
        case Text():
            return ["text", digest_if_long(part.text), len(part.citations), part.provider, part.metadata]
        case Thinking():
            return ["thinking", part.text, part.provider, part.metadata]
        case ToolUse():
            return ["call", part.id, part.name, part.input, part.provider, part.metadata]
        case ToolResult():
            return ["result", part.tool_use_id, part.outcome, [await block(engine, each) for each in part.content]]
        case Summary():
            return ["summary", part.text, part.first_kept_id]
        case ServerStep():
            return ["step", part.provider, part.name, part.text, part.raw]
        case Image(source=StoredSource() as source):
            data = await engine.pictures.get(source)
            return ["image", part.name, source.media_type, source.width, hashlib.sha256(data).hexdigest()]
        case _:
            return ["unknown"]


def digest_if_long(text: str) -> str:
    return text if len(text) < 200 else f"{text[:60]}… {hashlib.sha256(text.encode()).hexdigest()}"


async def opened(folder: Path) -> dict[str, Any]:
    """What the person sees: the list, each conversation as it opens, what broke off, and all of it once more."""
    async with opening(folder) as engine:
        found: dict[str, Any] = {"notices": len(engine.notices), "rules": [rule_words(each) for each in engine.rules]}
        records = await engine.store.list_conversations()
        found["list"] = [listed(each) for each in records]
        found["trash"] = [listed(each) for each in await engine.store.list_conversations(in_trash=True)]
        broken = [(each.conversation_id, each.waits_for_approval) for each in await engine.interrupted_conversations()]
        found["broken off"] = sorted(broken)
        sessions = [await engine.session(each.id) for each in records]
        found["sessions"] = {session.record.id: await seen(engine, session) for session in sessions}
        found["asked again"] = [await asked_again(each) for each in sessions if each.can_resume]
    async with opening(folder) as engine:
        found["broken off later"] = len(await engine.interrupted_conversations())
        found["notices later"] = len(engine.notices)
        sessions = [await engine.session(each.id) for each in await engine.store.list_conversations()]
        found["messages later"] = {session.record.id: len(session.history) for session in sessions}
    found["files gone"] = sorted(files(KEPT) - files(folder))
    found["files set aside"] = sorted(files(folder) - files(KEPT))
    return found


def listed(record: ConversationRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "title": [record.title, record.title_is_automatic],
        "at": [record.created_at.isoformat(), record.updated_at.isoformat()],
        "model": [record.endpoint_id, record.model],
        "workspace": record.workspace,
        "messages": record.message_count,
        "reasoning": record.reasoning and record.reasoning.model_dump(mode="json"),
        "parameters": record.parameters.model_dump(mode="json"),
    }


def rule_words(rule: Any) -> dict[str, Any]:
    return rule.model_dump(mode="json")


async def seen(engine: Engine, session: Session) -> dict[str, Any]:
    """One conversation as it opens."""
    usage, oversight, checkpoints = session.usage, engine.permission_inspector, session.checkpoints
    assert checkpoints is not None
    await checkpoints.publish_saved_calls()
    id_ = session.record.id
    verdicts = [strictness(await oversight.verdict_for(id_, name, given)) for name, given in CALLS]
    return {
        "title": session.record.title,
        "messages": len(session.history),
        "shown": [item_words(each) for each in session.transcript],
        "mode": [session.modes.current.name, session.modes.current.mutating],
        "policies": [each.model_dump(mode="json") for each in session.policies.list()],
        "queue": [[each.id, each.message.text, len(each.message.blocks), each.when] for each in session.queue.entries],
        "verdicts": [VERDICTS[each] for each in verdicts],
        "outside": [[each.kind, each.name, each.id] for each in session.permission_policy.untrusted_content.sources],
        "trusted": [[each.kind, each.name, each.id] for each in session.permission_policy.untrusted_content.trusted],
        "tokens": usage and [usage.input_tokens, usage.output_tokens, usage.cost],
        "saved files": len(await checkpoints.list()),
        "goes on": session.can_resume,
    }


def item_words(item: Item) -> list[Any]:
    match item:
        case UserItem():
            return ["you", item.text, len(item.images)]
        case AnswerItem():
            return ["answer", digest_if_long(str(item.text)), item.interrupted]
        case ThinkingItem():
            return ["thinking", str(item.text)]
        case ToolCallItem():
            undone = [sorted(item.checkpoints.values()), sorted(item.redos.values())]
            return ["call", item.name, item.input, item.state, item.outcome, *undone]
        case ServerStepItem():
            return ["step", item.name, item.text]
        case NoticeItem():
            return [item.level]
        case _:
            return ["unknown"]


async def asked_again(session: Session) -> list[Any]:
    """Go on with what broke off: what a person is asked, or what became of the call."""
    asked: list[Any] = []
    session.subscribe(
        on_event=lambda each: asked.append(each.event) if each.event.type == "approval_requested" else None
    )
    session.resume()
    async with asyncio.timeout(PATIENCE):
        while session.working and not session.approvals.open_approvals:
            await asyncio.sleep(0.01)
    waiting = [[each.approval_id, each.tool_use.name, each.input] for each in session.approvals.open_approvals]
    session.interrupt()
    await session.wait_idle()
    results = [each for said in session.history for each in said.blocks if isinstance(each, ToolResult)]
    return [session.record.title, len(asked), waiting, [[each.tool_use_id, each.outcome] for each in results]]


async def settings(folder: Path) -> dict[str, Any]:
    """Everything else that the person set, or was writing."""
    async with opening(folder) as engine:
        records = await engine.store.list_conversations()
        theme, zoom, reading = load_appearance(WindowStateFile(folder))
        # Not by asking for models: that asks their servers.
        listings = await ModelListingsFile(folder).load()
        model = engine.connections.known_model("openai-chat", "demo")
        price = model.price if model else None
        return {
            "preferences": engine.preferences.model_dump(),
            "drafts": [await draft(engine, id_) for id_ in (None, *(each.id for each in records))],
            "models": {name: [model.id for model in each.models] for name, each in listings.items()},
            "price": price and [price.input, price.output],
            "tools": (await ToolDigestStore(folder).exchange("tools", {}))[0],
            "window": [theme, zoom, reading.font, reading.size, reading.line_width, reading.is_compact],
            "enter sends": load_enter_sends(WindowStateFile(folder)),
        }


async def draft(engine: Engine, conversation: str | None) -> list[Any]:
    kept: Draft = await engine.store.load_draft(conversation)
    resources = [[each.server, each.title, each.uri, each.text, each.server_id] for each in kept.resources]
    images = [await block(engine, each) for each in kept.images]
    return [kept.text, images, resources, [each.name for each in kept.outside], list(kept.pasted)]
