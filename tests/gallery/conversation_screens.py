"""Conversations: what is said, thought, called, shown and refused."""

import asyncio

from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import Outcome, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.types.errors import ConnectionFailed, Sentence
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import ContentDelta, ThinkingBlock, ThinkingDelta, Usage, UsageUpdate
from tests.fakes.scripted_provider import Turn, Wait
from tests.gallery import answers
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from tests.gallery.tools import ProjectTools

USAGE = UsageUpdate(
    Usage(input_tokens=18_420, output_tokens=1_312, cache_read_tokens=12_000, total_tokens=19_732, cost=0.0425)
)


def said(text: str, thought: str = "", seconds: float = 4.2) -> Message:
    thinking = [Thinking(text=thought, provider="scripted", seconds=seconds)] if thought else []
    return Message(role=Role.ASSISTANT, blocks=(*thinking, Text(text=text)), model="aurora-large", usage=USAGE.usage)


def no_listener(address: str) -> ConnectionFailed:
    """Return the error for an address where nothing listens."""
    where = Sentence("nothing listens at {where}", {"where": address})
    return ConnectionFailed(where, retryable=False, detail="ConnectError: refused")


def called(number: int, name: str, outcome: Outcome, result: str, **arguments: object) -> tuple[Message, Message]:
    use = ToolUse(id=f"call-{number}", name=name, input=dict(arguments))
    content = (Text(text=result),) if result else ()
    tool_result = ToolResult(tool_use_id=use.id, content=content, outcome=outcome)
    return Message(role=Role.ASSISTANT, blocks=(use,)), Message.tool_results([tool_result])


@scene("conversation-empty")
async def empty(desk: Desk) -> None:
    desk.begin()


@scene("conversation-streaming")
async def streaming(desk: Desk) -> None:
    never = asyncio.Event()
    pieces = [ContentDelta(answers.HALF[start : start + 7]) for start in range(0, len(answers.HALF), 7)]
    words = "Rayleigh scattering, in simple words."
    thought = (ThinkingDelta(words), ThinkingBlock(words, "scripted"))
    arrived = asyncio.Event()
    desk.play(Turn(*thought, *pieces, Wait(never, arrived)))
    await desk.converse("Why is the sky blue?")
    await arrived.wait()


@scene("conversation-thinking-streams")
async def thinking_streams(desk: Desk) -> None:
    arrived = asyncio.Event()
    desk.play(Turn(ThinkingDelta(answers.THOUGHT), Wait(asyncio.Event(), arrived)))
    await desk.converse("Why does the import take so long?")
    await arrived.wait()


@scene("conversation-finished", height=1500)
async def finished(desk: Desk) -> None:
    await desk.show_stored(
        Message.user("Plan a week in Lisbon in spring, with a budget."),
        said(answers.RICH, "A week, spring, and a budget: days first, then a table."),
        title="Plan a week in Lisbon",
    )


@scene("conversation-thinking-open")
async def thinking_open(desk: Desk) -> None:
    session = await desk.show_stored(
        Message.user("Why does the import take so long?"),
        said(answers.PLAN, answers.THOUGHT, 6.4),
        title="Refactor the import job",
    )
    unfold(desk, session.transcript[1].id)


@scene("conversation-thinking-folded")
async def thinking_folded(desk: Desk) -> None:
    await desk.show_stored(
        Message.user("Why does the import take so long?"),
        said(answers.PLAN, answers.THOUGHT, 6.4),
        title="Refactor the import job",
    )


def unfold(desk: Desk, item_id: str) -> None:
    """Unfold the item, as a click on its head would."""
    view = desk.window.page.transcript
    view._render_context.choices.set(item_id, "unfolded", value=True)
    view._on_theme()


@scene("tool-calls", height=1040)
async def tool_calls(desk: Desk) -> None:
    tools = ProjectTools(desk.folder / "project")
    desk.engine._tools_for = lambda _: ToolRegistry(tools.all())
    no_file = "There is no file “jobs/imports.py” in the workspace. Look with list_files first."
    session = await desk.show_stored(
        Message.user("Make the import faster, and check that it still works."),
        *called(1, "read_file", Outcome.SUCCEEDED, answers.OLD_FILE, path="jobs/import.py"),
        *called(2, "read_file", Outcome.FAILED, no_file, path="jobs/imports.py"),
        *called(
            3, "write_file", Outcome.DENIED, "The person denied this call and said: Leave the README.", path="README.md"
        ),
        *called(4, "run_tests", Outcome.CANCELLED, "", folder="tests"),
        *called(5, "run_tests", Outcome.TIMED_OUT, "The call took longer than 120 s and was stopped.", folder="tests"),
        *called(6, "write_file", Outcome.UNKNOWN, "The program ended while this ran.", path="jobs/import.py"),
        said("Now the real change, and the tests beside it."),
        title="Refactor the import job",
        workspace=True,
    )
    desk.play(
        Turn(
            ToolUse(id="call-8", name="run_tests", input={"folder": "tests"}),
            ToolUse(id="call-9", name="write_file", input={"path": "jobs/import.py", "content": answers.NEW_FILE}),
        )
    )
    session.send(Message.user("Go on."))
    await until(lambda: session.approvals.open_approvals)
    await asyncio.sleep(0.3)
    desk.window.page.approvals._dialog.reject()
    await asyncio.sleep(0.3)


