"""Pictures of the web in a conversation: named at first, loaded when the person says so, remembered, bounded."""

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtTest import QTest

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Image, Text, UrlSource
from desktop_agent.types.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_feed import Feed, NoPictures
from tests.ui.transcript.test_pictures import png
from ui.style.theme import LIGHT, ThemeSource
from ui.transcript.blocks import image_store
from ui.transcript.blocks.image_blocks import RemoteImageBlock
from ui.transcript.blocks.image_store import InMemoryImage, LoadState, RemoteImages, image_size
from ui.transcript.markdown.inline import RemoteImage
from ui.transcript.style import RenderStyle
from ui.transcript.view import TranscriptView

HERE = "https://x.org/a/b.png?c=d"


@pytest.fixture
def remote(qapp):
    images = RemoteImages()
    images.asked = []
    images.wanted.connect(lambda address, insists: images.asked.append((address, insists)))
    return images


def test_it_is_asked_for_once(remote):
    assert remote.state_of(HERE).progress is LoadState.UNASKED
    remote.load(HERE)
    remote.load(HERE)
    assert remote.asked == [(HERE, False)]
    remote.arrived(HERE, png(4, 2), "b.png")
    remote.load(HERE)
    assert remote.asked == [(HERE, False)]
    assert remote.loaded() == [HERE]
    assert image_size(remote.state_of(HERE).picture) == QSize(4, 2)


def test_what_is_given_up_does_not_arrive(remote):
    cancelled = []
    remote.unwanted.connect(cancelled.append)
    remote.load(HERE)
    remote.cancel(HERE)
    remote.arrived(HERE, png(4, 2), "b.png")
    remote.failed(HERE, "what", "remedy")
    assert remote.state_of(HERE).progress is LoadState.UNASKED
    assert cancelled == [HERE]


def test_a_refusal_can_be_overruled_only_where_that_helps(remote):
    remote.load(HERE)
    remote.failed(HERE, "No.", "Do.", may_insist=True)
    remote.load(HERE, insists=True)
    assert remote.asked[-1] == (HERE, True)


def test_only_so_much_is_kept(remote, monkeypatch):
    monkeypatch.setattr(image_store, "_MAX_REMOTE_BYTES", 2500)
    for name in "abcd":
        remote.load(name)
        remote.arrived(name, png(4, 2).ljust(1000, b"x"), name)
    assert remote.loaded() == ["c", "d"]
    assert remote.state_of("a").progress is LoadState.UNASKED


def test_what_is_loading_is_not_evicted(remote, monkeypatch):
    monkeypatch.setattr(image_store, "_MAX_REMOTE_BYTES", 2500)
    remote.load("slow")
    for name in "abc":
        remote.load(name)
        remote.arrived(name, png(4, 2).ljust(1000, b"x"), name)
    assert remote.state_of("slow").progress is LoadState.LOADING
    assert remote.loaded() == ["b", "c"]
    remote.arrived("slow", png(4, 2), "slow")
    assert remote.state_of("slow").progress is LoadState.LOADED


def test_nobody_is_remembered_who_is_gone(remote):
    watchers = [Watching() for _ in range(3)]
    for number, watcher in enumerate(watchers):
        remote.watch(f"{HERE}{number}", watcher)
    remote.load(f"{HERE}1")
    assert [watcher.notifications for watcher in watchers] == [0, 1, 0]
    remote.cancel(f"{HERE}1")
    del watcher
    watchers.clear()
    assert not remote._observers
    assert not remote._states


class Watching:
    notifications = 0

    def on_remote_image_change(self):
        self.notifications += 1


def test_a_picture_with_a_broken_header_has_failed(remote):
    remote.load(HERE)
    remote.arrived(HERE, png(30, 15)[:16] + b"\0" * 200, "b.png")
    state = remote.state_of(HERE)
    assert (state.progress, state.sentence) == (
        LoadState.FAILED,
        "This picture is damaged: its size cannot be read.",
    )
    assert state.remedy
    remote.load(HERE)
    remote.arrived(HERE, png(30, 15), "b.png")
    assert remote.state_of(HERE).size == QSize(30, 15)


