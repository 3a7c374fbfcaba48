"""The settings of a conversation, as an outside client finds them by accessible names."""

from pathlib import Path

import pytest

from tests.fakes.threaded_model_server import MODEL, ModelServer, Story, numbered
from tests.fakes.window_process import opened, wait_until


@pytest.mark.exhaustive("tests/ui/shell/test_conversation_settings.py::test_what_was_set_is_sent_shown_and_there_again")
def test_the_settings_of_a_conversation_reach_the_server(real_display: dict[str, str], tmp_path: Path) -> None:
    with (
        ModelServer(lambda _: Story(numbered(3))) as server,
        opened(real_display, tmp_path / "data", "--base-url", server.url, "--model", MODEL) as (_, screen),
    ):
        screen.wait_for("Conversation settings")
        screen.new_conversation()
        screen.focus("Message")
        screen.keys("ctrl+shift+p")
        screen.wait_for("Conversation settings", "dialog")
        screen.write("System prompt", "Be brief.")
        screen.write("Temperature", "3")
        screen.press("Save")
        screen.wait_says("This is not a number from 0 to 2.")
        screen.write("Temperature", "0.5")
        screen.press("Save")
        wait_until("the dialog goes", lambda: screen.find("Conversation settings", "dialog") is None)
        screen.send("Hello")
        screen.wait_last("Assistant said", "w0 w1 w2")
        (body,) = [request.json for request in server.asked if request.method == "POST"]
        assert body["temperature"] == 0.5
        assert "top_p" not in body
        assert body["messages"][0]["content"] == "Be brief."
