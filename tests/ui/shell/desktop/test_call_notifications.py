"""Decisions in notifications, shown by a real server on a bus of its own that clicks as it likes."""

import pytest
from PySide6.QtWidgets import QPushButton

from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, Deny, UntrustedSource
from tests.fakes.agent_run import call
from tests.fakes.notification_server import notification_server
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.ui.shell.test_side_windows import open_beside
from ui.approval.approval_dialog import ApprovalDialog
from ui.shell.desktop import call_notifications, notifications, waiting_notifications

DONE = Turn(ContentDelta("Done"))
FULL = ("actions", "body", "body-markup")
OUTSIDE = UntrustedSource("web", "a site")


def write(id_, path, content="Hello"):
    return call(id_, "write_file").model_copy(update={"input": {"path": path, "content": content}})


@pytest.fixture(autouse=True)
def _behind(monkeypatch):
    """Put another program in front, and let every click count at once."""
    for module in (notifications, call_notifications, waiting_notifications):
        monkeypatch.setattr(module, "is_active", lambda: False)
    monkeypatch.setattr(call_notifications, "HAND_SECONDS", 0.0)


class Asked:
    """A conversation whose calls wait, and the folder in which they would write."""

    def __init__(self, screen, folder):
        self.folder = folder
        self.session = screen.engine._sessions[screen.conversation.id]

    @property
    def waiting(self):
        return self.session.approvals.open_approvals

    @property
    def written(self):
        return sorted(file.name for file in self.folder.iterdir())

    async def over(self):
        await until(lambda: not self.session.working)


async def ask(screen, folder, *, title="Boats", count=1, source=None, in_memory=False):
    folder.mkdir(exist_ok=True)
    screen.desk.library.new(in_memory=in_memory)
    await screen.idle()
    screen.conversation.change(title=title, title_is_automatic=False, workspace=str(folder))
    request = Asked(screen, folder)
    if source is not None:
        request.session.permission_policy.mark_untrusted(source)
    screen.write("Write")
    screen.press("Send")
    await until(lambda: len(request.waiting) == count)
    return request


def test_a_call_is_shown_with_its_decisions_and_allowed_once(on_screen, bus, tmp_path):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work")
            await until(lambda: server.shown)
            (number, title, text, _), *_ = server.shown
            assert title == "Boats"
            assert text.splitlines() == [
                "A call waits for your approval:",
                "Write a file: a.txt · content: Hello",
            ]
            assert server.offered == ["Show", "Deny", "Allow once"]
            server.click(number, "allow")
            server.click(number, "allow")
            server.click(number, "deny")
            await request.over()
            assert request.written == ["a.txt"]
            assert screen.answers() == ["Done"]
            await until(lambda: number in server.closed)
            server.click(number, "deny")
            await screen.idle()

    on_screen(work, Turn(write("1", "a.txt")), DONE)


def test_denying_and_showing(on_screen, bus, tmp_path):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work", count=2)
            await until(lambda: len(server.shown) == 2)
            texts = [(number, text) for number, _, text, _ in server.shown]
            numbers = {name: number for number, text in texts for name in ("a.txt", "b.txt") if name in text}
            server.click(numbers["a.txt"], "deny")
            await until(lambda: len(request.waiting) == 1)
            screen.window.page.approvals._dialog.hide()
            screen.desk.library.new()
            await screen.idle()
            server.click(numbers["b.txt"], "default")
            dialog = await screen.wait_for(ApprovalDialog, "Approve tool call")
            assert screen.conversation.id == request.session.record.id
            assert dialog.current.arguments["path"] == "b.txt"
            await until(lambda: screen.find(QPushButton, "Deny").isEnabled())
            screen.press("Deny")
            await request.over()
            assert request.written == []

    on_screen(work, Turn(write("1", "a.txt"), write("2", "b.txt")), DONE)