def show_text(text, qtbot, tmp_path):
    view = TranscriptView(ThemeSource(), NoPictures(tmp_path))
    qtbot.addWidget(view, before_close_func=lambda closing: closing.close_workers())
    view.resize(800, 600)
    view.set_transcript(Transcript([Message(role=Role.ASSISTANT, blocks=(Text(text=text),))]))
    view.show()
    return view


def controls(view):
    return {control.name: control for _, control in view.row_viewport.rows.row(0).controls()}


def test_the_box_names_it_and_asks_nobody(qtbot, tmp_path):
    view = show_text(f"![A chart]({HERE})\n\n![](https://xn--pple-43d.com/x.png)\n\n![c](ftp://x/y)", qtbot, tmp_path)
    requests = []
    view.remote_images.wanted.connect(lambda *values: requests.append(values))
    view.grab()
    assert list(controls(view)) == ["Load picture"]
    blocks = view.row_viewport.rows.row(0).blocks
    assert blocks[0].spoken_text() == "Picture: A chart, x.org"
    assert blocks[1].spoken_text() == "Picture: Picture, xn--pple-43d.com"
    assert not blocks[2].controls()
    assert blocks[0].tooltip_at(QPoint()) == HERE
    assert requests == []


def test_by_keyboard_it_is_loaded_and_takes_its_own_size(qtbot, tmp_path):
    view = show_text(f"![A chart]({HERE})\n\nText below.", qtbot, tmp_path)
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(view, Qt.Key.Key_Tab)
    with qtbot.waitSignal(view.remote_images.wanted) as signal:
        QTest.keyClick(view, Qt.Key.Key_Return)
    assert signal.args == [HERE, False]
    assert list(controls(view)) == ["Stop loading"]
    view.remote_images.arrived(HERE, png(300, 150), "b.png")
    assert list(controls(view)) == ["Open picture: A chart"]
    row = view.row_viewport.rows.row(0)
    assert row.stack.block_box(0).height() == 150
    middle = view.row_viewport.row_box(0).topLeft() + row.stack.block_box(0).topLeft() + QPoint(150, 75)
    qtbot.waitUntil(lambda: view.viewport().grab().toImage().pixelColor(middle).name() == "#ff0000")
    with qtbot.waitSignal(view.image_opened) as opening:
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    assert opening.args == [InMemoryImage(HERE, "b.png", b"")]


def test_what_went_wrong_stands_in_its_place(qtbot, tmp_path):
    view = show_text(f"![A chart]({HERE})", qtbot, tmp_path)
    controls(view)["Load picture"].press()
    height = view.row_viewport.rows.row(0).stack.height
    view.remote_images.failed(HERE, "“x.org” could not be reached.", "Check the connection, then load it again.")
    assert "could not be reached" in view.row_viewport.rows.row(0).spoken_text()
    assert list(controls(view)) == ["Try again"]
    assert view.row_viewport.rows.row(0).stack.height > height
    controls(view)["Try again"].press()
    view.remote_images.failed(HERE, "“x.org” is not a public server.", "Know it.", may_insist=True)
    assert list(controls(view)) == ["Load anyway"]


def test_a_damaged_one_is_said_to_be_so_and_can_be_tried_again(qtbot, tmp_path):
    view = show_text(f"![A chart]({HERE})", qtbot, tmp_path)
    controls(view)["Load picture"].press()
    view.remote_images.arrived(HERE, png(30, 15)[:16], "b.png")
    assert "is damaged" in view.row_viewport.rows.row(0).spoken_text()
    with qtbot.waitSignal(view.remote_images.wanted):
        controls(view)["Try again"].press()
    view.remote_images.arrived(HERE, png(30, 15), "b.png")
    assert list(controls(view)) == ["Open picture: A chart"]


