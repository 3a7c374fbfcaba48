"""Any server by its address, from the welcome page to an answer."""

import asyncio

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.model_server import JSON, answer, endpoint, listing, model_server, refusal
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.ui.shell.test_origin import from_program, open_tree


def without_listing(status=404):
    """Return a server that answers questions but lists no models."""
    return Loopback(choose=lambda request: answer() if request.path.endswith("/chat/completions") else refusal(status))


def fill(screen, name, text):
    field = screen.find(QLineEdit, name)
    field.clear()
    field.setFocus()
    QTest.keyClicks(field, text)
    return field


def welcome_words(screen):
    return "\n".join(screen.words(screen.window._welcome))


def test_a_server_that_lists_no_models_is_connected_with_a_typed_name(on_screen, tmp_path):
    async def work(screen):
        async with without_listing() as server:
            screen.window.show_welcome()
            QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
            await until(lambda: "type the name of one" in welcome_words(screen))
            assert screen.engine.preferences.providers.endpoints == ()
            field = fill(screen, "Model, if the server lists none", "my-model")
            QTest.keyClick(field, Qt.Key.Key_Return)
            await until(lambda: screen.conversation is not None and screen.conversation.model == "my-model")
            await screen.idle()
            await screen.say("Hello")
            assert screen.answers() == ["Hello"]
            chat_requests = [request for request in server.requests if request.path.endswith("/chat/completions")]
            assert b'"my-model"' in chat_requests[-1].body
            # Asked again for its models, it has the one that was typed.
            models = await screen.engine.connections.models(screen.conversation.endpoint_id, refresh=True)
            assert [model.id for model in models] == ["my-model"]

    on_screen(work, connected=False)


def test_an_address_without_v1_is_completed_and_shown(on_screen):
    async def work(screen):
        async with model_server("a") as server:
            for typed in (server.url.removesuffix("/v1"), server.url, server.url.removesuffix("/v1")):
                screen.window.show_welcome()
                bare = typed.removeprefix("http://")
                QTest.keyClick(fill(screen, "Address of the server", bare), Qt.Key.Key_Return)
                await until(lambda: not screen.window.shows_welcome)
                await screen.idle()
            (saved,) = screen.desk.servers.endpoints
            assert saved.base_url == server.url
            await screen.say("Hello")
            assert screen.answers() == ["Hello"]

    on_screen(work, connected=False)


def test_an_edited_address_without_v1_is_completed_by_its_test(on_screen):
    async def work(screen):
        async with model_server("a") as server:
            screen.window.show_welcome()
            QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
            await until(lambda: not screen.window.shows_welcome)
            await screen.idle()
            (saved,) = screen.desk.servers.endpoints
            states = []
            screen.desk.servers.state_changed.connect(lambda *values: states.append(values))
            shorter = saved.model_copy(update={"base_url": server.url.removesuffix("/v1")})
            screen.desk.servers.edit(shorter)
            await screen.idle()
            assert screen.desk.servers.endpoints == (saved,)
            assert str(states[-1][2]) == f"It answers at {server.url}. That is its address from now on."

    on_screen(work, connected=False)


async def connect(screen, server):
    screen.window.page.models.picker.connect_requested.emit()
    assert screen.window.shows_welcome
    QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
    await until(lambda: not screen.window.shows_welcome)
    await screen.idle()


def test_connecting_a_server_leads_back_to_the_conversation(on_screen):
    async def work(screen):
        async with model_server("a") as server:
            await screen.say("Hello")
            conversation, model = screen.conversation, screen.conversation.model
            await connect(screen, server)
            assert screen.conversation is conversation
            assert conversation.model == model
            assert screen.engine.preferences.providers.model == "a"
            assert "is connected. Its models are in the list" in " ".join(screen.words(screen.banners))
            # Nothing was asked in this one yet.
            screen.desk.library.new()
            conversation = screen.conversation
            async with model_server("b") as second_server:
                await connect(screen, second_server)
                assert screen.conversation is conversation
                assert conversation.model == "b"

    on_screen(work, Turn(ContentDelta("One")))


def test_a_conversation_without_a_model_uses_the_server_that_is_connected(on_screen):
    async def work(screen):
        await open_tree(screen, from_program("chatgpt"))
        conversation = screen.conversation
        assert conversation.endpoint_id is None
        async with model_server("a") as server, model_server("b") as second_server:
            await connect(screen, server)
            assert screen.conversation is conversation
            assert conversation.model == "a"
            screen.desk.servers.remove(conversation.endpoint_id)
            await screen.idle()
            await connect(screen, second_server)
            assert screen.conversation is conversation
            assert conversation.model == "b"

    on_screen(work)


def test_a_typed_name_goes_before_those_that_are_listed(on_screen):
    async def work(screen):
        async with model_server("listed", "typed") as server:
            screen.window.show_welcome()
            fill(screen, "Model, if the server lists none", "typed")
            QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
            await until(lambda: screen.conversation is not None and screen.conversation.model == "typed")
            models = await screen.engine.connections.models(screen.conversation.endpoint_id)
            assert [model.id for model in models] == ["typed", "listed"]
            await screen.idle()

    on_screen(work, connected=False)


def test_a_wrong_key_and_a_server_that_is_down_are_no_missing_list(on_screen):
    async def work(screen):
        async with without_listing(401) as server:
            screen.window.show_welcome()
            fill(screen, "Model, if the server lists none", "my-model")
            QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
            await until(lambda: "The server wants an API key: no. Enter an API key" in welcome_words(screen))
            await screen.idle()
            address = server.url
        QTest.keyClick(fill(screen, "Address of the server", address), Qt.Key.Key_Return)
        await until(lambda: "could not be reached" in welcome_words(screen))
        await screen.idle()
        assert screen.engine.preferences.providers.endpoints == ()

    on_screen(work, connected=False)


