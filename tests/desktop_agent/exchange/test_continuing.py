"""Imported conversations can be continued with any model: every server takes their history."""

import base64
from pathlib import Path

import pytest

from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.types.blocks import Base64Source, Image, Outcome, StoredSource
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.messages import Message
from tests.desktop_agent.exchange.sample_trees import png
from tests.desktop_agent.providers.test_any_dialect import DIALECTS, Visit, walk

EXPORTS = Path(__file__).parent / "exports"


def branches(path: Path) -> list[list[Message]]:
    """All branches of all conversations of an export, each with a new prompt."""
    with ConversationImport(path) as export:
        trees = [tree for tree in export if isinstance(tree, ConversationTree)]
    found: list[list[Message]] = []
    for tree in trees:
        parents = {node.parent for node in tree.messages}
        for node in tree.messages:
            if node.message.id not in parents:
                branch = tree.model_copy(update={"head": node.message.id}).branch()
                found.append([*map(held, branch), Message.user("Go on.")])
    return found


def held(message: Message) -> Message:
    """The message with its stored pictures in it."""
    source = Base64Source(media_type="image/png", data=base64.b64encode(png()).decode())
    blocks = [
        block.model_copy(update={"source": source})
        if isinstance(block, Image) and isinstance(block.source, StoredSource)
        else block
        for block in message.blocks
    ]
    return message.model_copy(update={"blocks": tuple(blocks)})


@pytest.mark.parametrize("name", ["chatgpt.json", "claude.json"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_server_takes_the_history(dialect: str, name: str) -> None:
    histories = branches(EXPORTS / name)
    assert len(histories) == 3
    for history in histories:
        await walk(history, [Visit(dialect, "openrouter", 0, None, "nothing", True, Outcome.SUCCEEDED)])