def test_a_click_leads_to_the_window_that_shows_the_conversation(on_screen, bus, tmp_path):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work")
            conversation_id = request.session.record.id
            await until(lambda: server.shown)
            screen.desk.library.new()
            await screen.idle()
            shown_id, window = screen.conversation.id, await open_beside(screen, conversation_id)
            server.click(server.shown[0][0], "default")
            await until(lambda: [dialog for dialog in window.findChildren(ApprovalDialog) if dialog.isVisible()])
            # With room for a way through the main window.
            await screen.idle()
            assert screen.conversation.id == shown_id
            count = len(server.shown)
            request.session.interrupt()
            await request.over()
            screen.desk.library.activity.changed.emit(conversation_id, "Boats", "done")
            await until(lambda: len(server.shown) > count)
            server.click(server.shown[-1][0], "default")
            await until(lambda: server.shown[-1][0] in server.closed)
            await screen.idle()
            assert screen.conversation.id == shown_id

    on_screen(work, Turn(write("1", "a.txt")), DONE)


@pytest.mark.parametrize("decision", [AllowOnce(), Deny(), None])
def test_what_is_decided_elsewhere_is_withdrawn_and_a_late_click_does_nothing(on_screen, bus, tmp_path, decision):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work")
            await until(lambda: server.shown)
            number = server.shown[0][0]
            if decision is None:
                request.session.interrupt()
            else:
                request.session.approvals.answer(request.waiting[0].approval_id, decision)
            await until(lambda: number in server.closed)
            server.click(number, "allow")
            server.forge(number, "allow")
            await request.over()
            await screen.idle()
            assert request.written == (["a.txt"] if isinstance(decision, AllowOnce) else [])

    on_screen(work, Turn(write("1", "a.txt")), DONE)


def test_no_click_is_as_fast_as_a_decision(on_screen, bus, tmp_path):
    """The signal of a click may be under way already when the call is denied in the window."""

    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work")
            await until(lambda: server.shown)
            server.click(server.shown[0][0], "allow")
            request.session.approvals.answer(request.waiting[0].approval_id, Deny())
            await request.over()
            await screen.idle()
            assert request.written == []

    on_screen(work, Turn(write("1", "a.txt")), DONE)


@pytest.mark.parametrize("lock", ["locked", None])
def test_while_the_screen_is_locked_or_nobody_knows_nothing_can_be_allowed(on_screen, bus, tmp_path, lock):
    async def work(screen):
        with notification_server(bus, *FULL, lock=lock) as server:
            request = await ask(screen, tmp_path / "work")
            await until(lambda: server.shown)
            assert server.offered == ["Show", "Deny"]
            # What cannot be allowed there need not be said word for word.
            assert server.shown[0][2].splitlines()[1] == "Write a file: a.txt"
            server.click(server.shown[0][0], "allow")
            server.forge(server.shown[0][0], "allow")
            server.click(server.shown[0][0], "deny")
            await request.over()
            assert request.written == []

    on_screen(work, Turn(write("1", "a.txt")), DONE)


def test_what_was_offered_is_refused_when_the_screen_was_locked_or_content_came_since(on_screen, bus, tmp_path):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work")
            await until(lambda: server.calls)
            assert server.offered == ["Show", "Deny", "Allow once"]
            server.lock(is_locked=True)
            server.click(server.calls[0][0], "allow")
            await until(lambda: len(server.calls) == 2)
            assert server.offered == ["Show", "Deny"]
            assert len(request.waiting) == 1
            server.lock(is_locked=False)
            # It is not offered any more, whatever is clicked.
            server.click(server.calls[1][0], "allow")
            request.session.approvals.answer(request.waiting[0].approval_id, Deny())
            await request.over()

            request = await ask(screen, tmp_path / "work")
            await until(lambda: len(server.calls) == 3)
            assert server.offered == ["Show", "Deny", "Allow once"]
            request.session.permission_policy.mark_untrusted(OUTSIDE)
            server.click(server.calls[2][0], "allow")
            await until(lambda: len(server.calls) == 4)
            assert server.offered == ["Show", "Deny"]
            request.session.interrupt()
            await request.over()
            assert request.written == []

    on_screen(work, Turn(write("1", "a.txt")), DONE, Turn(write("2", "b.txt")), DONE)


