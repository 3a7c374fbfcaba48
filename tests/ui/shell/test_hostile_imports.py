"""Conversations from exports in which any value may be of any type are shown in the window, and exported again."""

import copy
import json
import random

import pytest

from desktop_agent.exchange.conversation_json import write_conversations
from desktop_agent.exchange.html_export import open_page
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.exchange.markdown_export import export_markdown
from desktop_agent.types.conversation_tree import ConversationTree
from tests.desktop_agent.exchange.test_hostile_imports import (
    KINDS,
    ODD,
    conversations_in,
    export_of,
    places,
    put,
    saved,
)
from tests.fakes.qt_loop import until
from tests.frame.selection import few

COUNT = 30
SEEDS = [(kind, seed) for kind in KINDS for seed in range(12)]


def odd_trees(kind, seed, folder):
    rng, export = random.Random(f"{kind}{seed}"), export_of(kind)
    conversations = conversations_in(export)
    originals = copy.deepcopy(conversations)
    for number in range(COUNT):
        conversation = copy.deepcopy(rng.choice(originals))
        for _ in range(rng.choice((1, 3, 10))):
            put(conversation, rng.choice(places(conversation)[1:]), copy.deepcopy(rng.choice(ODD)))
        for name in ("id", "conversation_id", "uuid"):
            if name in conversation:
                conversation[name] = f"{number:032d}"
        conversations.append(conversation)
    with ConversationImport(saved(folder, json.dumps(export))) as entries:
        return [entry for entry in entries if isinstance(entry, ConversationTree)]


@pytest.mark.parametrize(("kind", "seed"), few(SEEDS, 3, "test_each_opens_and_is_exported: other seeds"))
def test_each_opens_and_is_exported(kind, seed, on_screen, tmp_path):
    trees = odd_trees(kind, seed, tmp_path)
    assert len(trees) > 2

    async def work(screen):
        for tree in trees:
            await screen.engine.store.import_tree(tree)
            screen.desk.library.open(tree.id)
            await until(lambda tree=tree: screen.conversation.id == tree.id)
            transcript = screen.window.page.transcript
            await until(lambda tree=tree, shown=transcript: not tree.branch() or len(shown.row_viewport.rows) > 0)
            screen.window.grab()
            transcript.verticalScrollBar().setValue(0)
            screen.window.grab()

    on_screen(work)

    exported = []
    with open_page(lambda _: None, lambda *_: ()) as page:
        for tree in trees:
            exported.append("".join(page.pieces(tree, lambda *_: None)))
            export_markdown(tree)
    write_conversations(trees, exported.append)
    assert len(exported) > len(trees)
