"""The mode picker: what is chosen holds at once, and what the agent asks for is the person's to decide."""

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFrame, QLineEdit, QMenu, QPushButton, QRadioButton, QToolButton

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.engine.engine import RunDefaults
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.permissions import BUILT_IN_MODES, Mode, Rule
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from ui.approval.approval_dialog import ApprovalDialog

OWN = Mode(name="careful", title="Careful & slow", mutating="deny")
WITH_REQUESTS = RunDefaults(mode_requests=True)


def picker(screen):
    return screen.find(QToolButton, "Mode")


def offers(screen):
    return [action.text() for action in picker(screen).findChild(QMenu).actions() if action.text()]


def choose(screen, start):
    action = next(action for action in picker(screen).findChild(QMenu).actions() if action.text().startswith(start))
    action.trigger()


def mode(screen):
    return screen.engine._sessions[screen.conversation.id].modes.current.name


def write(number, path="a.txt"):
    return ToolUse(id=f"w{number}", name="write_file", input={"path": path, "content": "x"})


def test_all_modes_are_offered_also_own_ones_and_say_what_happens_unasked(on_screen):
    async def work(screen):
        original = screen.engine._setup
        screen.engine._setup = lambda store: replace(original(store), modes=lambda: (*BUILT_IN_MODES, OWN))
        screen.action("New conversation").trigger()
        await screen.idle()
        assert offers(screen) == [
            "Plan: Nothing is changed",
            "Careful && slow: Nothing is changed",
            "Default: Asks before it changes something",
            "Accept edits: Changes files without asking",
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
        original = screen.engine._setup
        screen.engine._setup = lambda store: replace(original(store), modes=lambda: (*BUILT_IN_MODES, loose))
        screen.action("New conversation").trigger()
        await screen.idle()
        colors = set()
        for start in ("Plan", "Accept", "Loose", "Default"):
            choose(screen, start)
            colors.add(picker(screen).palette().color(QPalette.ColorRole.ButtonText).name())
        assert len(colors) == 4

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


async def request_a_mode(screen):
    screen.write("go")
    screen.press("Send")
    await until(lambda: screen.find(QFrame, "The agent asks for another mode"))
    assert picker(screen).text().strip() == "Default → Plan?"
    assert mode(screen) == "default"


def test_what_the_agent_asks_for_can_be_had_early(on_screen):
    import asyncio

    wait = asyncio.Event()

    async def work(screen):
        await request_a_mode(screen)
        screen.press("Change now")
        assert mode(screen) == "plan"
        assert picker(screen).text().strip() == "Plan"
        assert screen.find(QFrame, "The agent asks for another mode") is None
        wait.set()
        await until(lambda: not screen.conversation.working)
        await screen.idle()

    on_screen(work, *asking(wait), defaults=WITH_REQUESTS)


def test_what_the_agent_asks_for_is_refused_in_the_bar_or_in_the_menu(on_screen):
    import asyncio

    wait = asyncio.Event()

    async def work(screen):
        await request_a_mode(screen)
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


TWO = (
    Turn(
        ContentDelta("I write it, then I run it."),
        write(1),
        ToolUse(id="c2", name="run_command", input={"command": "echo x > ran.txt"}),
    ),
    Turn(ContentDelta("done")),
)


async def two_wait(screen, folder):
    screen.conversation.change(workspace=str(folder))
    screen.write("write it and run it")
    screen.press("Send")
    dialog = await screen.wait_for(ApprovalDialog, "Approve tool call")
    await until(lambda: len(screen.conversation.approvals.waiting()) == 2)
    await screen.idle()
    return dialog


def outcomes(screen):
    history = screen.engine._sessions[screen.conversation.id].history
    return [block.outcome for message in history for block in message.blocks if isinstance(block, ToolResult)]


def test_plan_denies_the_calls_that_wait_in_the_dialog_and_the_dialog_goes(on_screen, tmp_path):
    async def work(screen):
        dialog = await two_wait(screen, tmp_path)
        choose(screen, "Plan")
        await until(lambda: not screen.conversation.working)
        assert not dialog.isVisible()
        assert screen.conversation.approvals.waiting() == ()
        assert outcomes(screen) == [Outcome.DENIED, Outcome.DENIED]
        assert list(tmp_path.glob("*.txt")) == []
        await screen.idle()

    on_screen(work, *TWO)


def test_accept_edits_starts_the_edit_and_leaves_the_command_in_the_dialog(on_screen, tmp_path):
    async def work(screen):
        dialog = await two_wait(screen, tmp_path)
        choose(screen, "Accept")
        await until((tmp_path / "a.txt").exists)
        await until(lambda: len(screen.conversation.approvals.waiting()) == 1)
        await screen.idle()
        assert dialog.isVisible()
        assert dialog.current.tool == "run_command"
        assert not (tmp_path / "ran.txt").exists()
        dialog.close()
        choose(screen, "Plan")
        await until(lambda: not screen.conversation.working)
        assert outcomes(screen) == [Outcome.SUCCEEDED, Outcome.DENIED]
        assert not (tmp_path / "ran.txt").exists()
        await screen.idle()

    on_screen(work, *TWO)


class Pages:
    """The settings, with the page of modes open."""

    def __init__(self, screen):
        self.dialog = screen.desk._settings_presenter.show()
        self.dialog.show_page("modes")

    def part(self, kind, name):
        inside = self.dialog.modes.findChildren(kind)
        return next(widget for widget in inside if widget.accessibleName() == name and widget.isVisible())

    async def press(self, name):
        button = self.part(QPushButton, name)
        await until(lambda: button.height() > 0)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)


