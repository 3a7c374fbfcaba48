"""Every branch of a foreign conversation can be continued here, on servers that refuse what their vendors refuse."""

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.conversation.history import normalised_history
from desktop_agent.conversation.items import CallState, ToolCallItem, UserItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.exchange.readers import HISTORY_READERS
from desktop_agent.exchange.readers.claude_code import ClaudeCodeReader
from desktop_agent.exchange.readers.reader import HistoryReader, Machine
from desktop_agent.providers.dialects.gemini.request import ThinkingAbility
from desktop_agent.providers.provider import Provider, make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.records import message_to_json, read_message
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.messages import Message, MessageState, Role, now
from desktop_agent.types.providers import Dialect, ModelRequest
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.exchange.readers import foreign_homes as homes
from tests.fakes.strict_server import demo_endpoint, strict_server

DIALECTS: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
TOOLS = (ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
WRITERS = {
    "claude-code": homes.write_claude_code,
    "codex": homes.write_codex,
    "opencode": homes.write_opencode,
    "gemini-cli": homes.write_gemini,
    "goose": homes.write_goose,
    "lm-studio": homes.write_lm_studio,
    "jan": homes.write_jan,
    "open-webui": homes.write_webui,
    "cherry-studio": homes.write_cherry,
}


@pytest.fixture(params=DIALECTS)
async def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Provider]:
    # The server refuses calls without a signature like Gemini 3, whose models are known by their names.
    monkeypatch.setattr(ThinkingAbility, "checks_signatures", True)
    server, http = strict_server(speed=math.inf), HttpClient()
    endpoint = demo_endpoint(await server.start(), request.param)
    provider = make_provider(endpoint.dialect, endpoint.base_url, None, http)
    yield provider
    await provider.aclose()
    await http.aclose()
    await server.aclose()


def branches(tree: ConversationTree) -> list[tuple[Message, ...]]:
    """Return every branch from its first message to its end, and those that end at an answer with calls."""
    parents = {node.parent for node in tree.messages}
    ends = [node.message for node in tree.messages if node.message.id not in parents or node.message.tool_uses]
    return [tree.model_copy(update={"head": end.id}).branch() for end in ends]


@pytest.mark.parametrize("reader", HISTORY_READERS, ids=lambda reader: reader.program)
def test_every_branch_is_shown_with_its_calls_and_stored_whole(tmp_path: Path, reader: type[HistoryReader]) -> None:
    WRITERS[reader.program](tmp_path)
    history = reader(Machine(tmp_path, {}, "linux"))
    (found,) = history.list_conversations()
    tree = history.load(found.id).tree
    assert ConversationTree.model_validate_json(tree.model_dump_json()) == tree
    for message in (node.message for node in tree.messages):
        assert read_message(message_to_json(message), id_="", role="", state="") == message
    transcript = Transcript(tree.branch())
    calls = [item for item in transcript if isinstance(item, ToolCallItem)]
    assert len(calls) == sum(len(message.tool_uses) for message in tree.branch())
    assert {call.state for call in calls} == {CallState.ENDED}
    shown = [item.text for item in transcript if isinstance(item, UserItem)]
    assert shown == [message.text for message in tree.branch() if message.role is Role.USER]


@pytest.mark.parametrize("reader", HISTORY_READERS, ids=lambda reader: reader.program)
async def test_every_branch_can_be_continued(tmp_path: Path, reader: type[HistoryReader], provider: Provider) -> None:
    WRITERS[reader.program](tmp_path)
    history = reader(Machine(tmp_path, {}, "linux"))
    (found,) = history.list_conversations()
    continued = branches(history.load(found.id).tree)
    assert continued
    for branch in continued:
        await ask(provider, branch)


async def ask(provider: Provider, branch: tuple[Message, ...]) -> None:
    messages = (*normalised_history(branch), Message.user("Go on."))
    builder = AnswerBuilder("m", "demo")
    async for event in provider.stream(ModelRequest("demo", messages, TOOLS, conversation_id="c")):
        builder.feed(event, now())
    assert builder.message(MessageState.COMPLETE, now()).blocks


ODD_NAMES = ["", "mcp__server name", "Werkzeug für ä", "1x", "x" * 300]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_and_ids_can_be_continued(tmp_path: Path, name: str, provider: Provider) -> None:
    call_id = f"call {name} / 1"
    entries = [
        homes.claude_entry("user", "u", None, "Do it"),
        homes.claude_entry("assistant", "a", "u", [homes.call(call_id, name, x=1)]),
        homes.claude_entry("user", "r", "a", [homes.result(call_id, "Done", is_error=True), homes.result("lost", "?")]),
    ]
    homes.write_claude_code(tmp_path, entries)
    branch = ClaudeCodeReader(Machine(tmp_path, {}, "linux")).load(homes.CLAUDE_SESSION).tree.branch()
    assert len(branch) == 3
    await ask(provider, branch)
