"""What the person does while the agent works: the mode, messages that wait, answers to its questions, specialists."""

import asyncio

from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import (
    BUILT_IN_MODES,
    CommandPattern,
    HostPattern,
    Mode,
    PathPattern,
    Rule,
    RuleEffect,
    RuleScope,
)
from desktop_agent.types.policies import Limits, Specialist
from desktop_agent.types.preferences import ModePreferences, SpecialistPreferences
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn, Wait
from tests.gallery.desk import Desk, until
from tests.gallery.screens import scene
from tests.gallery.server_question_screens import set_up, work
from tests.gallery.spoken import is_read
from tests.gallery.tools import ProjectTools

NO_PAGES = Rule(effect=RuleEffect.DENY, tool="fetch_page", scope=RuleScope.ALWAYS)
CAREFUL = Mode(name="no-network", title="No network", mutating="ask", rules=(NO_PAGES,))
LONG = (
    "The old import keeps a copy of each file beside the database. Half of them are of customers who left, and the "
    "law on keeping invoices says ten years. What should become of these copies?"
)
CHOICES = ["Keep them where they are", "Move them into an archive", "Delete those older than ten years"]
SPECIALISTS = (
    Specialist(
        name="reviewer",
        description="Reads code and says what is wrong with it.",
        system_prompt="You review code.",
        tools=("read_file", "list_files"),
        limits=Limits(tokens=50_000),
    ),
    Specialist(
        name="researcher",
        description="Looks for something in the web and answers with sources.",
        system_prompt="You look things up.",
        model="aurora-small",
        tools=("fetch_page",),
        share=0.25,
    ),
)


def asks(number: int, name: str, **arguments: object) -> ToolUse:
    return ToolUse(id=f"call-{number}", name=name, input=dict(arguments))


@scene("mode-picker")
async def mode_picker(desk: Desk) -> None:
    desk.change_setup(modes=lambda: (*BUILT_IN_MODES, CAREFUL))
    desk.begin(workspace=True)
    await asyncio.sleep(0.2)
    desk.library.current.session_controls.set_mode("accept-edits")
    desk.window.page.session_controls.picker.open_menu()


@scene("mode-request")
async def mode_request(desk: Desk) -> None:
    desk.change_setup(mode_requests=True)
    desk.play(
        Turn(ContentDelta("This touches a lot. I will plan first."), asks(1, "change_mode", mode="plan")),
        Turn(ContentDelta("First I look at who calls the import."), Wait(asyncio.Event())),
    )
    session = await desk.converse("Refactor the import job.", workspace=True, title="Refactor the import job")
    await until(lambda: session.modes.requested is not None and session.modes.is_announced)
    await asyncio.sleep(0.3)


@scene("mode-request-narrow", 480, 600)
async def mode_request_narrow(desk: Desk) -> None:
    await mode_request(desk)


@scene("waiting-messages")
async def waiting_messages(desk: Desk) -> None:
    desk.engine._tools_for = lambda _: ToolRegistry(ProjectTools(desk.folder / "project").all())
    desk.play(Turn(ContentDelta("I run the tests as they are."), asks(1, "run_tests", folder="tests")))
    session = await desk.converse("Make the import faster.", workspace=True, title="Refactor the import job")
    await until(lambda: any("run_tests" in str(item) for item in session.transcript))
    picture = await desk.image("profile.png")
    conversation = desk.library.current
    conversation.send(Message.user("Leave README.md as it is, please."))
    words = Message.user("Here is the profile of the last run: most of the time goes into single commits.")
    conversation.send(Message.user_with_blocks([*words.blocks, picture]))
    conversation.send(Message.user("Then write the changelog entry."), "idle")
    desk.window.page.composer.set_draft("And one more thing")
    desk.window.page.session_controls.queue.take_focus()
    await until(lambda: is_read(desk.window.page.transcript, "tests/test_store.py"))


@scene("waiting-messages-narrow", 480, 760)
async def waiting_messages_narrow(desk: Desk) -> None:
    await waiting_messages(desk)


@scene("composer-narrow", 480, 600)
async def composer_narrow(desk: Desk) -> None:
    await set_up(desk)
    work(desk, offered=True)
    desk.window.page.composer.set_draft("What follows from this for the mail?")


@scene("composer-narrow-working", 480, 600)
async def composer_narrow_working(desk: Desk) -> None:
    await composer_narrow(desk)
    desk.window.page.composer.set_working(True)


@scene("waiting-message-edited")
async def waiting_message_edited(desk: Desk) -> None:
    await waiting_messages(desk)
    desk.window.page.session_controls.queue.rows[0].begin_editing()


