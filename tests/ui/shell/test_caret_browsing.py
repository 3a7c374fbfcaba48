"""The caret, and the word about how it goes again."""

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn


def test_the_first_caret_comes_with_a_word_about_how_it_goes_again(on_screen):
    async def work(screen):
        await screen.say("Say something")
        page = screen.window.page
        screen.action("Caret browsing").trigger()
        assert page.transcript.hasFocus()
        assert page.transcript.caret.is_on
        assert any("F7" in words for words in screen.words())
        page.banners.clear()
        screen.action("Caret browsing").trigger()
        screen.action("Caret browsing").trigger()
        assert page.transcript.caret.is_on
        assert not any("F7" in words for words in screen.words())

    on_screen(work, Turn(ContentDelta("Some words.")))
