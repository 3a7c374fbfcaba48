"""What is being edited in the settings when the program ends is kept."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit

from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.types.preferences import ChatPreferences
from tests.fakes.qt_loop import until
from ui.forms.key_field import KeyField
from ui.settings.settings_dialog import SettingsDialog

CTRL_ALT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier


def type_instructions(dialog: SettingsDialog) -> None:
    edits = dialog.findChildren(QPlainTextEdit)
    QTest.keyClicks(next(edit for edit in edits if edit.accessibleName() == "Instructions"), "Be brief.")


def hold_keys(dialog: SettingsDialog) -> None:
    field = next(one for one in dialog.findChildren(KeyField) if one.accessibleName() == "Keys for a quick question")
    field.setEnabled(True)
    field.setFocus()
    QTest.keyPress(field, Qt.Key.Key_Q, CTRL_ALT)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (type_instructions, ChatPreferences(system_prompt="Be brief.")),
        (hold_keys, ChatPreferences(quick_ask_keys="Ctrl+Alt+Q")),
    ],
)
def test_an_edit_that_is_under_way_is_kept_when_the_program_ends(
    on_screen, tmp_path, capfd, edit: Callable[[SettingsDialog], None], expected: ChatPreferences
):
    async def work(screen):
        await until(lambda: screen.desk._desktop)
        await screen.idle()
        dialog = screen.desk._settings_presenter.show("chat")
        await until(dialog.isActiveWindow)
        await screen.idle()
        edit(dialog)
        assert screen.engine.preferences.chat == ChatPreferences()

    on_screen(work)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert PreferencesFile(tmp_path / "data").load_now().chat == expected
    assert "Traceback" not in capfd.readouterr().err
