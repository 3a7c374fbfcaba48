"""The mode picker: what is chosen holds at once, and what the agent asks for is the person's to decide."""

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFrame, QMenu, QPushButton, QToolButton

from desktop_agent.engine.engine import RunDefaults
from desktop_agent.providers.scripted import Turn, Wait
from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.conduct.modes import BUILT_IN_MODES, Mode
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.provider_events import ContentDelta
from tests.ui.bridge.in_loop import until

OWN = Mode(name="careful", title="Careful & slow", mutating="deny")
WITH_REQUESTS = RunDefaults(mode_requests=True)


def picker(screen):
    return screen.find(QToolButton, "Mode")


def offers(screen):
    return [each.text() for each in picker(screen).findChild(QMenu).actions() if each.text()]


def choose(screen, start):
    action = next(each for each in picker(screen).findChild(QMenu).actions() if each.text().startswith(start))
    action.trigger()


def mode(screen):
    return screen.engine._sessions[screen.conversation.id].modes.current.name


def write(number, path="a.txt"):
    return ToolUse(id=f"w{number}", name="write_file", input={"path": path, "content": "x"})


def test_all_modes_are_offered_also_own_ones_and_say_what_happens_unasked(on_screen):
    async def work(screen):
        made = screen.engine._setup
        screen.engine._setup = lambda: replace(made(), modes=(*BUILT_IN_MODES, OWN))
        screen.action("New conversation").trigger()
        await screen.idle()
        assert offers(screen) == [
            "Plan: Nothing is changed",
            "Careful && slow: Nothing is changed",
            "Default: Asks before it changes something",
            "Accept edits: Changes files unasked",
        ]
        assert picker(screen).accessibleDescription() == "Default mode: Asks before it changes something"
        choose(screen, "Careful")
        assert mode(screen) == "careful"
        assert picker(screen).text().strip() == "Careful && slow"

    on_screen(work)


def test_the_keys_open_the_menu_at_the_mode_that_holds(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        assert screen.action("Choose mode").shortcut().toString() == "Ctrl+Shift+M"
        screen.action("Choose mode").trigger()
        menu = picker(screen).findChild(QMenu)
        assert menu.activeAction().text().startswith("Default")
        QTest.keyClick(menu, Qt.Key.Key_Down)
        QTest.keyClick(menu, Qt.Key.Key_Return)
        assert mode(screen) == "accept-edits"

    on_screen(work)


def test_each_breadth_has_a_colour_of_its_own(on_screen):
    async def work(screen):
        rule = Rule(id="r", effect="allow", tool="run_command")
        loose = Mode(name="loose", title="Loose", rules=(rule,))
        made = screen.engine._setup
        screen.engine._setup = lambda: replace(made(), modes=(*BUILT_IN_MODES, loose))
        screen.action("New conversation").trigger()
        await screen.idle()
        seen = set()
        for start in ("Plan", "Accept", "Loose", "Default"):
            choose(screen, start)
            seen.add(picker(screen).palette().color(QPalette.ColorRole.ButtonText).name())
        assert len(seen) == 4

    on_screen(work)


def test_calls_that_wait_are_judged_again(on_screen, tmp_path):
    async def work(screen):
        screen.conversation.change(workspace=str(tmp_path))
        screen.write("write it")
        screen.press("Send")
        await until(screen.conversation.approvals.waiting)
        choose(screen, "Accept")
        await until(lambda: not screen.conversation.working)
        assert screen.conversation.approvals.waiting() == ()
        assert (tmp_path / "a.txt").read_text() == "x"
        await screen.idle()

    on_screen(work, Turn(write(1)), Turn(ContentDelta("done")))


def test_each_conversation_shows_its_own(on_screen):
    async def work(screen):
        await screen.say("hello")
        first = screen.conversation.id
        choose(screen, "Plan")
        screen.action("New conversation").trigger()
        await screen.idle()
        assert picker(screen).text().strip() == "Default mode"
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        assert picker(screen).text().strip() == "Plan"
        await screen.idle()

    on_screen(work, Turn(ContentDelta("ok")))


def asking(wait):
    use = ToolUse(id="m", name="change_mode", input={"mode": "plan"})
    return Turn(use), Turn(Wait(wait), ToolUse(id="n", name="change_mode", input={"mode": "plan"})), Turn()


async def asked(screen):
    screen.write("go")
    screen.press("Send")
    await until(lambda: screen.find(QFrame, "The agent asks for another mode"))
    assert picker(screen).text().strip() == "Default → Plan?"
    assert mode(screen) == "default"


def test_what_the_agent_asks_for_can_be_had_early(on_screen):
    import asyncio

    wait = asyncio.Event()

    async def work(screen):
        await asked(screen)
        screen.press("Change now")
        assert mode(screen) == "plan"
        assert picker(screen).text().strip() == "Plan"
        assert screen.find(QFrame, "The agent asks for another mode") is None
        wait.set()
        await until(lambda: not screen.conversation.working)
        await screen.idle()

    on_screen(work, *asking(wait), defaults=WITH_REQUESTS)


def test_or_refused_in_the_bar_and_in_the_menu(on_screen):
    import asyncio

    wait = asyncio.Event()

    async def work(screen):
        await asked(screen)
        assert offers(screen)[:2] == ["Change to “Plan” now", "Keep “Default”"]
        choose(screen, "Keep")
        assert screen.find(QPushButton, "Change now") is None
        assert screen.engine._sessions[screen.conversation.id].modes.requested is None
        screen.press("Stop")
        wait.set()
        await until(lambda: not screen.conversation.working)
        assert mode(screen) == "default"
        await screen.idle()

    on_screen(work, *asking(wait), defaults=WITH_REQUESTS)
