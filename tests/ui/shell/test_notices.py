"""What is said above a conversation and in its composer: where it belongs, and until its reason is gone."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QToolButton

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.types.errors import AuthenticationFailed, StorageFailed, WrongUse
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn

LONG = "\n\n".join(f"Paragraph {number}." for number in range(120))


def banner_text(screen):
    return "\n".join(screen.words(screen.banners))


async def begin_another(screen):
    shown_id = screen.conversation.id
    screen.action("New conversation").trigger()
    await until(lambda: screen.conversation.id != shown_id)
    await screen.idle()


def test_sending_jumps_to_what_was_sent(on_screen):
    async def work(screen):
        screen.window.resize(900, 500)
        await screen.say("Hello")
        view = screen.window.page.transcript
        await until(lambda: view.verticalScrollBar().maximum() > 0)
        view.setFocus()
        QTest.keyClick(view, Qt.Key.Key_Home)
        assert not view.row_viewport.rows.following
        await screen.say("And now?")
        bar = view.verticalScrollBar()
        await until(lambda: bar.value() == bar.maximum())
        assert view.row_viewport.rows.following
        assert view.jump_button.isHidden()

    on_screen(work, Turn(ContentDelta(LONG)), Turn(ContentDelta(LONG)))


def test_an_error_stays_with_its_conversation_and_leaves_when_that_goes_on(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        screen.banners.show_error(WrongUse("It went wrong here."), first)
        assert "It went wrong here." in banner_text(screen)
        await begin_another(screen)
        assert "It went wrong here." not in banner_text(screen)
        screen.banners.show_error(WrongUse("It concerns everything."))
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        assert "It went wrong here." in banner_text(screen)
        assert "It concerns everything." in banner_text(screen)
        await screen.say("Two")
        assert "It went wrong here." not in banner_text(screen)
        assert "It concerns everything." in banner_text(screen)

    on_screen(work, Turn(ContentDelta("1")), Turn(ContentDelta("2")))


def test_the_offer_to_undo_a_deletion_leaves_when_it_is_restored(on_screen):
    async def work(screen):
        record = await screen.engine.store.create_conversation(title="Found again")
        screen.desk.library.delete(record.id)
        await until(lambda: "was put into the trash" in banner_text(screen))
        screen.desk.library.restore(record.id)
        await until(lambda: "was put into the trash" not in banner_text(screen))
        await screen.idle()

    on_screen(work)


def test_over_the_welcome_page_too_it_is_said_what_concerns_all(on_screen):
    async def work(screen):
        await screen.say("One")
        screen.banners.show_error(WrongUse("It went wrong in one."), screen.conversation.id)
        screen.window.show_welcome()
        screen.window.banners.show_error(WrongUse("It concerns everything."))
        record = await screen.engine.store.create_conversation(title="Put away")
        screen.desk.library.delete(record.id)
        await until(lambda: "was put into the trash" in banner_text(screen))
        assert "It concerns everything." in banner_text(screen)
        # Behind the page it waits for its conversation.
        assert "It went wrong in one." not in banner_text(screen)
        screen.press("Back")
        assert "It went wrong in one." in banner_text(screen)
        await screen.idle()

    on_screen(work, Turn(ContentDelta("1")))


def test_beside_nothing_but_the_list_a_deletion_can_be_undone(on_screen):
    async def work(screen):
        screen.window.resize(480, 600)
        await until(lambda: screen.find(QToolButton, "Show or hide the conversations"))
        screen.press("Show or hide the conversations")
        assert screen.editor is None
        record = await screen.engine.store.create_conversation(title="Put away")
        screen.desk.library.delete(record.id)
        await until(lambda: "was put into the trash" in banner_text(screen))
        screen.window.resize(1100, 700)
        await until(lambda: screen.editor is not None)
        assert "was put into the trash" in banner_text(screen)
        await screen.idle()

    on_screen(work)


def composer_words(screen):
    labels = screen.window.page.composer.findChildren(QLabel)
    return "\n".join(label.text() for label in labels if label.isVisible())


def test_what_could_not_be_sent_is_said_where_it_was_written(on_screen, monkeypatch):
    async def work(screen):
        def refuse(*_):
            raise StorageFailed("It could not be kept.", "Make room on the disk.")

        monkeypatch.setattr(type(screen.conversation), "send", refuse)
        screen.write("Precious")
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        await until(lambda: "It could not be kept. Make room on the disk." in composer_words(screen))
        assert screen.editor.toPlainText() == "Precious"
        assert banner_text(screen) == ""
        screen.write("!")
        assert "It could not be kept." not in composer_words(screen)
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        await until(lambda: "It could not be kept." in composer_words(screen))
        await begin_another(screen)
        assert "It could not be kept." not in composer_words(screen)

    on_screen(work)


def test_a_damaged_picture_is_said_at_the_composer_until_one_goes_on(on_screen, tmp_path):
    async def work(screen):
        (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
        screen.window.page.composer.attach_files([tmp_path / "broken.png"])
        await until(lambda: "“broken.png” is damaged" in composer_words(screen))
        assert banner_text(screen) == ""
        screen.write("Then without.")
        assert "broken.png" not in composer_words(screen)

    on_screen(work)


def test_an_error_of_a_provider_leads_to_the_page_of_providers(on_screen):
    async def work(screen):
        await screen.say("Hello")
        dialog = screen.desk._settings_presenter.show("usage")
        dialog.hide()
        notice = next(item for item in screen.conversation.transcript if isinstance(item, NoticeItem) and item.action)
        screen.window.page.transcript.remedy_requested.emit(notice.id, notice.action)
        assert dialog.providers.isVisible()
        dialog.hide()
        await screen.idle()

    on_screen(work, Turn(AuthenticationFailed("The key is wrong.")))
