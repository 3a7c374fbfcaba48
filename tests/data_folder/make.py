"""Writes the data folder that test_data_folder.py opens, with the parts of the program themselves.

    python -m tests.data_folder.make

Run it on the version whose data is to be kept readable, and commit what it writes: `kept` and `expected.json`. A later
version is tested against these; whoever makes them anew tests nothing any more.
"""

import asyncio
import io
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PIL import Image as Picture

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.mcp_tools import ToolDigestStore
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.providers.provider import Provider
from desktop_agent.storage import conversation_rows
from desktop_agent.storage.records import ConversationRecord, Draft
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Image, ServerStep, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, Envelope
from desktop_agent.types.mcp import HttpConnection, McpServer, StdioConnection
from desktop_agent.types.messages import AttachedText, Message
from desktop_agent.types.permissions import (
    CommandPattern,
    CommandsPattern,
    HostPattern,
    Mode,
    PathPattern,
    Rule,
    RuleEffect,
    RuleScope,
)
from desktop_agent.types.policies import PolicyTrigger, PromptPolicy, Specialist
from desktop_agent.types.preferences import Preferences
from desktop_agent.types.provider_events import ContentDelta, ThinkingBlock, ThinkingDelta, Usage, UsageUpdate
from desktop_agent.types.providers import ConversationParameters, Dialect, Endpoint, Price, ReasoningEffort
from desktop_agent.types.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Deny,
    DenyAndStop,
    ToolClass,
    UntrustedSource,
)
from tests.data_folder.reading import DATABASE, EXPECTED, GARDEN, KEPT, described
from tests.desktop_agent.engine.restoring import restore
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait
from tests.fakes.strict_server import demo_endpoint, strict_server
from ui.bridge.desktop.window_state import WindowStateFile
from ui.shell.window import save_appearance
from ui.style.theme import ReadingStyle

DIALECTS: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
FAR = datetime(2200, 1, 1, tzinfo=UTC)
"""The trash is emptied after 30 days, and rules expire: not before this."""

Decide = Callable[[Session, ApprovalRequested], Any]


class Script(ScriptedProvider):
    """Turns are put in as the story goes on."""

    def play(self, *turns: Turn) -> None:
        self._turns.extend(turns)


class Storyteller(Engine):
    """The engine, with a script in place of the server "home"."""

    script = Script()

    def _setup(self, store: Store) -> SessionSetup:
        real = super()._setup(store)

        async def open_provider(record: ConversationRecord, model: str) -> Provider:
            return self.script if record.endpoint_id == "home" else await real.open_provider(record, model)

        return replace(real, open_provider=open_provider)

    def begin(self, title: str, server: str = "home") -> Session:
        session = self.new_session(endpoint_id=server, model="demo", workspace=GARDEN)
        session.change_record(title=title, title_is_automatic=False)
        return session

    async def tell(self, session: Session, prompt: str | Message, *turns: Turn, decide: Decide | None = None) -> None:
        """One prompt to its end; `decide` says what the person decides about each call that asks."""

        def hear(envelope: Envelope) -> None:
            event = envelope.event
            if isinstance(event, ApprovalRequested):
                decision = decide(session, event) if decide else AllowOnce()
                asyncio.get_running_loop().call_soon(session.approvals.answer, event.approval_id, decision)

        self.script.play(*turns)
        session.subscribe(on_event=hear)
        session.send(Message.user(prompt) if isinstance(prompt, str) else prompt)
        await session.wait_idle()
        session.unsubscribe(hear)


def call(id_: str, name: str, **arguments: Any) -> ToolUse:
    return ToolUse(id=id_, name=name, input=arguments)


def write(id_: str, path: str, content: str = "tulips\n") -> ToolUse:
    return call(id_, "write_file", path=path, content=content)


def picture(colour: str) -> bytes:
    data = io.BytesIO()
    Picture.new("RGB", (12, 8), colour).save(data, "PNG")
    return data.getvalue()


