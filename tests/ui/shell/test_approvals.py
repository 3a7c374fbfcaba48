"""Decisions about waiting calls, from the dialog to the engine and back."""

import asyncio

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QPlainTextEdit, QPushButton, QRadioButton

from desktop_agent.types.permissions import CommandPattern, CommandsPattern, Rule, RuleEffect, RuleScope
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowAlways, AllowOnce
from tests.fakes.agent_run import call
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from ui.bridge.permissions import offer_rules
from ui.settings.permissions import RuleCard

DONE = Turn(ContentDelta("Done"))


def write(id_, path):
    return call(id_, "write_file").model_copy(update={"input": {"path": path, "content": "Hello"}})


async def ask(screen, folder):
    """Start a run whose calls wait, and return the open dialog and the engine's questions."""
    folder.mkdir()
    screen.conversation.change(workspace=str(folder))
    screen.write("Write")
    screen.press("Send")
    approvals = screen.engine._sessions[screen.conversation.id].approvals
    await until(lambda: approvals.open_approvals)
    await until(lambda: screen.find(QPushButton, "Allow once"))
    await ready(screen)
    return screen.window.page.approvals._dialog, approvals


async def ready(screen):
    await until(lambda: screen.find(QPushButton, "Allow once").isEnabled())


def test_a_rule_for_one_call_lets_the_others_run_once(on_screen, tmp_path):
    async def work(screen):
        dialog, approvals = await ask(screen, tmp_path / "work")
        screen.find(QCheckBox, "Also for the other call of “Write a file”").setChecked(True)
        screen.press("Always allow…")
        rules = await until(lambda: [button for button in dialog.findChildren(QRadioButton) if button.isVisible()])
        rules[0].click()
        screen.press("Allow and keep this rule")
        await until(lambda: not approvals.open_approvals)
        await until(lambda: screen.answers() == ["Done"])
        assert {path.name for path in (tmp_path / "work").iterdir()} == {"a.txt", "b.txt"}
        await screen.idle()

    on_screen(work, Turn(write("1", "a.txt"), write("2", "b.txt")), DONE)


def test_the_button_at_a_card_shows_its_own_call(on_screen, tmp_path):
    async def work(screen):
        dialog, approvals = await ask(screen, tmp_path / "work")
        await until(lambda: len(approvals.open_approvals) == 2)
        first, second = approvals.open_approvals
        assert dialog.current.approval_id == first.approval_id
        dialog.reject()
        cards = screen.window.page.transcript.row_viewport.rows
        buttons = [
            control
            for index in range(cards.count)
            for _, control in cards.row(index).controls()
            if control.name == "Review"
        ]
        assert len(buttons) == 2
        buttons[1].press()
        await until(dialog.isVisible)
        assert dialog.current.approval_id == second.approval_id
        screen.conversation.stop()
        await screen.idle()

    on_screen(work, Turn(write("1", "a.txt"), write("2", "b.txt")))


def test_closing_while_calls_wait_says_that_they_wait_on_and_otherwise_that_it_stops_work(on_screen, tmp_path):
    wait = Wait(asyncio.Event(), asyncio.Event())

    async def work(screen):
        dialog, approvals = await ask(screen, tmp_path / "work")
        dialog.reject()
        screen.window.close()
        waits = "The call keeps waiting. You are asked again at the next start."
        assert waits in screen.words(screen.question())
        screen.answer_question("Keep open")
        await until(lambda: screen.question() is None)
        screen.window.close()
        assert waits in screen.words(screen.question())
        (approval,) = approvals.open_approvals
        approvals.answer(approval.approval_id, AllowOnce())
        await wait.reached.wait()
        await until(lambda: "Closing stops the model. The answer so far is kept." in screen.words(screen.question()))
        screen.answer_question("Keep working")
        wait.until.set()
        await screen.idle()

    on_screen(work, Turn(write("1", "a.txt")), Turn(ContentDelta("half"), wait))


