"""What the runtime does besides asking the model: it summarises, delegates, hands back, and says so."""

import asyncio

from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import Outcome, Summary, ToolUse
from desktop_agent.types.engine_events import (
    CheckpointRestored,
    GuardAborted,
    LimitReached,
    ModeChanged,
    QuestionAnswered,
    QuestionAsked,
)
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import HookDeny, Hooks, Specialist, UserPromptSubmit
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn
from tests.gallery import answers
from tests.gallery.conversation_screens import called, said, unfold
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from tests.gallery.tools import ProjectTools

SUMMARY = """\
The person wants the import in `jobs/import.py` to be faster, without another dependency.

**Found so far**

- The whole file is read into memory, and each row is written on its own.
- `tests/test_rows.py` holds what must not change: the order of rows, and that empty ones are left out.

**Decided:** read in batches of 500 rows; one transaction for each batch. The README stays as it is.

```python
BATCH = 500
```
"""
REVIEWER = Specialist(
    name="reviewer",
    description="Reads code and says what is wrong with it.",
    system_prompt="You review code.",
    tools=("read_file", "list_files", "run_tests"),
)


async def summarised(desk: Desk) -> str:
    """Show a conversation that was summarised; return the id of the notice."""
    last = Message.user("Now write it, please.")
    summary = Message(role=Role.SYSTEM, blocks=(Summary(text=SUMMARY, first_kept_id=last.id),))
    session = await desk.show_stored(
        Message.user("Make the import faster."),
        *called(1, "read_file", Outcome.SUCCEEDED, answers.OLD_FILE, path="jobs/import.py"),
        said("It reads the whole file into memory first. Batches would help: shall I?"),
        last,
        summary,
        said("Here it is: batches of 500 rows, one transaction each."),
        title="Refactor the import job",
    )
    return next(item.id for item in session.transcript if getattr(item, "folded", ""))


@scene("notice-summary-folded")
async def summary_folded(desk: Desk) -> None:
    await summarised(desk)


@scene("notice-summary-open", height=1000)
async def summary_open(desk: Desk) -> None:
    unfold(desk, await summarised(desk))


@scene("notice-facts", height=1100)
async def facts(desk: Desk) -> None:
    session = await desk.show_stored(
        Message.user("Make the import faster, and check that it still works."),
        said("I will look first, and change nothing."),
        title="Refactor the import job",
    )
    for event in (
        ModeChanged("default", "plan", "agent"),
        QuestionAsked("q", "Which of the two databases is the one that is used?", ("orders", "orders_2024")),
        QuestionAnswered("q", "orders_2024"),
        GuardAborted("all tests pass", "It has made the agent go on 3 times, which is its limit."),
        CheckpointRestored("c"),
        CheckpointRestored("c", ("jobs/import.py", "README.md", "tests/test_rows.py", "Makefile"), ("jobs/old",)),
        LimitReached.of(Sentence("tool rounds")),
    ):
        session._writer.emit_between_runs(event)


def asks(number: int, name: str, **arguments: object) -> ToolUse:
    return ToolUse(id=f"call-{number}", name=name, input=dict(arguments))


@scene("specialist-steps", height=1200)
async def specialist_steps(desk: Desk) -> None:
    tools = ProjectTools(desk.folder / "project")
    desk.engine._tools_for = lambda _: ToolRegistry(tools.all())
    desk.change_setup(specialists=lambda: (REVIEWER,))
    review = "Rows are written one by one; each is a transaction of its own."
    desk.play(
        Turn(ContentDelta("A second pair of eyes first."), asks(1, "reviewer", task="Review jobs/import.py")),
        Turn(asks(2, "list_files", path="jobs"), asks(3, "read_file", path="jobs/import.py")),
        Turn(asks(4, "read_file", path="jobs/imports.py")),
        Turn(ContentDelta(review)),
        Turn(ContentDelta("Now whether the tests hold."), asks(5, "reviewer", task="Run the tests, say what fails")),
        Turn(asks(6, "read_file", path="jobs/import.py"), asks(7, "run_tests", folder="tests")),
    )
    session = await desk.converse("Make the import faster.", workspace=True, title="Refactor the import job")
    await until(lambda: any("run_tests" in str(getattr(item, "steps", "")) for item in session.transcript))
    for item in tuple(session.transcript):
        if getattr(item, "delegated", False):
            unfold(desk, item.id)
    await asyncio.sleep(0.2)


@scene("message-returned")
async def message_returned(desk: Desk) -> None:
    async def refuse(moment: UserPromptSubmit) -> HookDeny | None:
        return HookDeny("it names a customer.") if "Miller" in moment.prompt.text else None

    desk.change_setup(hooks=Hooks().add_user_prompt_submit(refuse))
    desk.play(Turn(ContentDelta(answers.PLAN)))
    session = await desk.converse("Why does the import take so long?", title="Refactor the import job")
    await session.wait_idle()
    picture = await desk.image("invoice.png")
    words = "Could it be the order of Mr Miller, which has 40,000 rows?"
    desk.library.current.send(Message.user_with_blocks([*Message.user(words).blocks, picture]))
    await session.wait_idle()
    await asyncio.sleep(0.5)