def preferences(demo: str) -> Preferences:
    """Every section other than it is by itself."""
    endpoints = tuple(
        demo_endpoint(demo, dialect).model_copy(update={"id": dialect, "title": dialect.title(), "kind": "local"})
        for dialect in DIALECTS
    )
    home = Endpoint(id="home", title="At home", base_url="http://127.0.0.1:9/v1", models=("demo",), kind="local")
    reads = Rule(id="mode-rule", effect=RuleEffect.ALLOW, tool="read_file", origin="a mode", created_at=FAR)
    careful = Mode(name="careful", title="Careful", mutating="deny", addendum="Change nothing.", rules=(reads,))
    finder = Specialist(
        name="gardener", description="Knows plants.", system_prompt="You garden.", tools=("calculate",), share=0.25
    )
    tools = McpServer(
        id="tools",
        title="Tools",
        on=False,
        trusted=True,
        timeout=30,
        classes={"look": ToolClass.READ_ONLY},
        chosen_for={"look": "digest"},
        off_tools=frozenset({"delete"}),
        connection=StdioConnection(command="tool-server", args=("--fast",), env={"A": "b"}, secret_env=("TOKEN",)),
    )
    web = HttpConnection(url="https://tools.example.org/mcp", headers=("X-Key",), sign_in=True, client_id="garden")
    return Preferences.model_validate(
        {
            "appearance": {"theme": "dark", "zoom": 120, "text_size": 12, "line_width": "wide", "density": "compact"},
            "chat": {"enter_sends": False, "max_tool_iterations": 20, "system_prompt": "Answer briefly."},
            "models": {"reasoning": "high", "show_reasoning": False, "cache_lifetime": "long"},
            "network": {"connect_timeout": 20, "idle_timeout": 100, "private_hosts": "printer.home"},
            "providers": {"endpoints": (*endpoints, home), "endpoint_id": "home", "model": "demo"},
            "modes": {"defined": (careful,)},
            "specialists": {"defined": (finder,)},
            "mcp": {"servers": (tools, McpServer(id="web", title="Web", on=False, connection=web))},
            "of_a_later_version": {"kept": True},
        }
    )


def rules(session: Session) -> None:
    """One of each pattern and scope."""
    for number, (effect, tool, scope, pattern) in enumerate(
        (
            (
                RuleEffect.ALLOW,
                "run_command",
                RuleScope.WORKSPACE,
                CommandPattern(words=("npm", "install", "left-pad")),
            ),
            (RuleEffect.DENY, "run_command", RuleScope.ALWAYS, CommandPattern(words=("curl",))),
            (
                RuleEffect.ALLOW,
                "run_command",
                RuleScope.ALWAYS,
                CommandsPattern(title="tests", beginnings=[("pytest",), ("tox",)]),
            ),
            (RuleEffect.ALLOW, "write_file", RuleScope.WORKSPACE, PathPattern(prefix=f"{GARDEN}/beds")),
            (RuleEffect.DENY, "write_file", RuleScope.ALWAYS, PathPattern(prefix=f"{GARDEN}/beds/locked")),
            (RuleEffect.ALLOW, "fetch_page", RuleScope.CONVERSATION, HostPattern(host="*.example.org")),
            (RuleEffect.ASK, "read_file", RuleScope.WORKSPACE, PathPattern(prefix=f"{GARDEN}/diary")),
        )
    ):
        session.permission_policy.add(
            Rule(id=f"rule-{number}", effect=effect, tool=tool, scope=scope, pattern=pattern, trusts=number == 5)
        )
    session.permission_policy.add(Rule(id="gone", effect=RuleEffect.ALLOW, tool="move_file", scope=RuleScope.ALWAYS))
    session.permission_policy.revoke("gone")


def clear_garden() -> None:
    Path(GARDEN, "notes/hello.txt").unlink(missing_ok=True)


async def dialects(engine: Storyteller) -> None:
    """Thinking as each dialect keeps it, calls, a refusal, a picture, an error, branches, an undoing and a redo."""
    for dialect in DIALECTS:
        session = engine.begin(f"By {dialect}", dialect)
        session.change_record(reasoning=ReasoningEffort(level="low"))
        await engine.tell(session, "Please write a file and check it.")
        trunk = session.history
        await engine.tell(session, "calculate (3 + 4) * 12")
        session.edit_history(trunk)
        await engine.tell(session, Message.user_with_file("What is this?", picture("green"), "leaf.png"))
        session.edit_history(trunk[:-1])
        await engine.tell(session, "write a file", decide=lambda *_: Deny(message="Not that one."))
        await engine.tell(session, "error")
        if dialect == "anthropic":
            first = (await session.checkpoints.list())[0].id
            await restore(session.checkpoints, first, ticked=True)
        clear_garden()
        await session.close()