@scene("tool-call-unfolded", height=1000)
async def tool_call_unfolded(desk: Desk) -> None:
    session = await desk.show_stored(
        Message.user("What is in the import job?"),
        *called(1, "read_file", Outcome.SUCCEEDED, answers.OLD_FILE, path="jobs/import.py"),
        said("It reads the whole file into memory first."),
        title="Refactor the import job",
    )
    unfold(desk, session.transcript[1].id)


@scene("conversation-error")
async def error(desk: Desk) -> None:
    desk.play(Turn(ContentDelta("Let me look at the "), no_listener("127.0.0.1:9")))
    session = await desk.converse("Why does the import take so long?")
    await session.wait_idle()


@scene("conversation-interrupted")
async def interrupted(desk: Desk) -> None:
    half = Message(
        role=Role.ASSISTANT, blocks=(Text(text=answers.HALF[:420]),), state=MessageState.INTERRUPTED, model="a"
    )
    await desk.show_stored(Message.user("Why is the sky blue?"), half, title="Why is the sky blue?")


@scene("conversation-picture-answer", height=900)
async def picture_answer(desk: Desk) -> None:
    image = await desk.image("", 1024, 768, 4)
    await desk.show_stored(
        Message.user("Draw a small harbour at dusk."),
        Message(
            role=Role.ASSISTANT,
            blocks=(
                Text(text="Here is the harbour, with the last light behind the hills:"),
                image.model_copy(update={"name": None}),
                Text(text="Shall I make the water calmer?"),
            ),
            model="aurora-large",
            usage=USAGE.usage,
        ),
        title="A harbour at dusk",
    )


@scene("conversation-pictures", height=900)
async def pictures(desk: Desk) -> None:
    images = [await desk.image("harbour.png"), await desk.image("dunes at dusk.png", 700, 900, 3)]
    await desk.show_stored(
        Message.user_with_blocks([Text(text="Which of the two has the warmer light?"), *images]),
        said("The **second**: its sun stands lower, and the haze turns towards orange. The first is the blue hour."),
        Message.user_with_blocks([await desk.image("panorama.png", 2000, 500, 5)]),
        said("A panorama without a question. What would you like to know about it?"),
        title="Two evenings",
    )


@scene("conversation-scripts", height=1100)
async def scripts(desk: Desk) -> None:
    await desk.show_stored(
        Message.user("أعطني مثالا بكل اللغات 🌍 — 请用所有语言举例"),
        said(answers.MANY_SCRIPTS),
        title="مثال بكل اللغات — 所有语言",
    )


@scene("conversation-narrow", 560, 760)
async def narrow(desk: Desk) -> None:
    await desk.show_stored(
        Message.user("Why does the import take so long? It was fast last year, and nobody has changed a line of it."),
        said(answers.PLAN + answers.RICH, answers.THOUGHT),
        title="Refactor the import job that was fast last year",
    )


@scene("conversation-unknown-block")
async def unknown_block(desk: Desk) -> None:
    hologram = Unknown(raw={"type": "hologram", "frames": 24})
    strange = Message(role=Role.ASSISTANT, blocks=(hologram, Text(text="There.")))
    await desk.show_stored(Message.user("Show me."), strange, title="From a newer version")


@scene("showcase", 1240, 860)
async def showcase(desk: Desk) -> None:
    await desk.show_stored(
        Message.user("Why does the import take so long? Have a look, and tell me what you would change."),
        Message(
            role=Role.ASSISTANT,
            blocks=(
                Thinking(text=answers.THOUGHT, provider="scripted", seconds=6.4),
                ToolUse(id="call-1", name="read_file", input={"path": "jobs/import.py"}),
            ),
        ),
        Message.tool_results([ToolResult(tool_use_id="call-1", content=(Text(text=answers.OLD_FILE),))]),
        said(answers.PLAN),
        title="Refactor the import job",
        workspace=True,
    )
