"""A specialist that was defined in the settings is at hand in the next conversation."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QPushButton

from desktop_agent.providers.scripted import Turn
from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.provider_events import ContentDelta


def test_it_is_called_with_its_own_instructions_and_is_there_at_the_next_start(on_screen):
    def write(dialog, kind, name, text):
        field = next(each for each in dialog.specialists.findChildren(kind) if each.accessibleName() == name)
        QTest.keyClicks(field, text)

    def press(dialog, name):
        parts = dialog.specialists.findChildren(QPushButton)
        QTest.mouseClick(next(each for each in parts if each.accessibleName() == name), Qt.MouseButton.LeftButton)

    async def define(screen):
        dialog = screen.desk._settings_presenter.show()
        dialog.open_specialists()
        press(dialog, "Add specialist…")
        write(dialog, QLineEdit, "Name", "reviewer")
        write(dialog, QLineEdit, "Description", "Reads code")
        write(dialog, QPlainTextEdit, "Instructions", "You review.")
        press(dialog, "Save")
        dialog.close()
        await screen.idle()
        screen.action("New conversation").trigger()
        await screen.idle()
        await screen.say("go")
        asked, below, _ = screen.provider.requests
        assert "reviewer" in [tool.name for tool in asked.tools]
        assert below.config.system_prompt.startswith("You review.")

    async def look(screen):
        (kept,) = screen.engine.preferences.specialists.defined
        assert (kept.name, kept.description, kept.system_prompt) == ("reviewer", "Reads code", "You review.")

    use = ToolUse(id="r", name="reviewer", input={"task": "look"})
    on_screen(define, Turn(use), Turn(ContentDelta("fine")), Turn(ContentDelta("done")))
    on_screen(look, connected=False)