async def conduct(engine: Storyteller) -> None:
    """Rules by decisions, modes, policies, messages that wait, specialists, questions, steps of the server, usage."""
    session = engine.begin("Rules and modes")
    rules(session)
    used = UsageUpdate(Usage(input_tokens=900, output_tokens=80, cache_read_tokens=500, reasoning_tokens=20, cost=0.02))

    def decide(by: Session, event: ApprovalRequested) -> Any:
        proposals = by.approvals.open_approvals[0].proposals
        return AllowAlways(rule_id=proposals[0].id) if event.tool_use_id == "w1" else AllowForConversation()

    turn = Turn(ContentDelta("I plant. "), write("w1", "rose.txt"), write("w2", "beds/tulip.txt"), used)
    deletion = Turn(call("d1", "delete_file", path="rose.txt"))
    done = Turn(ServerStep(provider="home", name="search", text="tulips", raw={"n": 1}), ContentDelta("Done."), used)
    await engine.tell(session, "Plant something.", turn, deletion, done, decide=decide)
    await engine.tell(
        session, "Now dig.", Turn(call("w3", "run_command", command="make hole")), decide=lambda *_: DenyAndStop()
    )
    session.modes.set_by_person("careful")
    await engine.tell(session, "And water.", Turn(write("w4", "water.txt")), Turn(ContentDelta("It is denied.")))
    session.policies.install(
        PromptPolicy(id="kind", text="Be kind.", scope="persistent", precedence=5, trigger=PolicyTrigger(word="rose"))
    )
    session.permission_policy.mark_untrusted(UntrustedSource("mcp", "Tools", "tools"))
    session.permission_policy.lift_suspension()
    session.permission_policy.mark_untrusted(UntrustedSource("web", "example.org"))
    await session.close()

    session = engine.begin("A specialist and a question")
    parameters = ConversationParameters(temperature=0.5, max_tokens=4000, system_prompt="Speak of plants.")
    session.change_record(parameters=parameters, title="A specialist and a question", title_is_automatic=True)
    asked = Turn(
        call("g1", "gardener", task="Count the beds."), call("q1", "ask_user", question="Which?", choices=["A"])
    )

    def answer(_: Envelope) -> None:
        for question in session.questions.open_questions:
            session.questions.answer(question.question_id, "A")

    session.subscribe(on_event=answer)
    nested = Turn(call("c1", "calculate", expression="6 * 7")), Turn(ContentDelta("42 beds."))
    await engine.tell(session, "How many?", asked, *nested, Turn(ContentDelta("There are 42.")))
    await session.close()

    session = engine.begin("A long talk")
    for number in range(6):
        await engine.tell(
            session, f"Question {number}?", Turn(ContentDelta(f"Answer {number}. " + "More of it. " * 60))
        )
    engine.script.play(Turn(ContentDelta("They talked about numbers.")))
    session.compact()
    await session.wait_idle()
    await engine.tell(session, "And now?", Turn(ContentDelta("Now there is a summary.")))
    await session.close()

    session = engine.begin("In the trash")
    await engine.tell(session, "Away with it.", Turn(ContentDelta("Gone.")))
    await session.close()
    now = conversation_rows.now_microseconds
    conversation_rows.now_microseconds = lambda: int(FAR.timestamp() * 1_000_000)
    await engine.delete_conversation(session.record.id)
    conversation_rows.now_microseconds = now