def test_what_is_hidden_in_its_description_is_written_out(qtbot, tmp_path):
    view = TranscriptView(ThemeSource(), NoPictures(tmp_path))
    qtbot.addWidget(view, before_close_func=lambda closing: closing.close_workers())
    view.resize(800, 600)
    image = Image(source=UrlSource(url=HERE), name="a\u202egnp.exe")
    view.set_transcript(Transcript([Message.user_with_blocks([image])]))
    view.show()
    assert view.row_viewport.rows.row(0).spoken_text() == "Picture: a⟨U+202E⟩gnp.exe, x.org"


def test_the_pointer_selects_it_as_a_whole(qtbot, tmp_path):
    view = show_text(f"Above.\n\n![A chart]({HERE})", qtbot, tmp_path)
    row = view.row_viewport.rows.row(0)
    block, box = row.blocks[1], row.stack.block_box(1)
    end = len("A chart ()") + len(HERE)
    assert [block.offset_at(QPoint(x, 20)) for x in (5, box.width() - 5)] == [0, end]
    assert [block.caret_stop_at(offset) for offset in (0, 1, end)] == [0, end, end]
    assert block.paragraph_at(3) == (0, end)


def test_all_places_of_one_picture_show_it(qtbot, tmp_path):
    view = show_text(f"![one]({HERE})\n\n![two]({HERE})", qtbot, tmp_path)
    view.remote_images.load(HERE)
    view.remote_images.arrived(HERE, png(30, 15), "b.png")
    view.grab()
    assert sorted(controls(view)) == ["Open picture: one", "Open picture: two"]


def test_a_picture_that_a_person_sent_by_its_address_is_named_too(qtbot, tmp_path):
    view = TranscriptView(ThemeSource(), NoPictures(tmp_path))
    qtbot.addWidget(view, before_close_func=lambda closing: closing.close_workers())
    view.resize(800, 600)
    image = Image(source=UrlSource(url=HERE), name="far")
    view.set_transcript(Transcript([Message.user_with_blocks([image, Text(text="x")])]))
    view.show()
    assert list(controls(view)) == ["Load picture"]


def test_what_is_no_picture_stays_a_box(qapp, remote):
    block = RemoteImageBlock(RemoteImage("x", HERE), None)
    assert block.layout(400, RenderStyle(LIGHT, 100)) == 54
    assert not block.controls()


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        f"![A harbour]({HERE})",
        f"Before.\n\n![A harbour]({HERE})\n\nAfter.",
        f"![A harbour]({HERE})\n",
        f"[![A harbour]({HERE})](https://x.org/)",
        f"Look: ![A harbour]({HERE}) is a picture in a line.",
    ],
)
def test_a_picture_looks_the_same_streamed_and_opened_again(qtbot, tmp_path, text, step):
    def kinds(view):
        return [(type(block), block.spoken_text()) for block in view.row_viewport.rows.row(0).blocks]

    streamed, reopened = (TranscriptView(ThemeSource(), NoPictures(tmp_path)) for _ in range(2))
    transcript = Transcript()
    for view in (streamed, reopened):
        qtbot.addWidget(view)
        view.resize(700, 500)
    feed = Feed(transcript)
    feed(TurnStarted("t", "m", "model"))
    streamed.set_transcript(transcript)
    for start in range(0, len(text), step):
        streamed.apply(feed(ContentDelta(text[start : start + step])))
        streamed.grab()
    streamed.apply(feed(RunFinished(RunEnd.COMPLETED)))
    message = Message(id="m", role=Role.ASSISTANT, blocks=(Text(text=text),))
    streamed.grab()
    reopened.set_transcript(Transcript((message,)))
    reopened.grab()
    assert kinds(streamed) == kinds(reopened)
    streamed.close_workers()
    reopened.close_workers()