@scene("question-choices")
async def question_choices(desk: Desk) -> None:
    desk.change_setup(questions=True)
    more = asks(2, "ask_user", question="And who should hear of it?")
    desk.play(
        Turn(ContentDelta("One thing is yours to say."), asks(1, "ask_user", question=LONG, choices=CHOICES), more)
    )
    await desk.converse("Clean up after the import.", title="Refactor the import job")
    await until(lambda: desk.library.current.session_controls.questions)
    await asyncio.sleep(0.3)
    # A card is laid out, and has its button, once it was seen in its last state.
    scroller = desk.window.page.transcript.scroller
    scroller.scroll_to_row(0)
    await asyncio.sleep(0.1)
    scroller.scroll_to_end()
    desk.window.page.session_controls.questions.take_focus()


@scene("question-choices-narrow", 480, 600)
async def question_choices_narrow(desk: Desk) -> None:
    await question_choices(desk)


@scene("question-several", width=760)
async def question_several(desk: Desk) -> None:
    desk.change_setup(questions=True)
    question = asks(1, "ask_user", question="Which of these may I change?", choices=CHOICES, several=True)
    desk.play(Turn(question))
    await desk.converse("Clean up after the import.", title="Refactor the import job")
    await until(lambda: desk.library.current.session_controls.questions)
    await asyncio.sleep(0.3)


async def open_specialists(desk: Desk) -> None:
    preferences = desk.engine.preferences.model_copy(update={"specialists": SpecialistPreferences(defined=SPECIALISTS)})
    await desk.engine.change_preferences(preferences)
    desk.settings.show().show_page("specialists")
    await asyncio.sleep(0.2)


@scene("settings-specialists")
async def settings_specialists(desk: Desk) -> None:
    await open_specialists(desk)


@scene("settings-specialist-edited", height=1000)
async def settings_specialist_edited(desk: Desk) -> None:
    desk.begin(workspace=True)
    await open_specialists(desk)
    dialog = desk.settings.show()
    dialog.resize(860, 960)
    dialog.specialists.edit("reviewer")
    dialog.specialists.editor._tools.set_tools(("read_file", "list_files", "linear__search"))


OWN_MODES = (
    Mode(
        name="docs-only",
        title="Only the documents",
        mutating="accept_edits",
        addendum="Change nothing but the texts in docs. Write plain short English, as in the pages that are there.",
        rules=(
            Rule(effect=RuleEffect.DENY, tool="run_command", scope=RuleScope.ALWAYS),
            Rule(
                effect=RuleEffect.ASK,
                tool="*",
                pattern=PathPattern(prefix="/home/ada/project/jobs"),
                scope=RuleScope.ALWAYS,
            ),
        ),
    ),
    Mode(
        name="tests-run",
        title="Tests run by themselves",
        rules=(
            Rule(
                effect=RuleEffect.ALLOW,
                tool="run_command",
                pattern=CommandPattern(words=("python", "-m", "pytest")),
                scope=RuleScope.ALWAYS,
            ),
            Rule(
                effect=RuleEffect.DENY,
                tool="fetch_page",
                pattern=HostPattern(host="*.internal.example.org"),
                scope=RuleScope.ALWAYS,
            ),
        ),
    ),
)


async def open_modes(desk: Desk, *modes: Mode) -> None:
    desk.begin(workspace=True)
    preferences = desk.engine.preferences.model_copy(update={"modes": ModePreferences(defined=modes)})
    await desk.engine.change_preferences(preferences)
    desk.settings.show().show_page("modes")
    await asyncio.sleep(0.3)


@scene("settings-modes-empty")
async def settings_modes_empty(desk: Desk) -> None:
    await open_modes(desk)


@scene("settings-modes")
async def settings_modes(desk: Desk) -> None:
    await open_modes(desk, *OWN_MODES)


@scene("settings-modes-narrow")
async def settings_modes_narrow(desk: Desk) -> None:
    await open_modes(desk, *OWN_MODES)
    desk.settings.show().resize(500, 740)
    await asyncio.sleep(0.2)


@scene("settings-mode-edited", height=1000)
async def settings_mode_edited(desk: Desk) -> None:
    await open_modes(desk, *OWN_MODES)
    dialog = desk.settings.show()
    dialog.resize(860, 960)
    dialog.modes.edit("docs-only")
    dialog.modes.editor._rules._open_editor(None)
    rule = dialog.modes.editor._rules._editor
    rule._tools.select("run_command")
    rule._kind_menu.setCurrentIndex(3)
    rule._pattern.setText("git push")
    await asyncio.sleep(0.2)


@scene("settings-mode-wrong", height=1000)
async def settings_mode_wrong(desk: Desk) -> None:
    await open_modes(desk, OWN_MODES[0])
    dialog = desk.settings.show()
    dialog.resize(860, 960)
    dialog.modes.copy(OWN_MODES[0])
    dialog.modes.editor._title.widget.setText("")
    dialog.modes.editor._name.widget.setText("Docs only")
    dialog.modes.editor.save()
    await asyncio.sleep(0.2)
