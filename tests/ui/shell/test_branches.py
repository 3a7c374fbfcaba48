"""Other versions in the window: answers asked for anew, versions walked, and what is said of files then."""

import asyncio

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from desktop_agent.conversation.items import NoticeItem, UserItem
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import AuthenticationFailed
from desktop_agent.types.permissions import Rule
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ModelInfo
from tests.fakes.qt_loop import SCRIPTED, until
from tests.fakes.scripted_provider import Turn, Wait
from tests.ui.shell.test_models import let_go
from tests.ui.shell.test_undo import banner_texts, dialog, press, rows_of, run_calls
from ui.bridge.model_servers import ModelGroup
from ui.composer.pickers import ModelRow
from ui.transcript.rows.message_actions import commands_at

LONG = "\n\n".join(f"Line {number}." for number in range(60))


def turns(*texts):
    return [Turn(ContentDelta(text)) for text in texts]


def write(number, text):
    return ToolUse(id=f"w{number}", name="write_file", input={"path": "a.txt", "content": text})


def view(screen):
    return screen.window.page.transcript


def session(screen):
    return screen.engine._sessions[screen.conversation.id]


def commands(screen, row=-1):
    rows = view(screen).row_viewport.rows
    row = row % len(rows.transcript)
    return {command.name: command for command in commands_at(rows.transcript, row, rows.render_context)}


async def run(screen, name, row=-1):
    commands(screen, row)[name].run()
    await settled(screen)


async def settled(screen):
    """Wait until nothing runs and every change is shown."""
    await until(lambda: not screen.conversation.working)
    await screen.idle()
    await until(lambda: len(view(screen).row_viewport.rows) == len(screen.conversation.transcript))
    await asyncio.sleep(0.05)


def test_an_answer_is_asked_for_anew_and_both_are_walked(on_screen):
    async def work(screen):
        await screen.say("a")
        await run(screen, "Regenerate")
        assert screen.answers() == ["two"]
        assert commands(screen)["Next version"].refusal == "This is the newest version."
        await run(screen, "Previous version")
        assert screen.answers() == ["one"]
        assert commands(screen)["Previous version"].refusal == "This is the first version."
        assert "Next version" in commands(screen)

    on_screen(work, *turns("one", "two"))


def test_the_view_follows_the_new_answer_and_stays_at_the_prompt_of_another_version(on_screen):
    async def work(screen):
        await screen.say("a")
        view(screen).scroller.scroll_to_start()
        await run(screen, "Regenerate")
        assert view(screen).row_viewport.rows.following
        view(screen).scroller.scroll_to_start()
        view(screen).scroller.scroll_by(20)
        bottom = view(screen).row_viewport.row_box(0).top()
        view(screen).row_viewport.focus((1, ""))
        await run(screen, "Previous version")
        assert screen.answers() == [LONG]
        assert view(screen).row_viewport.row_box(0).top() == bottom
        assert view(screen).row_viewport.focused == (1, "")
        view(screen).scroller.scroll_to_end()
        bottom = view(screen).row_viewport.row_box(1).bottom()
        await run(screen, "Next version")
        assert view(screen).row_viewport.row_box(1).bottom() == bottom

    on_screen(work, *turns(LONG, LONG + LONG))


def test_the_button_that_was_pressed_keeps_the_focus(on_screen):
    async def work(screen):
        await screen.say("a")
        for _ in range(2):
            await run(screen, "Regenerate")
        view(screen).setFocus()
        view(screen).row_viewport.focus((1, ""))
        QTest.keyClick(view(screen), Qt.Key.Key_Tab)
        focused = view(screen).row_viewport.focused
        assert focused[1].endswith("/Previous version")
        for answer in ("two", "one"):
            QTest.keyClick(view(screen), Qt.Key.Key_Return)
            await until(lambda answer=answer: screen.answers() == [answer])
            await settled(screen)
            assert view(screen).row_viewport.focused == focused

    on_screen(work, *turns("one", "two", "three"))


def test_nothing_is_changed_while_the_model_works(on_screen):
    async def work(screen):
        await screen.say("a")
        screen.write("b")
        screen.press("Send")
        await wait.reached.wait()
        assert "still working" in commands(screen, 1)["Regenerate"].refusal
        assert "still working" in commands(screen, 0)["Edit"].refusal
        assert commands(screen) == {}
        wait.until.set()
        await settled(screen)
        assert commands(screen)["Regenerate"].refusal == ""

    wait = Wait(asyncio.Event(), asyncio.Event())
    on_screen(work, *turns("one"), Turn(ContentDelta("half"), wait))


