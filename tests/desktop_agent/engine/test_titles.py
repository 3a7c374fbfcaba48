"""Titles of conversations: from the first prompt, and from a model that is asked beside the runs."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine import titles as module
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.engine.titles import TITLE_LENGTH, clean_title, title_of
from desktop_agent.storage.records import read_state, state_to_json
from desktop_agent.types.engine_events import ConversationTitled, ErrorOccurred
from desktop_agent.types.messages import AttachedText, Message, label_attached
from desktop_agent.types.preferences import ChatPreferences, Preferences, ProviderPreferences
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.fakes.model_server import answer, endpoint, listing, refusal
from tests.frame.patience import PATIENCE


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Hi!\n\nHow do I **sort** a list?", "How do I sort a list?"),
        ("# Plan\nfor tomorrow", "Plan"),
        ("```python\nprint(1)\n```\nWhat is this?", "print(1)"),
        ("Guten Morgen,\nwas ist `asyncio`?", "was ist asyncio?"),
        ("你好", "你好"),
        ("???", "???"),
        ("", "Picture"),
        ("a\u202eb \x1bc", "ab c"),
        ("word " * 30, "word " * 11 + "word…"),
        ("see [the page](http://example.org/x) please", "see the page please"),
    ],
)
def test_the_first_line_that_says_something(prompt: str, title: str) -> None:
    assert title_of(Message.user(prompt)) == title


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Sorting a list in Python", "Sorting a list in Python"),
        ("Title: “Sorting lists”.", "Sorting lists"),
        ("**Sorting lists**\n", "Sorting lists"),
        ("「列表排序」。", "列表排序"),
        ("Sort\u202eing\x07 lists\u2066", "Sorting lists"),
        ("What is next?", "What is next?"),
        ("", ""),
        (" … ", ""),
        ("Sorting\nlists", ""),
        ("x" * (TITLE_LENGTH + 1), ""),
        ("a b c d e f g h i j k l m", ""),
        ("I'm sorry, I can't help with that.", ""),
    ],
)
def test_only_what_is_a_title_is_taken_from_an_answer(answer: str, title: str) -> None:
    assert clean_title(answer) == title


def model_requests(server: Loopback) -> list[Request]:
    return [request for request in server.requests if request.path.endswith("/chat/completions")]


def is_for_title(request: Request) -> bool:
    return module.INSTRUCTIONS in str(request.json["messages"][0]["content"])


def server_with(title: Reply, *models: str) -> Loopback:
    """Answers prompts with Hello, and requests for a title with this."""

    def choose(request: Request) -> Reply:
        if not request.path.endswith("/chat/completions"):
            return listing(*(models or ("m",)))
        return title if is_for_title(request) else answer("Hello")

    return Loopback(choose=choose)


class Desk:
    """An engine with one server, and a conversation with it."""

    def __init__(self, engine: Engine, session: Session) -> None:
        self.engine = engine
        self.session = session
        self.events: list[object] = []
        session.subscribe(on_event=lambda envelope: self.events.append(envelope.event))

    @property
    def titled(self) -> list[ConversationTitled]:
        return [event for event in self.events if isinstance(event, ConversationTitled)]

    async def say(self, prompt: str = "How do I sort?") -> None:
        self.session.send(Message.user(prompt))
        await self.session.wait_idle()

    async def rest(self) -> None:
        """Return when nothing of the conversation is under way, a title included."""
        await until(lambda: self.session not in self.engine._busy)  # pyright: ignore[reportPrivateUsage]


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.002)


@asynccontextmanager
async def desk(folder: Path, server: Loopback, *, is_on: bool = True, **chat: Any) -> AsyncGenerator[Desk]:
    engine = await Engine.open(folder, RunDefaults(toolset="none", titles=is_on))
    try:
        providers = ProviderPreferences(endpoints=(endpoint(server),), endpoint_id="mine", model="m")
        await engine.change_preferences(Preferences(providers=providers, chat=ChatPreferences(**chat)))
        yield Desk(engine, engine.new_session())
    finally:
        await engine.close()


async def test_a_model_names_a_conversation_once(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 5, "total_tokens": 95}
    named = Reply(sse(chunk({"content": "Sorting lists"}), chunk(finish="stop", usage=usage)))
    async with server_with(named) as server, desk(tmp_path, server) as conversation:
        await conversation.say()
        await conversation.rest()
        assert conversation.session.record.title == "Sorting lists"
        assert conversation.session.record.title_is_automatic
        assert (await conversation.engine.store.record(conversation.session.record.id)).title == "Sorting lists"
        [titled] = conversation.titled
        assert titled.usage is not None
        assert titled.usage.total_tokens == 95
        # It is the conversation's, and stays so when that is closed.
        record = await conversation.engine.store.record(conversation.session.record.id)
        assert record.state.title_usage == titled.usage
        assert read_state(state_to_json(record.state)) == record.state
        request = model_requests(server)[1].json
        assert request["model"] == "m"
        assert "tools" not in request
        assert max(request.get("max_tokens", 0), request.get("max_completion_tokens", 0)) <= 1_024
        assert "How do I sort?" in str(request["messages"][1])
        await conversation.say("And again?")
        await conversation.rest()
        assert [is_for_title(request) for request in model_requests(server)] == [False, True, False]
        assert [message.text for message in conversation.session.history] == [
            "How do I sort?",
            "Hello",
            "And again?",
            "Hello",
        ]


@pytest.mark.parametrize(
    "reply",
    [refusal(500), refusal(400), answer("one\ntwo"), Reply(cut=True), Reply(sse(chunk({"content": "Sor"}, "length")))],
    ids=["broken", "refused", "nonsense", "cut off", "too long"],
)
async def test_where_no_title_comes_the_first_words_stay(tmp_path: Path, reply: Reply) -> None:
    async with server_with(reply) as server, desk(tmp_path, server) as conversation:
        await conversation.say()
        await conversation.rest()
        assert conversation.session.record.title == "How do I sort?"
        assert not [event for event in conversation.events if isinstance(event, ErrorOccurred)]
        await conversation.say("again")
        await conversation.rest()
        assert [is_for_title(request) for request in model_requests(server)] == [False, True, False]


async def test_a_slow_model_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SECONDS", 0.02)
    never = Reply(sse(done=False), hold=asyncio.Event())
    async with server_with(never) as server, desk(tmp_path, server) as conversation:
        await conversation.say()
        await conversation.rest()
        assert conversation.session.record.title == "How do I sort?"


async def test_the_next_prompt_goes_first(tmp_path: Path) -> None:
    never = Reply(sse(done=False), hold=asyncio.Event())
    replies = [never, answer("Sorting lists")]

    def choose(request: Request) -> Reply:
        if not request.path.endswith("/chat/completions"):
            return listing("m")
        return replies.pop(0) if is_for_title(request) else answer("Hello")

    async with Loopback(choose=choose) as server, desk(tmp_path, server) as conversation:
        await conversation.say()
        await until(lambda: len(model_requests(server)) == 2)
        await conversation.say("And numbers?")
        assert conversation.session.history[-1].text == "Hello"
        await conversation.rest()
        assert conversation.session.record.title == "Sorting lists"
        assert [is_for_title(request) for request in model_requests(server)] == [False, True, False, True]


async def test_a_name_that_the_person_gives_meanwhile_stays(tmp_path: Path) -> None:
    release = asyncio.Event()
    late = Reply(sse(done=False), hold=release, late=sse(chunk({"content": "Sorting lists"}), chunk(finish="stop")))
    async with server_with(late) as server, desk(tmp_path, server) as conversation:
        await conversation.say()
        await until(lambda: len(model_requests(server)) == 2)
        conversation.session.change_record(title="How do I sort?")
        release.set()
        await conversation.rest()
        assert conversation.session.record.title == "How do I sort?"


async def test_a_model_names_a_conversation_again_whose_first_prompt_was_edited(tmp_path: Path) -> None:
    async with server_with(answer("Sorting lists")) as server, desk(tmp_path, server) as conversation:
        await conversation.say()
        await conversation.rest()
        conversation.session.branches.edit_prompt(
            conversation.session.history[0].id, Message.user("How do I sort quickly?")
        )
        await conversation.session.wait_idle()
        await conversation.rest()
        assert "How do I sort quickly?" in str(model_requests(server)[-1].json["messages"])
        assert [is_for_title(request) for request in model_requests(server)] == [False, True, False, True]
        assert conversation.session.record.title == "Sorting lists"


async def test_no_title_tells_of_an_answer_that_was_deleted_meanwhile(tmp_path: Path) -> None:
    release = asyncio.Event()
    late = Reply(sse(done=False), hold=release, late=sse(chunk({"content": "Sorting lists"}), chunk(finish="stop")))
    async with server_with(late) as server, desk(tmp_path, server) as conversation:
        await conversation.say()
        await until(lambda: len(model_requests(server)) == 2)
        await conversation.session.branches.delete(conversation.session.history[-1].id)
        release.set()
        await conversation.rest()
        assert conversation.session.record.title == "How do I sort?"
        assert (await conversation.engine.store.record(conversation.session.record.id)).title == "How do I sort?"


@pytest.mark.parametrize("chat", [{"titles": "local"}, None], ids=["by the person's choice", "by default"])
async def test_no_model_is_asked(tmp_path: Path, chat: dict[str, str] | None) -> None:
    is_on = chat is not None
    async with server_with(answer("x")) as server, desk(tmp_path, server, is_on=is_on, **(chat or {})) as conversation:
        await conversation.say()
        await conversation.rest()
        assert len(model_requests(server)) == 1


async def test_closing_breaks_it_off(tmp_path: Path) -> None:
    never = Reply(sse(done=False), hold=asyncio.Event())
    async with server_with(never) as server, desk(tmp_path, server) as conversation:
        await conversation.say()
        await until(lambda: len(model_requests(server)) == 2)
        async with asyncio.timeout(PATIENCE):
            await conversation.session.close()
        assert conversation.session not in conversation.engine._busy  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("chosen", "used"), [("small", "small"), ("elsewhere", "m")])
async def test_a_model_for_titles_is_used_where_the_server_has_it(tmp_path: Path, chosen: str, used: str) -> None:
    async with (
        server_with(answer("Sorting lists"), "m", "small") as server,
        desk(tmp_path, server, title_model=chosen) as conversation,
    ):
        await conversation.engine.connections.models("mine", refresh=True)
        await conversation.say()
        await conversation.rest()
        assert model_requests(server)[1].json["model"] == used


async def test_the_demo_is_not_asked(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path, RunDefaults(titles=True))
    try:
        conversation = Desk(engine, await engine.new_demo_session())
        assert module.title_model(conversation.session.record, engine.preferences.chat, engine.connections) is None
    finally:
        await engine.close()


def test_a_prompt_that_is_only_a_file_has_its_name_as_title() -> None:
    label = label_attached(AttachedText("notes.txt", "# Shopping"))
    assert title_of(Message.user(label)) == "notes.txt"
    assert title_of(Message.user(f"What is in it?{label}")) == "What is in it?"


async def test_a_model_that_makes_images_is_asked_for_no_image_as_title(tmp_path: Path) -> None:
    entry = {"id": "m", "object": "model", "architecture": {"output_modalities": ["image", "text"]}}
    models = Reply(json.dumps({"object": "list", "data": [entry]}).encode(), framing="length")

    def choose(request: Request) -> Reply:
        return answer("Sorting lists") if request.path.endswith("/chat/completions") else models

    # OpenAI's own types know no images in answers.
    async with Loopback(choose=choose, judged=False) as server, desk(tmp_path, server) as at:
        await at.engine.connections.models("mine", refresh=True)
        await at.say()
        await at.rest()
        assert [request.json.get("modalities") for request in model_requests(server)] == [["image", "text"], None]