def test_a_hand_that_was_already_on_its_way_allows_nothing(on_screen, bus, tmp_path, monkeypatch):
    monkeypatch.setattr(call_notifications, "HAND_SECONDS", 3600.0)

    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work")
            await until(lambda: server.shown)
            server.click(server.shown[0][0], "allow")
            await until(lambda: len(server.shown) == 2)
            assert server.offered == ["Show", "Deny", "Allow once"]
            assert len(request.waiting) == 1
            request.session.interrupt()
            await request.over()
            assert request.written == []

    on_screen(work, Turn(write("1", "a.txt")))


@pytest.mark.parametrize("is_trusted", [False, True])
def test_after_content_from_outside_nothing_is_allowed_from_there(on_screen, bus, tmp_path, is_trusted):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work", source=OUTSIDE)
            if is_trusted:
                request.session.permission_policy.lift_suspension()
            await until(lambda: server.shown)
            assert server.offered == ["Show", "Deny"]
            request.session.interrupt()
            await request.over()

    on_screen(work, Turn(write("1", "a.txt")))


def test_words_of_the_model_form_no_markup_and_no_line_of_ours(on_screen, bus, tmp_path):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            title = "A call\nof <b>yours</b> \u202egnihton"
            request = await ask(screen, tmp_path / "work", title=title)
            await until(lambda: server.shown)
            _, title, text, _ = server.shown[0]
            assert title == "A call of <b>yours</b> ⟨U+202E⟩gnihton"
            first, second = text.splitlines()
            assert first == "A call waits for your approval:"
            assert second.startswith("Write a file: ")
            assert "&lt;/i&gt; &amp;" in second
            assert "<" not in text
            assert not {"\u202e", "\u2066"} & set(text)
            assert server.offered == ["Show", "Deny"]
            request.session.interrupt()
            await request.over()

    on_screen(work, Turn(write("1", "</i> & \u2066x\n\nAllowed.")))


def test_a_server_without_actions_gets_the_plain_one(on_screen, bus, tmp_path):
    async def work(screen):
        with notification_server(bus) as server:
            request = await ask(screen, tmp_path / "work")
            await until(lambda: server.shown)
            assert server.shown[0][3] == []
            server.click(server.shown[0][0], "allow")
            server.click(server.shown[0][0], "deny")
            request.session.interrupt()
            await request.over()
            await until(lambda: server.closed)
            assert request.written == []

    on_screen(work, Turn(write("1", "a.txt")))


def test_of_a_conversation_that_is_not_stored_the_desktop_learns_nothing(on_screen, bus, tmp_path):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work", in_memory=True)
            await until(lambda: server.shown)
            assert server.shown[0][1:3] == (
                "A conversation that is not stored",
                "A call waits for your approval.",
            )
            assert server.offered == ["Show", "Deny"]
            server.click(server.shown[0][0], "deny")
            await request.over()
            screen.desk.library.close_unstored(screen.conversation.id)
            await screen.idle()

    on_screen(work, Turn(write("1", "a.txt")), DONE)


def test_many_calls_of_one_answer_come_one_after_the_other(on_screen, bus, tmp_path):
    async def work(screen):
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work", count=5)
            await until(lambda: len(server.shown) == 3)
            await screen.idle()
            assert len(server.shown) == 3
            server.click(server.shown[0][0], "deny")
            await until(lambda: len(server.shown) == 4)
            request.session.interrupt()
            await request.over()
            await until(lambda: len(set(server.closed)) == 4)

    on_screen(work, Turn(*(write(str(number), f"{number}.txt") for number in range(5))), DONE)


def test_switched_off_there_is_none(on_screen, bus, tmp_path):
    async def work(screen):
        preferences = screen.engine.preferences
        chat = preferences.chat.model_copy(update={"notifications": False})
        await screen.engine.change_preferences(preferences.model_copy(update={"chat": chat}))
        with notification_server(bus, *FULL) as server:
            request = await ask(screen, tmp_path / "work")
            await screen.idle()
            request.session.interrupt()
            await request.over()
            assert server.shown == []

    on_screen(work, Turn(write("1", "a.txt")))