def test_a_rule_that_is_made_while_settings_are_open_is_listed_there(on_screen, tmp_path):
    async def work(screen):
        settings = screen.desk._settings_presenter.show("rules")
        dialog, approvals = await ask(screen, tmp_path / "work")
        assert not settings.rules.findChildren(RuleCard)
        screen.press("Always allow…")
        rules = await until(lambda: [button for button in dialog.findChildren(QRadioButton) if button.isVisible()])
        rules[0].click()
        screen.press("Allow and keep this rule")
        await until(lambda: settings.rules.findChildren(RuleCard))
        await until(lambda: not approvals.open_approvals)
        (rule,) = screen.engine.rules
        await screen.engine.revoke_rule(rule.id)
        await until(lambda: not settings.rules.findChildren(RuleCard))
        await until(lambda: screen.answers() == ["Done"])
        settings.hide()
        await screen.idle()

    on_screen(work, Turn(write("1", "a.txt")), DONE)


def test_the_settings_open_over_the_approval_dialog(on_screen, tmp_path):
    async def work(screen):
        dialog, approvals = await ask(screen, tmp_path / "work")
        await until(lambda: QApplication.activeWindow() is dialog)
        QTest.keyClick(dialog, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
        settings = await until(lambda: screen.desk._settings_presenter._dialog)
        assert settings.windowHandle().transientParent() is dialog.windowHandle()
        settings.hide()
        approvals.answer(next(iter(approvals.open_approvals)).approval_id, AllowOnce())
        await until(lambda: screen.answers() == ["Done"])
        await screen.idle()

    on_screen(work, Turn(write("1", "a.txt")), DONE)


def test_a_decision_that_is_refused_leaves_its_call_to_be_decided(on_screen, tmp_path):
    async def work(screen):
        dialog, approvals = await ask(screen, tmp_path / "work")
        first, second = (approval.approval_id for approval in approvals.open_approvals)
        # The others wait with it: it was one answer.
        screen.find(QCheckBox, "Also for the other call of “Write a file”").setChecked(True)
        dialog._decide(AllowAlways(rule_id="unknown"), True)
        assert [approval.approval_id for approval in approvals.open_approvals] == [first, second]
        assert dialog.isVisible()
        assert dialog.current.approval_id == first
        assert any("not proposed for this call" in text for text in screen.words(dialog))
        await ready(screen)
        screen.press("Allow once")
        await until(lambda: [approval.approval_id for approval in approvals.open_approvals] == [second])
        await ready(screen)
        screen.press("Allow once")
        await until(lambda: screen.answers() == ["Done"])
        await screen.idle()

    on_screen(work, Turn(write("1", "a.txt"), write("2", "b.txt")), DONE)


def test_edited_arguments_that_are_refused_can_be_written_again(on_screen, tmp_path):
    async def work(screen):
        dialog, approvals = await ask(screen, tmp_path / "work")
        screen.press("Edit arguments")
        editor = await screen.wait_for(QPlainTextEdit, "Arguments as JSON")
        editor.setPlainText('{"path": "b.txt", "content": "Edited"}')
        # Whatever the dialog let pass.
        dialog._decide(AllowOnce(edited_input={"path": "b.txt", "content": float("inf")}), False)
        assert len(approvals.open_approvals) == 1
        assert not screen.find(QPushButton, "Allow once").isEnabled()
        assert any("cannot be used" in label.text() for label in dialog.findChildren(QLabel) if label.isVisible())
        editor.setPlainText('{"path": "c.txt", "content": "Edited"}')
        screen.press("Allow once")
        await until(lambda: screen.answers() == ["Done"])
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["c.txt"]
        await screen.idle()

    on_screen(work, Turn(write("1", "a.txt")), DONE)


def test_rules_are_offered_from_the_narrowest_to_the_widest():
    command = ("git", "status")
    several = CommandsPattern(title="Looking", beginnings=(command,))
    patterns = [CommandPattern(words=command), several, CommandPattern(words=command, exact=True), None]
    scopes = [{"scope": RuleScope.WORKSPACE, "workspace": "/work"}, {"scope": RuleScope.ALWAYS}]
    rules = [
        Rule(effect=RuleEffect.ALLOW, tool="run_command", pattern=pattern, **scope)
        for pattern in patterns
        for scope in scopes
    ]
    order = [next(rule for rule in rules if rule.id == offer.rule_id) for offer in offer_rules(rules)]
    assert [offered.workspace is None for offered in order] == [False] * 4 + [True] * 4
    narrowest_first = [patterns[2], patterns[0], several, None]
    assert [offered.pattern for offered in order] == narrowest_first * 2
