"""Conversations with everything in them that a conversation can have."""

import hashlib
import io
from datetime import UTC, datetime, timedelta

from PIL import Image as PillowImage

from desktop_agent.exchange.conversation_json import IMPORTED_NOTE
from desktop_agent.types.blocks import (
    Citation,
    Image,
    Json,
    Outcome,
    ServerStep,
    StoredSource,
    Summary,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.conversation_tree import ConversationOrigin, ConversationTree, TreeMessage
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import Origin, StopReason, Usage

START = datetime(2026, 11, 26, 9, 30, tzinfo=UTC)


def png(color: str = "green", size: tuple[int, int] = (3, 2)) -> bytes:
    file = io.BytesIO()
    PillowImage.new("RGB", size, color).save(file, "PNG")
    return file.getvalue()


def stored(data: bytes, size: tuple[int, int] = (3, 2)) -> StoredSource:
    digest = hashlib.sha256(data).hexdigest()
    return StoredSource(digest=digest, media_type="image/png", size=len(data), width=size[0], height=size[1])


GREEN, RED = png("green"), png("red")
PICTURES = {stored(GREEN).digest: GREEN, stored(RED).digest: RED}


def read_picture(source: StoredSource) -> bytes | None:
    return PICTURES.get(source.digest)


def message(id_: str, role: Role, *blocks: object, minutes: int = 0, **fields: object) -> Message:
    at = START + timedelta(minutes=minutes)
    return Message.model_validate({"id": id_, "role": role, "blocks": blocks, "created_at": at, **fields})


def as_imported(tree: ConversationTree) -> ConversationTree:
    """Return the tree with its adjustments as every import marks them."""
    nodes: list[TreeMessage] = []
    for node in tree.messages:
        notes = tuple(Sentence(IMPORTED_NOTE, {"note": note}) for note in node.message.adjustments)
        nodes.append(node.model_copy(update={"message": node.message.model_copy(update={"adjustments": notes})}))
    return tree.model_copy(update={"messages": tuple(nodes)})


def full_tree(id_: str = "0" * 32) -> ConversationTree:
    """Every kind of block and field, two versions of an answer, and texts that are hard to write."""
    picture = Image(source=stored(GREEN), name="tea.png")
    prompt = message("m1", Role.USER, Text(text="Half \ud83d a pair, 漢字, \u202eback\u202c, \x00 nul"), picture)
    call = ToolUse(id="t1", name="read_file", input={"path": "a.txt", "\ud800key": [1, 2.5, None, 10**30]})
    answer = message(
        "m2",
        Role.ASSISTANT,
        Thinking(text="Hm.", provider="anthropic", metadata={"signature": "c2ln"}, seconds=1.5),
        Text(text="Look.", citations=(Citation(title="T", url="https://t.example", start=0, end=4),)),
        call,
        ServerStep(provider="openai", name="web_search", text="searched", raw={"id": "ws", "x": [None]}),
        Unknown(raw={"type": "hologram", "depth": 3}, provider="gemini"),
        minutes=1,
        model="claude-x",
        usage=Usage(input_tokens=10, output_tokens=5, cost=0.25),
        stop_reason=StopReason.TOOL_USE,
        stop_details={"why": "tool"},
        origin=Origin(provider="anthropic", account="a", prefix="p", request_id="r"),
        adjustments=(Sentence("“{name}” was left out.", {"name": Sentence("x")}),),
    )
    results = message(
        "m3",
        Role.TOOL,
        ToolResult(
            tool_use_id="t1",
            content=(Text(text="1"), Json(value={"a": [True, None]}), Image(source=stored(RED))),
            outcome=Outcome.FAILED,
            ran_with={"path": "b.txt"},
        ),
        minutes=2,
    )
    summary = message("m4", Role.SYSTEM, Summary(text="So far.", first_kept_id="m3"), minutes=3)
    end = message("m5", Role.ASSISTANT, Text(text="Broken o"), minutes=4, state=MessageState.INTERRUPTED)
    web = Image(source=UrlSource(url="https://pictures.example/a.png"))
    other = message("m6", Role.USER, Text(text="Again"), web, minutes=5, injected_by="guard")
    return ConversationTree(
        id=id_,
        title="Everything \udc00 at once",
        created_at=START,
        updated_at=START + timedelta(minutes=5, microseconds=7),
        messages=[
            TreeMessage(message=prompt),
            TreeMessage(message=answer, parent="m1"),
            TreeMessage(message=results, parent="m2"),
            TreeMessage(message=summary, parent="m3"),
            TreeMessage(message=end, parent="m4"),
            TreeMessage(message=other, parent="m1"),
        ],
        head="m5",
        model="claude-x",
        workspace="/home/a/project",
        origin=ConversationOrigin(program="codex", id="c-7"),
        title_is_automatic=False,
    )


def long_tree(count: int, id_: str = "1" * 32) -> ConversationTree:
    """A conversation of so many messages in turn, each with some Markdown."""
    text = "Here is **what** I found in `src/module.py`:\n\n```python\nprint('hello')\n```\n\n- one\n- two\n" * 3
    messages = [
        message(f"{number:032x}", Role.ASSISTANT if number % 2 else Role.USER, Text(text=f"{number}: {text}"))
        for number in range(count)
    ]
    nodes = [
        TreeMessage(message=message, parent=messages[number - 1].id if number else None)
        for number, message in enumerate(messages)
    ]
    head = messages[-1].id if messages else None
    return ConversationTree(id=id_, title="Long", created_at=START, updated_at=START, messages=nodes, head=head)