def test_one_goes_back_and_finds_what_followed(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        await run(screen, "Branch from here", 1)
        assert screen.answers() == ["one"]
        assert screen.editor.hasFocus()
        await run(screen, "Show what followed")
        assert screen.answers() == ["one", "two"]
        await run(screen, "Branch from here", 1)
        await screen.say("c")
        assert screen.answers() == ["one", "three"]
        await run(screen, "Previous version", 2)
        assert [item.text for item in screen.conversation.transcript if isinstance(item, UserItem)] == ["a", "b"]

    on_screen(work, *turns("one", "two", "three"))


def test_an_answer_is_asked_for_anew_with_another_model_and_level(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        await screen.say("a")
        screen.window.page.models.picker.set_models(
            [ModelGroup(SCRIPTED, (ModelInfo("m"), ModelInfo("large", "Large")))]
        )
        models, levels = view(screen)._render_context.message_actions.alternatives()
        assert models.title == "With another model"
        offered = {model.label: model for model in models.alternatives}
        assert list(offered) == ["m", "Large", "Another model…"]
        assert offered["m"].is_current
        offered["Large"].choose(session(screen).history[1].id)
        await settled(screen)
        assert screen.provider.requests[-1].model == "large"
        assert screen.conversation.model == "large"
        assert screen.answers() == ["two"]
        offered["Another model…"].choose(session(screen).history[1].id)
        screen.window.page.models.picker._popup._choose(ModelRow(text="m", endpoint_id="scripted", model_id="m"))
        await settled(screen)
        assert screen.answers() == ["three"]
        assert screen.provider.requests[-1].model == "m"
        assert levels.title == "With another reasoning level"
        assert levels.alternatives[0].is_current
        levels.alternatives[1].choose(session(screen).history[1].id)
        await settled(screen)
        assert screen.answers() == ["four"]
        assert screen.conversation.reasoning is not None

    on_screen(work, *turns("one", "two", "three", "four"))


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "work"
    place.mkdir()
    (place / "a.txt").write_text("mine")
    return place


def test_what_another_version_did_to_files_is_said_and_undone_on_wish(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        assert (folder / "a.txt").read_text() == "agent"
        await run(screen, "Regenerate")
        assert banner_texts(screen) == ["Files that the other version changed stay as they are."]
        assert (folder / "a.txt").read_text() == "agent"
        screen.press("Undo file changes too…")
        undo_dialog = await until(lambda: dialog(screen))
        assert rows_of(undo_dialog).keys() == {"a.txt"}
        assert any("other version" in words for words in screen.words(undo_dialog))
        press(undo_dialog, "Undo")
        await until(lambda: (folder / "a.txt").read_text() == "mine")
        await until(lambda: dialog(screen) is None)
        await screen.idle()
        assert banner_texts(screen) == []

    on_screen(work, Turn(write(1, "agent")), *turns("done", "nothing done"))


def test_what_tools_did_for_another_version_is_said_where_nothing_can_undo_it(on_screen, folder):
    async def work(screen):
        screen.conversation.change(workspace=str(folder))
        session(screen).permission_policy.add(Rule(effect="allow", tool="run_command"))
        screen.conversation.session_controls.set_mode("accept-edits")
        await screen.say("a")
        await run(screen, "Regenerate")
        assert banner_texts(screen) == ["What these tools did for the other version is not undone: Run a command."]
        assert screen.find(QWidget, "Undo file changes too…") is None
        await run(screen, "Previous version")
        assert banner_texts(screen) == []
        await run(screen, "Next version")
        assert [words[:42] for words in banner_texts(screen)] == ["What these tools did for the other version"]
        await run(screen, "Regenerate")
        await run(screen, "Regenerate")
        assert banner_texts(screen) == [
            "Files that the other version changed stay as they are. What these tools did is not undone "
            "either: Run a command."
        ]
        assert screen.find(QWidget, "Undo file changes too…")

    command = ToolUse(id="c", name="run_command", input={"command": "echo hello"})
    reading = ToolUse(id="r", name="read_file", input={"path": "a.txt"})
    on_screen(
        work, Turn(command), *turns("one"), Turn(reading), *turns("two"), Turn(write(1, "x"), command), *turns("3", "4")
    )


def test_nothing_is_said_where_the_files_are_those_of_the_version_in_view(on_screen, folder):
    async def work(screen):
        await run_calls(screen, folder)
        await run(screen, "Regenerate")
        await run(screen, "Previous version")
        assert banner_texts(screen) == []
        view(screen).undo_since_requested.emit(screen.conversation.transcript[0].id)
        undo_dialog = await until(lambda: dialog(screen))
        press(undo_dialog, "Undo")
        await until(lambda: (folder / "a.txt").read_text() == "mine")
        await until(lambda: dialog(screen) is None)
        await screen.idle()
        await run(screen, "Regenerate", 2)
        assert banner_texts(screen) == []

    on_screen(work, Turn(write(1, "agent")), *turns("done", "nothing done", "nor now"))


def test_the_window_has_actions_for_it(on_screen):
    async def work(screen):
        screen.action("Regenerate answer").trigger()
        screen.action("Previous version").trigger()
        assert banner_texts(screen)[-1] == "There is no other version."
        await screen.say("a")
        screen.action("Regenerate answer").trigger()
        await settled(screen)
        assert screen.answers() == ["two"]
        screen.action("Previous version").trigger()
        await settled(screen)
        assert screen.answers() == ["one"]
        screen.action("Next version").trigger()
        await settled(screen)
        assert screen.answers() == ["two"]
        screen.action("Edit last prompt").trigger()
        await until(lambda: screen.editor.toPlainText() == "a")

    on_screen(work, *turns("one", "two"))


def test_a_prompt_stays_where_it_is_also_where_little_follows_it(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        await run(screen, "Regenerate")
        rows = view(screen).row_viewport.rows
        view(screen).scroller.scroll_to_row(2)
        view(screen).scroller.scroll_by(view(screen).row_viewport.row_box(2).top() - 30)
        assert view(screen).row_viewport.row_box(2).top() == 30
        for words in ("short", LONG):
            await run(screen, "Previous version" if words == "short" else "Next version", 3)
            assert screen.answers()[-1] == words
            assert view(screen).row_viewport.row_box(2).top() == 30
        await run(screen, "Previous version", 3)
        view(screen).scroller.scroll_to_end()
        assert rows.padding == 0

    on_screen(work, *turns(LONG, "short", LONG))


def test_nothing_is_changed_in_a_conversation_of_another_process(on_screen, tmp_path):
    async def work(screen):
        await screen.say("a")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.say("b")
        other = await Engine.open(tmp_path / "data", RunDefaults(program="ask"))
        conversation = await let_go(other, first)
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        await until(lambda: len(view(screen).row_viewport.rows) == 2)
        assert "desktop-agent ask" in commands(screen)["Regenerate"].refusal
        assert commands(screen)["Copy"].refusal == ""
        for name, row in (("Regenerate", 1), ("Edit", 0), ("Branch from here", 0)):
            commands(screen, row)[name].run()
        screen.editor.setFocus()
        QTest.keyClick(screen.editor, Qt.Key.Key_Up)
        await until(lambda: any("Your prompts can be edited as soon as" in words for words in screen.words()))
        assert screen.answers() == ["one"]
        assert screen.editor.toPlainText() == ""
        assert conversation.record.id == first
        await other.close()

    on_screen(work, *turns("one", "two"), folder=tmp_path / "data")


def test_the_answer_before_is_found_where_the_new_one_failed(on_screen):
    async def work(screen):
        await screen.say("a")
        await run(screen, "Regenerate")
        assert screen.answers() == []
        assert isinstance(screen.conversation.transcript[-1], NoticeItem)
        await run(screen, "Show what followed", 0)
        assert screen.answers() == ["one"]
        assert len(screen.conversation.transcript) == 2

    on_screen(work, *turns("one"), Turn(AuthenticationFailed("The key is wrong.")))


def test_versions_within_versions_are_walked_by_mouse_and_by_keys(on_screen):
    async def shows(screen, *answers):
        await until(lambda: screen.answers() == list(answers))
        await settled(screen)

    async def work(screen):
        for prompt in "abc":
            await screen.say(prompt)
        for row, answers in ((5, ["1", "2", "4"]), (3, ["1", "5"]), (1, ["6"])):
            await run(screen, "Regenerate", row)
            await shows(screen, *answers)
        # By mouse, from the top down: what was chosen below is found again.
        press_at(screen, 1, "Previous version")
        await shows(screen, "1", "5")
        press_at(screen, 3, "Previous version")
        await shows(screen, "1", "2", "4")
        press_at(screen, 5, "Previous version")
        await shows(screen, "1", "2", "3")
        view(screen).setFocus()
        view(screen).row_viewport.focus((1, ""))
        QTest.keyClick(view(screen), Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
        await shows(screen, "6")
        QTest.keyClick(view(screen), Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
        await shows(screen, "1", "2", "3")
        assert [commands(screen, row)["Previous version"].refusal[:21] for row in (1, 3, 5)] == [
            "This is the first ver"
        ] * 3
        view(screen).row_viewport.focus((5, ""))
        QTest.keyClick(view(screen), Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
        await shows(screen, "1", "2", "4")

    on_screen(work, *turns("1", "2", "3", "4", "5", "6"))


def press_at(screen, index, name):
    viewport = view(screen).row_viewport
    view(screen).scroller.scroll_to_row(index)
    row = viewport.rows.row(index)
    number, control = next((number, control) for number, control in row.controls() if control.name == name)
    place = control.box.center() + viewport.block_box(index, number).topLeft()
    QTest.mouseMove(view(screen).viewport(), place)
    QTest.mouseClick(view(screen).viewport(), Qt.MouseButton.LeftButton, pos=place)
