"""A diagram is drawn by a process that can do nothing else, and that ends when it must."""

import contextlib
import socket
import sys
import threading

import psutil
import pytest

from tests.ui.transcript.blocks.diagram_stand_in import make
from ui.style.theme import DARK, LIGHT
from ui.transcript.blocks import diagram_renderer
from ui.transcript.blocks.diagram_renderer import (
    MAX_SOURCE_LENGTH,
    DiagramError,
    DiagramErrorReason,
    DiagramRenderer,
    DiagramRequest,
    find_renderer,
    make_request,
)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return make(tmp_path_factory.mktemp("interpreter"))


def sketch(source, scale=1.0):
    return DiagramRequest(source, (("background", "#fff"),), scale)


def draw(renderer, request):
    return renderer.draw(request, renderer.make_worker())


def children():
    processes = []
    for child in psutil.Process().children(recursive=True):
        # One that ends meanwhile has no command any more.
        with contextlib.suppress(psutil.NoSuchProcess):
            processes += [child] if "--child" in child.cmdline() else []
    return processes


def test_it_is_drawn_at_the_wanted_scale_without_what_lies_elsewhere(python):
    picture = draw(DiagramRenderer(python), sketch("flowchart", 2.0))
    assert isinstance(picture, bytes), picture
    assert picture[16:24] == (600).to_bytes(4, "big") + (400).to_bytes(4, "big")
    assert not children()


def test_a_huge_one_is_drawn_smaller(python):
    picture = draw(DiagramRenderer(python), sketch("flowchart", 500.0))
    width, height = (int.from_bytes(picture[start : start + 4], "big") for start in (16, 20))
    assert width * height <= 16_100_000


def test_what_is_wrong_is_said(python):
    error = draw(DiagramRenderer(python), sketch("wrong"))
    assert error.reason is DiagramErrorReason.WRONG
    assert "Parse error on line 2" in error.message


@pytest.mark.parametrize("source", ["program", "file /tmp/never-written-by-a-diagram"])
def test_it_reaches_nothing(python, source):
    assert draw(DiagramRenderer(python), sketch(source)).reason is DiagramErrorReason.WRONG


@pytest.mark.parametrize(
    "statement",
    [
        "os.open({new!r}, os.O_WRONLY | os.O_CREAT)",
        "os.open({old!r}, os.O_RDWR)",
        "os.open({old!r}, os.O_RDONLY | os.O_TRUNC)",
        "os.remove({old!r})",
        "os.unlink({old!r})",
        "os.rename({old!r}, {new!r})",
        "os.replace({old!r}, {new!r})",
        "os.rmdir({empty!r})",
        "os.mkdir({new!r})",
        "os.link({old!r}, {new!r})",
        "os.symlink({old!r}, {new!r})",
        "os.truncate({old!r}, 0)",
        "os.chmod({old!r}, 0)",
        "os.utime({old!r}, (0, 0))",
        "shutil.rmtree({empty!r})",
        "shutil.move({old!r}, {new!r})",
        "os.kill(os.getppid(), 0)",
    ],
)
def test_it_changes_no_file(python, tmp_path, statement):
    old, new, empty = tmp_path / "old", tmp_path / "new", tmp_path / "empty"
    old.write_text("kept")
    empty.mkdir()
    stat = old.stat()
    error = draw(
        DiagramRenderer(python), sketch("do " + statement.format(old=str(old), new=str(new), empty=str(empty)))
    )
    assert error.reason is DiagramErrorReason.WRONG
    assert error.message != "it was done"
    assert sorted(tmp_path.iterdir()) == [empty, old]
    assert (old.read_text(), old.stat().st_mtime, old.stat().st_mode) == ("kept", stat.st_mtime, stat.st_mode)


def test_it_may_read(python):
    assert draw(DiagramRenderer(python), sketch("do os.close(os.open('/', os.O_RDONLY))")).message == "it was done"


def test_it_reaches_no_network(python):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        error = draw(DiagramRenderer(python), sketch(f"socket {server.getsockname()[1]}"))
        assert error.reason is DiagramErrorReason.WRONG
        with pytest.raises(BlockingIOError):
            server.accept()


def test_it_knows_nothing_of_the_environment(python, monkeypatch):
    monkeypatch.setenv("STAND_IN_SECRET", "sk-secret")
    assert draw(DiagramRenderer(python), sketch("secret")).message == "nothing of yours"


@pytest.mark.parametrize("source", ["die", "flood", "memory"])
def test_nonsense_is_no_diagram(python, source):
    assert draw(DiagramRenderer(python), sketch(source)).reason is DiagramErrorReason.BROKE


def test_it_ends_in_time(python):
    assert draw(DiagramRenderer(python, timeout=0.5), sketch("hang")).reason is DiagramErrorReason.TOO_SLOW
    assert not children()


def test_it_can_be_ended(python):
    renderer, request, errors = DiagramRenderer(python), sketch("hang"), []
    worker = renderer.make_worker()
    thread = threading.Thread(target=lambda: errors.append(renderer.draw(request, worker)))
    thread.start()
    while not children():
        pass
    worker.close()
    thread.join(10)
    assert [error.reason for error in errors] == [DiagramErrorReason.STOPPED]
    assert not children()
    assert isinstance(draw(renderer, sketch("flowchart")), bytes)


def test_what_was_stopped_before_its_turn_is_not_begun(python):
    renderer = DiagramRenderer(python)
    worker = renderer.make_worker()
    worker.close()
    assert renderer.draw(sketch("hang"), worker).reason is DiagramErrorReason.STOPPED
    assert not worker.started


def test_without_it_nothing_is_started(monkeypatch):
    monkeypatch.setattr(diagram_renderer, "find_spec", lambda name: None)
    assert draw(find_renderer(), sketch("flowchart")) == DiagramError(DiagramErrorReason.NOT_INSTALLED)
    monkeypatch.setattr(diagram_renderer, "find_spec", lambda name: object())
    assert find_renderer().python == sys.executable
    assert draw(DiagramRenderer("/no/such/python"), sketch("x")).reason is DiagramErrorReason.BROKE
    assert (
        draw(DiagramRenderer("/no/such/python"), sketch("x" * (MAX_SOURCE_LENGTH + 1))).reason
        is DiagramErrorReason.TOO_LONG
    )


@pytest.mark.exhaustive("test_it_is_drawn_at_the_wanted_scale_without_what_lies_elsewhere, with a stand-in")
@pytest.mark.skipif(find_renderer().python is None, reason="the extra diagrams is not installed")
def test_the_installed_renderer_draws_diagrams():
    for source in ("flowchart TD\n A[Start] --> B{ok?}", "sequenceDiagram\n A->>B: hi", "classDiagram\n A <|-- B"):
        for theme in (LIGHT, DARK):
            assert isinstance(draw(find_renderer(), make_request(source, theme, 1.0)), bytes)
    assert draw(find_renderer(), sketch("flowchart TD\n A[ -->")).reason is DiagramErrorReason.WRONG
