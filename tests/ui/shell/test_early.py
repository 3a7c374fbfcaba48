"""The moment between the window and its first conversation."""

from desktop_agent.providers.scripted import Turn
from desktop_agent.vocabulary.provider_events import ContentDelta
from tests.ui.bridge.in_loop import until
from tests.ui.shell.screen import Screen


class Hasty(Screen):
    """Sends as soon as there is a window."""

    async def idle(self):
        if self.conversation is None:
            self.write("Hello")
            self.press("Send")
        await super().idle()


def test_what_is_sent_before_the_first_conversation_is_open_goes_into_it(qapp, in_loop, tmp_path):
    async def work():
        screen = await Hasty.open(qapp, tmp_path / "data", Turn(ContentDelta("Hi")))
        try:
            await until(lambda: screen.answers() == ["Hi"])
            await until(lambda: not screen.conversation.working)
            assert screen.editor.toPlainText() == ""
        finally:
            await screen.close()

    in_loop(work())
