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


def children():
    found = []
    for each in psutil.Process().children(recursive=True):
        # One that ends meanwhile has no command any more.
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [each] if "--child" in each.cmdline() else []
    return found


def test_it_is_drawn_at_the_wanted_scale_without_what_lies_elsewhere(python):
    drawn = DiagramRenderer(python).draw(sketch("flowchart", 2.0))
    assert isinstance(drawn, bytes), drawn
    assert drawn[16:24] == (600).to_bytes(4, "big") + (400).to_bytes(4, "big")
    assert not children()


def test_a_huge_one_is_drawn_smaller(python):
    drawn = DiagramRenderer(python).draw(sketch("flowchart", 500.0))
    width, height = (int.from_bytes(drawn[at : at + 4], "big") for at in (16, 20))
    assert width * height <= 16_100_000


def test_what_is_wrong_is_said(python):
    found = DiagramRenderer(python).draw(sketch("wrong"))
    assert found.reason is DiagramErrorReason.WRONG
    assert "Parse error on line 2" in found.message


@pytest.mark.parametrize("source", ["program", "file /tmp/never-written-by-a-diagram"])
def test_it_reaches_nothing(python, source):
    assert DiagramRenderer(python).draw(sketch(source)).reason is DiagramErrorReason.WRONG


@pytest.mark.parametrize(
    "deed",
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
def test_it_changes_no_file(python, tmp_path, deed):
    old, new, empty = tmp_path / "old", tmp_path / "new", tmp_path / "empty"
    old.write_text("kept")
    empty.mkdir()
    before = old.stat()
    found = DiagramRenderer(python).draw(sketch("do " + deed.format(old=str(old), new=str(new), empty=str(empty))))
    assert found.reason is DiagramErrorReason.WRONG
    assert found.message != "it was done"
    assert sorted(tmp_path.iterdir()) == [empty, old]
    assert (old.read_text(), old.stat().st_mtime, old.stat().st_mode) == ("kept", before.st_mtime, before.st_mode)


def test_it_may_read(python):
    assert DiagramRenderer(python).draw(sketch("do os.close(os.open('/', os.O_RDONLY))")).message == "it was done"


def test_it_reaches_no_network(python):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        found = DiagramRenderer(python).draw(sketch(f"socket {server.getsockname()[1]}"))
        assert found.reason is DiagramErrorReason.WRONG
        with pytest.raises(BlockingIOError):
            server.accept()


def test_it_knows_nothing_of_the_environment(python, monkeypatch):
    monkeypatch.setenv("STAND_IN_SECRET", "sk-secret")
    assert DiagramRenderer(python).draw(sketch("secret")).message == "nothing of yours"


@pytest.mark.parametrize("source", ["die", "flood", "memory"])
def test_nonsense_is_no_diagram(python, source):
    assert DiagramRenderer(python).draw(sketch(source)).reason is DiagramErrorReason.BROKE


def test_it_ends_in_time(python):
    assert DiagramRenderer(python, timeout=0.5).draw(sketch("hang")).reason is DiagramErrorReason.TOO_SLOW
    assert not children()


@pytest.mark.parametrize("end", ["stop", "close"])
def test_it_can_be_ended(python, end):
    one, wanted, found = DiagramRenderer(python), sketch("hang"), []
    thread = threading.Thread(target=lambda: found.append(one.draw(wanted)))
    thread.start()
    while not children():
        pass
    one.close() if end == "close" else one.stop(wanted)
    thread.join(10)
    assert [each.reason for each in found] == [DiagramErrorReason.STOPPED]
    assert not children()
    if end == "close":
        assert one.draw(sketch("flowchart")).reason is DiagramErrorReason.STOPPED
    else:
        assert isinstance(one.draw(sketch("flowchart")), bytes)


def test_what_was_stopped_before_its_turn_is_not_begun(python):
    one, wanted = DiagramRenderer(python), sketch("hang")
    one.stop(wanted)
    assert one.draw(wanted).reason is DiagramErrorReason.STOPPED
    one.stop(sketch("flowchart"))
    one.resume(sketch("flowchart"))
    assert isinstance(one.draw(sketch("flowchart")), bytes)


def test_without_it_nothing_is_started(monkeypatch):
    monkeypatch.setattr(diagram_renderer, "find_spec", lambda name: None)
    assert find_renderer().draw(sketch("flowchart")) == DiagramError(DiagramErrorReason.NOT_INSTALLED)
    monkeypatch.setattr(diagram_renderer, "find_spec", lambda name: object())
    assert find_renderer().python == sys.executable
    assert DiagramRenderer("/no/such/python").draw(sketch("x")).reason is DiagramErrorReason.BROKE
    assert (
        DiagramRenderer("/no/such/python").draw(sketch("x" * (MAX_SOURCE_LENGTH + 1))).reason
        is DiagramErrorReason.TOO_LONG
    )


@pytest.mark.exhaustive("test_it_is_drawn_at_the_wanted_scale_without_what_lies_elsewhere, with a stand-in")
@pytest.mark.skipif(find_renderer().python is None, reason="the extra diagrams is not installed")
def test_the_real_one():
    for source in ("flowchart TD\n A[Start] --> B{ok?}", "sequenceDiagram\n A->>B: hi", "classDiagram\n A <|-- B"):
        for theme in (LIGHT, DARK):
            assert isinstance(find_renderer().draw(make_request(source, theme, 1.0)), bytes)
    assert find_renderer().draw(sketch("flowchart TD\n A[ -->")).reason is DiagramErrorReason.WRONG
