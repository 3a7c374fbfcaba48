"""A model file is run from the first screen and answers, with a real process behind it."""

import sys

import pytest
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import LocalPhase
from tests.fakes.local_models import install_server, servers_of, write_model
from tests.fakes.qt_loop import Heard, held, until
from tests.fakes.scripted_provider import Turn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")


def press(widget, name):
    button = next(button for button in widget.findChildren(QPushButton) if button.accessibleName() == name)
    assert button.isEnabled()
    button.click()


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Return a model file of LM Studio's, beside a server that runs it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DESKTOP_AGENT_LLAMA_SERVER", install_server(tmp_path))
    return write_model(tmp_path / "home/.lmstudio/models/a/b/tiny-Q8_0.gguf")


def test_a_model_file_answers_from_the_first_screen_on(on_screen, model):
    async def work(screen):
        screen.press("Run a model file…")
        page = screen.desk._settings_presenter._dialog.local
        await until(
            lambda: [button for button in page.findChildren(QPushButton) if button.accessibleName() == "Run tiny-Q8_0"]
        )
        press(page, "Run tiny-Q8_0")
        await until(lambda: screen.conversation is not None)
        assert not page.isVisible()
        assert (screen.conversation.endpoint_id, screen.conversation.model) == ("local-models", "tiny-Q8_0")
        await screen.say("Hello")
        assert screen.answers() == ["Hello from tiny-Q8_0"]
        screen.desk._settings_presenter.show("local")
        await until(lambda: any("is running and uses" in label.text() for label in page.findChildren(QLabel)))
        press(page, "Stop the model")
        await until(lambda: not servers_of(model))
        await screen.idle()

    on_screen(work, connected=False)


def test_what_runs_is_not_run_again_but_used(on_screen, model):
    async def work(screen):
        await screen.say("One")
        screen.desk._settings_presenter.show("local")
        page = screen.desk._settings_presenter._dialog.local
        await until(lambda: "Run tiny-Q8_0" in named(page))
        press(page, "Run tiny-Q8_0")
        await until(lambda: screen.conversation.endpoint_id == "local-models")
        screen.action("New conversation").trigger()
        await screen.idle()
        screen.desk.library.change(screen.conversation.id, endpoint_id="scripted", model="scripted-model")
        await until(lambda: screen.conversation.endpoint_id == "scripted")
        screen.desk._settings_presenter.show("local")
        await until(lambda: "Use tiny-Q8_0 in this conversation" in named(page))
        assert "Run tiny-Q8_0" not in named(page)
        (server,) = servers_of(model)
        press(page, "Use tiny-Q8_0 in this conversation")
        await until(lambda: screen.conversation.endpoint_id == "local-models")
        assert servers_of(model) == [server]
        screen.desk._settings_presenter.show("local")
        press(page, "Stop the model")
        await until(lambda: "Run tiny-Q8_0" in named(page))

    on_screen(work, Turn(ContentDelta("a")))


def named(page):
    return [button.accessibleName() for button in page.findChildren(QPushButton)]


def test_no_server_is_said_with_a_way_to_get_one(on_screen, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DESKTOP_AGENT_LLAMA_SERVER", str(tmp_path / "nothing"))

    async def work(screen):
        screen.desk._settings_presenter.show("local")
        page = screen.desk._settings_presenter._dialog.local
        await until(
            lambda: any("not installed" in label.text() for label in page.findChildren(QLabel) if label.isVisible())
        )
        await screen.idle()

    on_screen(work, connected=False)


def test_files_are_looked_for_when_their_page_is_opened(on_screen, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    async def work(screen):
        files_found = Heard(screen.desk.servers.local.found)
        screen.desk._settings_presenter.show("appearance")
        await screen.idle()
        assert not files_found
        screen.desk._settings_presenter.show("local")
        await until(lambda: files_found)

    on_screen(work)


def test_the_file_dialog_goes_when_it_is_closed(on_screen, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    async def work(screen):
        screen.desk._settings_presenter.show("local")
        page = screen.desk._settings_presenter._dialog.local
        press(page, "Choose a file…")
        page.findChild(QFileDialog).reject()
        await until(lambda: page.findChild(QFileDialog) is None)
        await screen.idle()

    on_screen(work)


def test_a_model_is_for_the_conversation_for_which_it_was_run(on_screen, model):
    async def work(screen):
        await screen.say("One")
        other_id = screen.conversation.id
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != other_id)
        await screen.say("Two")
        conversation_id = screen.conversation.id
        is_called, may_go_on = held(screen.engine.connections.local, "start")
        screen.desk.servers.local.run_file(model)
        await is_called.wait()
        screen.desk.library.open(other_id)
        await until(lambda: screen.conversation.id == other_id)
        may_go_on.set()
        await screen.idle()
        assert screen.conversation.endpoint_id == "scripted"
        assert (await screen.engine.record(conversation_id)).endpoint_id == "local-models"

    on_screen(work, Turn(ContentDelta("a")), Turn(ContentDelta("b")))


def test_the_settings_stay_where_another_page_is_open_by_then(on_screen, model):
    async def work(screen):
        dialog = screen.desk._settings_presenter.show("local")
        is_called, may_go_on = held(screen.engine.connections.local, "start")
        screen.desk.servers.local.run_file(model)
        await is_called.wait()
        dialog.show_page("modes")
        may_go_on.set()
        await screen.idle()
        assert screen.engine.connections.local.state.phase is LocalPhase.READY
        assert dialog.isVisible()

    on_screen(work)


def test_another_model_is_run_at_once_while_one_is_loaded(on_screen, tmp_path, monkeypatch):
    models = [write_model(tmp_path / f"home/.lmstudio/models/a/b/{name}-Q8_0.gguf") for name in ("large", "small")]
    (tmp_path / "loading").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DESKTOP_AGENT_LLAMA_SERVER", install_server(tmp_path))
    monkeypatch.setenv("LLAMA_TEST_LOADING", str(tmp_path / "loading"))

    async def work(screen):
        screen.desk._settings_presenter.show("local")
        runner = screen.desk.servers.local
        ready = Heard(runner.ready)
        runner.run_file(models[0])
        await until(lambda: servers_of(models[0]))
        monkeypatch.delenv("LLAMA_TEST_LOADING")
        runner.run_file(models[1])
        await until(lambda: ready)
        await screen.idle()
        assert ready == [("local-models", "small-Q8_0")]
        assert screen.engine.connections.local.state.phase is LocalPhase.READY
        assert not servers_of(models[0])

    on_screen(work)


def test_nothing_is_said_of_a_conversation_that_was_deleted_while_its_model_was_loaded(on_screen, model):
    async def work(screen):
        await screen.say("One")
        deleted = screen.conversation.id
        is_called, may_go_on = held(screen.engine.connections.local, "start")
        screen.desk.servers.local.run_file(model)
        await is_called.wait()
        screen.desk.library.delete(deleted)
        await until(lambda: screen.conversation.id != deleted)
        may_go_on.set()
        await screen.idle()
        assert not [words for words in screen.words(screen.banners) if "in the trash" in words]
        assert screen.engine.preferences.providers.endpoint_id == "local-models"

    on_screen(work, Turn(ContentDelta("a")))
