"""Specialists as defined in the settings, in the conversation that is open; what they do folds under their call."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPlainTextEdit, QPushButton

from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.policies import Specialist
from desktop_agent.types.preferences import SpecialistPreferences
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from ui.approval.approval_dialog import ApprovalDialog

TASK = ToolUse(id="r", name="reviewer", input={"task": "look"})
WRITER = Specialist(name="reviewer", description="Reads", system_prompt="You review.", tools=("write_file",))


class Page:
    """The settings, with the page of specialists open."""

    def __init__(self, screen):
        self.dialog = screen.desk._settings_presenter.show()
        self.dialog.show_page("specialists")

    def part(self, kind, name):
        widgets = self.dialog.specialists.findChildren(kind)
        return next((widget for widget in widgets if widget.accessibleName() == name and widget.isVisible()), None)

    def write(self, kind, name, text):
        QTest.keyClicks(self.part(kind, name), text)

    async def press(self, name):
        button = self.part(QPushButton, name)
        await until(lambda: button.height() > 0)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def offered_tools(screen):
    return [[tool.name for tool in request.tools] for request in screen.provider.requests]


def test_one_that_is_defined_can_be_called_at_the_next_prompt_of_the_open_conversation(on_screen):
    async def define(screen):
        await screen.say("hello")
        page = Page(screen)
        await page.press("Add specialist…")
        page.write(QLineEdit, "Name", "reviewer")
        page.write(QLineEdit, "Description", "Reads code")
        page.write(QPlainTextEdit, "Instructions", "You review.")
        await until(lambda: page.part(QCheckBox, "Calculate"))
        page.part(QCheckBox, "Calculate").click()
        await page.press("Save")
        await screen.idle()
        await screen.say("go")
        first, second, of_specialist, _ = offered_tools(screen)
        assert "reviewer" not in first
        assert "reviewer" in second
        assert of_specialist == ["calculate"]
        assert screen.provider.requests[2].config.system_prompt.startswith("You review.")
        await page.press("Remove reviewer")
        await screen.idle()
        await screen.say("and now?")
        assert "reviewer" not in offered_tools(screen)[-1]
        await page.press("Add specialist…")
        page.write(QLineEdit, "Name", "seeker")
        page.write(QLineEdit, "Description", "Looks")
        page.write(QPlainTextEdit, "Instructions", "You seek.")
        await page.press("Save")
        page.dialog.close()
        await screen.idle()

    async def check(screen):
        (specialist,) = screen.engine.preferences.specialists.defined
        assert (specialist.name, specialist.description, specialist.system_prompt) == ("seeker", "Looks", "You seek.")

    answers = [Turn(ContentDelta(text)) for text in ("hi", "fine", "done", "gone")]
    on_screen(define, answers[0], Turn(TASK), *answers[1:])
    on_screen(check, connected=False)


def test_its_steps_fold_under_its_call_while_it_works_and_its_approvals_show_the_path(on_screen, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()

    async def work(screen):
        changes = {"specialists": SpecialistPreferences(defined=(WRITER,))}
        await screen.engine.change_preferences(screen.engine.preferences.model_copy(update=changes))
        screen.conversation.change(workspace=str(folder))
        screen.write("go")
        screen.press("Send")
        dialog = await screen.wait_for(ApprovalDialog, "Approve tool call")
        assert "The agent reviewer asks to use" in screen.words(dialog)
        assert "Write a file" in screen.words(dialog)
        (call,) = [item for item in screen.conversation.transcript if isinstance(item, ToolCallItem)]
        assert (call.name, call.delegated, call.state) == ("reviewer", True, CallState.WAITING)
        assert list(map(str, call.steps)) == ["Write a file · path: a.txt · content: x"]
        await until(lambda: screen.find(QPushButton, "Allow once").isEnabled())
        screen.press("Allow once")
        await until(lambda: not screen.conversation.working)
        assert (call.state, call.outcome) == (CallState.ENDED, Outcome.SUCCEEDED)
        assert list(map(str, call.steps)) == ["Write a file · path: a.txt · content: x", "Done"]
        # One card for all of it: what it said stands in its result, and nowhere in the conversation.
        assert screen.answers() == ["done"]
        assert (folder / "a.txt").read_text() == "x"
        await screen.idle()

    write = ToolUse(id="w", name="write_file", input={"path": "a.txt", "content": "x"})
    on_screen(work, Turn(TASK), Turn(write), Turn(ContentDelta("fine")), Turn(ContentDelta("done")))