async def add_careful(screen):
    pages = Pages(screen)
    await pages.press("Copy Accept edits")
    title = pages.part(QLineEdit, "Name")
    title.selectAll()
    QTest.keyClicks(title, "Careful")
    await pages.press("Save")
    await screen.idle()
    return pages


def test_one_that_is_made_in_the_settings_can_be_chosen_in_the_open_conversation_at_once(on_screen):
    async def work(screen):
        pages = await add_careful(screen)
        assert "Careful: Changes files without asking" in offers(screen)
        choose(screen, "Careful")
        assert mode(screen) == "careful"
        # And is another one in the same moment in which it is saved.
        await pages.press("Edit Careful")
        pages.part(QRadioButton, "Denied: the agent only reads").click()
        await pages.press("Save")
        await screen.idle()
        assert picker(screen).accessibleDescription() == "Careful: Nothing is changed"
        assert screen.engine._sessions[screen.conversation.id].permission_policy.mode.mutating == "deny"

    async def look(screen):
        assert "Careful: Nothing is changed" in offers(screen)

    on_screen(work)
    on_screen(look, connected=False)


def test_one_that_is_removed_while_it_holds_gives_way_and_undo_widens_nothing(on_screen):
    async def work(screen):
        pages = await add_careful(screen)
        choose(screen, "Careful")
        await pages.press("Remove Careful")
        await screen.idle()
        assert (mode(screen), picker(screen).text().strip()) == ("default", "Default mode")
        notices = [str(item.sentence) for item in screen.conversation.transcript if isinstance(item, NoticeItem)]
        assert notices == ["The mode “Careful” was removed, so “Default” holds here. Choose another mode if you like."]
        assert not any(offer.startswith("Careful") for offer in offers(screen))
        await pages.press("Undo")
        await screen.idle()
        assert "Careful: Changes files without asking" in offers(screen)
        assert mode(screen) == "default"

    on_screen(work)


def in_dialog(dialog):
    return next(button for button in dialog.findChildren(QToolButton) if button.accessibleName() == "Mode")


def test_the_mode_is_chosen_in_the_dialog_and_the_calls_that_it_decides_leave_it(on_screen, tmp_path, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        dialog = await two_wait(screen, tmp_path)
        button = in_dialog(dialog)
        assert button.text().strip() == "Default mode"
        # Keys are heard once the dialog has them.
        await until(lambda: dialog.isActiveWindow() and not dialog.is_blocking_keys)
        QTest.keyClick(dialog, Qt.Key.Key_M, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
        menu = button.findChild(QMenu)
        assert menu.isVisible()
        QTest.keyClick(menu, Qt.Key.Key_Down)
        QTest.keyClick(menu, Qt.Key.Key_Return)
        assert mode(screen) == "accept-edits"
        await until((tmp_path / "a.txt").exists)
        await until(lambda: dialog.current is not None and dialog.current.tool == "run_command")
        assert dialog.isVisible()
        assert [chooser.text().strip() for chooser in (button, screen.find(QToolButton, "Mode"))] == [
            "Accept edits"
        ] * 2
        next(action for action in menu.actions() if action.text().startswith("Plan")).trigger()
        await until(lambda: not screen.conversation.working)
        assert not dialog.isVisible()
        assert outcomes(screen) == [Outcome.SUCCEEDED, Outcome.DENIED]
        await screen.idle()

    on_screen(work, *TWO)


def test_a_mode_that_is_chosen_elsewhere_is_shown_in_the_dialog(on_screen, tmp_path):
    async def work(screen):
        dialog = await two_wait(screen, tmp_path)
        screen.conversation.session_controls.set_mode("accept-edits")
        assert in_dialog(dialog).text().strip() == "Accept edits"
        await until((tmp_path / "a.txt").exists)
        screen.conversation.session_controls.set_mode("plan")
        await until(lambda: not screen.conversation.working)
        await screen.idle()

    on_screen(work, *TWO)