async def left_in_the_middle(engine: Storyteller) -> list[Session]:
    """A call that waits, a call that runs, an answer half said with messages that wait behind it."""
    asking = engine.begin("A call waits")
    # Tools of a folder are known by it, and so is what was asked about them: this question is about none.
    asking.change_record(workspace=None)
    engine.script.play(Turn(ContentDelta("May I? "), call("w9", "fetch_page", url="https://example.com/")))
    asking.send(Message.user("Look that up."))
    while not asking.approvals.open_approvals:
        await asyncio.sleep(0.01)

    running = engine.begin("A call runs")
    started = asyncio.Event()
    running.subscribe(on_event=lambda each: started.set() if each.event.type == "tool_started" else None)
    engine.script.play(Turn(call("r9", "run_command", command="sleep 60 && touch well.txt")))
    running.send(Message.user("Wait a minute."))
    while not running.approvals.open_approvals:
        await asyncio.sleep(0.01)
    running.approvals.answer(running.approvals.open_approvals[0].approval_id, AllowOnce())
    await started.wait()

    talking, reached = engine.begin("An answer breaks off"), asyncio.Event()
    thought = ThinkingDelta("Let me think."), ThinkingBlock("Let me think.", "home", {"seal": "abc"})
    engine.script.play(Turn(*thought, ContentDelta("Half of an "), Wait(asyncio.Event(), reached)))
    talking.send(Message.user("Tell me."))
    await reached.wait()
    talking.steer(Message.user_with_file("Look here too.", picture("blue"), "pond.png"), "soon")
    talking.steer(Message.user("Then rest."), "idle")
    await asyncio.sleep(0.5)
    return [asking, running, talking]


async def other_files(engine: Storyteller, folder: Path) -> None:
    """Drafts, lists of models, prices, digests of tools, the look of the window."""
    source = await engine.pictures.put(picture("red"), "image/png", 12, 8)
    resource = AttachedText("Plan", "Dig here.", "plan://1", "Tools", "tools")
    outside = (UntrustedSource("mcp", "Tools", "tools"),)
    images = (Image(source=source, name="rose.png"),)
    await engine.store.save_draft(None, Draft("Dear garden", images, (resource,), outside, ("long " * 50,)))
    await engine.store.save_draft((await engine.store.list_conversations())[0].id, Draft("Not sent yet"))
    for dialect in DIALECTS:
        await engine.connections.models(dialect, refresh=True)
    vendor = engine.prices.models()[0].vendor
    await engine.prices.change(vendor, "demo", Price(input=1.5, output=6.0))
    await ToolDigestStore(folder).exchange("tools", {"look": "digest", "delete": "another"})
    reading = ReadingStyle(font="Serif", size=12, line_width=900, is_compact=True)
    state = WindowStateFile(folder)
    look = Preferences().with_changes("appearance", theme="dark", zoom=120)
    save_appearance(state, look.with_changes("chat", enter_sends=False), reading)
    state.close()


async def make(folder: Path, kept: Path) -> None:
    """Fill `folder`, and copy it to `kept` as its process would leave it that was killed just then."""
    engine = await Storyteller.open(folder, RunDefaults(questions=True))
    assert isinstance(engine, Storyteller)
    server = strict_server(float("inf"))
    await engine.change_preferences(preferences(await server.start()))
    await dialects(engine)
    await conduct(engine)
    await other_files(engine, folder)
    left = await left_in_the_middle(engine)
    await asyncio.gather(*(session.flush() for session in left))
    shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("locks", "*.lock", f"{DATABASE}*"))
    await engine.store.snapshot(kept / DATABASE)
    for session in left:
        session.interrupt()
    await engine.close()
    await server.aclose()


def leaves(kept: Path) -> dict[str, list[str]]:
    """The last message of every branch, by conversation."""
    query = """SELECT c.id, m.id FROM messages m JOIN conversations c ON c.number = m.conversation
        WHERE NOT EXISTS (SELECT 1 FROM messages n WHERE n.parent = m.number) ORDER BY m.number"""
    found: dict[str, list[str]] = {}
    with closing(sqlite3.connect(f"file:{kept / DATABASE}?mode=ro", uri=True)) as database:
        for conversation, message in database.execute(query):
            found.setdefault(conversation, []).append(message)
    return found


def main() -> None:
    """Make the folder, and write down what this version reads in it."""
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    shutil.rmtree(KEPT, ignore_errors=True)
    Path(GARDEN).mkdir()
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(make(Path(folder, "data"), KEPT))
    finally:
        shutil.rmtree(GARDEN)
    with tempfile.TemporaryDirectory() as folder:
        expected = {"leaves": leaves(KEPT)}
        expected |= asyncio.run(described(Path(folder), expected["leaves"]))
    EXPECTED.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