def test_the_same_address_in_two_dialects_is_two_servers(on_screen):
    async def work(screen):
        async with model_server("a") as server:
            for dialect in ("openai-chat", "openai-responses"):
                screen.window.show_welcome()
                box = screen.find(QComboBox, "API of the server")
                box.setFocus()
                QTest.keyClick(box, Qt.Key.Key_Home)
                while box.currentData() != dialect:
                    QTest.keyClick(box, Qt.Key.Key_Down)
                QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
                await until(
                    lambda dialect=dialect: dialect in [server.dialect for server in screen.desk.servers.endpoints]
                )
                await screen.idle()
            first, second = screen.desk.servers.endpoints
            assert first.base_url == second.base_url
            assert second.title == f"{first.title} (OpenAI Responses)"

    on_screen(work, connected=False)


def test_servers_at_one_host_can_be_told_apart_and_keep_the_titles_that_people_gave_them(on_screen):
    async def work(screen):
        async with Loopback(choose=lambda _: listing("a")) as server:
            host = server.url.removeprefix("http://").removesuffix("/v1")
            addresses = [f"{host}/{path}/v1" for path in ("one", "two", "three")]
            for count, address in enumerate(addresses, start=1):
                screen.window.show_welcome()
                QTest.keyClick(fill(screen, "Address of the server", address), Qt.Key.Key_Return)
                await until(lambda count=count: len(screen.desk.servers.endpoints) == count)
                await screen.idle()
            assert titles(screen) == [host, f"{host}/two", f"{host}/three"]
            first = screen.desk.servers.endpoints[0]
            screen.desk.servers.edit(first.model_copy(update={"title": "Office"}))
            await screen.idle()
            screen.window.show_welcome()
            QTest.keyClick(fill(screen, "Address of the server", addresses[0]), Qt.Key.Key_Return)
            await until(lambda: screen.desk.servers.endpoints[-1].id == first.id)
            assert titles(screen) == [f"{host}/two", f"{host}/three", "Office"]
            await screen.idle()

    on_screen(work, connected=False)


def titles(screen):
    return [endpoint.title for endpoint in screen.desk.servers.endpoints]


def test_a_server_without_models_is_no_success(on_screen):
    async def work(screen):
        names = ["a"]
        async with Loopback(choose=lambda _: listing(*names)) as server:
            screen.window.show_welcome()
            QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
            await until(lambda: titles(screen))
            await screen.idle()
            states = []
            screen.desk.servers.state_changed.connect(lambda _id, state, words: states.append((state, str(words))))
            names.clear()
            screen.desk.servers.test(screen.desk.servers.endpoints[0].id)
            await until(lambda: len(states) == 2)
            assert states[-1][0] == "error"
            assert "has no models yet" in states[-1][1]
            await screen.idle()

    on_screen(work, connected=False)


def test_names_are_given_and_taken_back_in_the_settings(on_screen):
    async def work(screen):
        async with without_listing() as server:
            screen.window.show_welcome()
            fill(screen, "Model, if the server lists none", "one")
            QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
            await until(lambda: screen.conversation is not None and screen.conversation.model == "one")
            await screen.idle()
            screen.desk._settings_presenter.show()
            dialog = screen.desk._settings_presenter._dialog
            dialog.show_page("providers")
            title = screen.desk.servers.endpoints[0].title
            screen.press(f"Edit {title}")
            field = await screen.wait_for(QLineEdit, f"Models of {title}, if it lists none")
            assert field.text() == "one"
            QTest.keyClicks(field, ", two")
            QTest.keyClick(field, Qt.Key.Key_Return)
            await until(lambda: screen.desk.servers.endpoints[0].models == ("one", "two"))
            await screen.idle()
            models = await screen.engine.connections.models(screen.conversation.endpoint_id)
            assert [model.id for model in models] == ["one", "two"]
            dialog.hide()

    on_screen(work, connected=False)


def test_after_an_attempt_that_failed_a_server_connected_later_opens_nothing(on_screen):
    async def work(screen):
        await screen.say("Hello")
        at_work = screen.conversation.id
        screen.window.show_welcome()
        async with without_listing() as server, model_server("m") as later:
            QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
            await until(lambda: "type the name of one" in welcome_words(screen))
            await screen.idle()
            screen.desk.servers.connect_endpoint(endpoint(later), None)
            await until(lambda: len(screen.desk.servers.endpoints) == 2)
            await screen.idle()
        assert screen.conversation.id == at_work

    on_screen(work, Turn(ContentDelta("Hi")))


def test_a_server_that_answers_after_one_went_back_opens_nothing(on_screen):
    async def work(screen):
        await screen.say("Hello")
        at_work, hold = screen.conversation.id, asyncio.Event()
        screen.window.show_welcome()
        slow = Reply(late=listing("m").body, headers=JSON, framing="length", hold=hold)
        async with Loopback(choose=lambda _: slow) as server:
            QTest.keyClick(fill(screen, "Address of the server", server.url), Qt.Key.Key_Return)
            await until(lambda: server.requests)
            screen.press("Back")
            hold.set()
            await until(lambda: len(screen.desk.servers.endpoints) == 2)
            await screen.idle()
        assert screen.conversation.id == at_work

    on_screen(work, Turn(ContentDelta("Hi")))
