"""A diagram is drawn by a process that can do nothing else, and that ends when it must."""

import contextlib
import socket
import sys
import threading

import psutil
import pytest

from tests.ui.transcript.diagram.stand_in import make
from ui.look.theme import DARK, LIGHT
from ui.transcript.blocks.diagram import renderer
from ui.transcript.blocks.diagram.diagrams import sketch_of
from ui.transcript.blocks.diagram.renderer import LONGEST, NoDiagram, Reason, Renderer, Sketch, installed


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return make(tmp_path_factory.mktemp("interpreter"))


def sketch(source, scale=1.0):
    return Sketch(source, (("background", "#fff"),), scale)


def children():
    found = []
    for each in psutil.Process().children(recursive=True):
        # One that ends meanwhile has no command any more.
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [each] if "--child" in each.cmdline() else []
    return found


def test_it_is_drawn_at_the_wanted_scale_without_what_lies_elsewhere(python):
    drawn = Renderer(python).draw(sketch("flowchart", 2.0))
    assert isinstance(drawn, bytes), drawn
    assert drawn[16:24] == (600).to_bytes(4, "big") + (400).to_bytes(4, "big")
    assert not children()


def test_a_huge_one_is_drawn_smaller(python):
    drawn = Renderer(python).draw(sketch("flowchart", 500.0))
    width, height = (int.from_bytes(drawn[at : at + 4], "big") for at in (16, 20))
    assert width * height <= 16_100_000


def test_what_is_wrong_is_said(python):
    found = Renderer(python).draw(sketch("wrong"))
    assert found.reason is Reason.WRONG
    assert "Parse error on line 2" in found.words


@pytest.mark.parametrize("source", ["program", "file /tmp/never-written-by-a-diagram"])
def test_it_reaches_nothing(python, source):
    assert Renderer(python).draw(sketch(source)).reason is Reason.WRONG


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
    found = Renderer(python).draw(sketch("do " + deed.format(old=str(old), new=str(new), empty=str(empty))))
    assert found.reason is Reason.WRONG
    assert found.words != "it was done"
    assert sorted(tmp_path.iterdir()) == [empty, old]
    assert (old.read_text(), old.stat().st_mtime, old.stat().st_mode) == ("kept", before.st_mtime, before.st_mode)


def test_it_may_read(python):
    assert Renderer(python).draw(sketch("do os.close(os.open('/', os.O_RDONLY))")).words == "it was done"


def test_it_reaches_no_network(python):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        found = Renderer(python).draw(sketch(f"socket {server.getsockname()[1]}"))
        assert found.reason is Reason.WRONG
        with pytest.raises(BlockingIOError):
            server.accept()


def test_it_knows_nothing_of_the_environment(python, monkeypatch):
    monkeypatch.setenv("STAND_IN_SECRET", "sk-secret")
    assert Renderer(python).draw(sketch("secret")).words == "nothing of yours"


@pytest.mark.parametrize("source", ["die", "flood", "memory"])
def test_nonsense_is_no_diagram(python, source):
    assert Renderer(python).draw(sketch(source)).reason is Reason.BROKE


def test_it_ends_in_time(python):
    assert Renderer(python, patience=0.5).draw(sketch("hang")).reason is Reason.TOO_SLOW
    assert not children()


@pytest.mark.parametrize("end", ["stop", "close"])
def test_it_can_be_ended(python, end):
    one, wanted, found = Renderer(python), sketch("hang"), []
    thread = threading.Thread(target=lambda: found.append(one.draw(wanted)))
    thread.start()
    while not children():
        pass
    one.close() if end == "close" else one.stop(wanted)
    thread.join(10)
    assert [each.reason for each in found] == [Reason.STOPPED]
    assert not children()
    if end == "close":
        assert one.draw(sketch("flowchart")).reason is Reason.STOPPED
    else:
        assert isinstance(one.draw(sketch("flowchart")), bytes)


def test_what_was_stopped_before_its_turn_is_not_begun(python):
    one, wanted = Renderer(python), sketch("hang")
    one.stop(wanted)
    assert one.draw(wanted).reason is Reason.STOPPED
    one.stop(sketch("flowchart"))
    one.wanted(sketch("flowchart"))
    assert isinstance(one.draw(sketch("flowchart")), bytes)


def test_without_it_nothing_is_started(monkeypatch):
    monkeypatch.setattr(renderer, "find_spec", lambda name: None)
    assert installed().draw(sketch("flowchart")) == NoDiagram(Reason.NOT_INSTALLED)
    monkeypatch.setattr(renderer, "find_spec", lambda name: object())
    assert installed().python == sys.executable
    assert Renderer("/no/such/python").draw(sketch("x")).reason is Reason.BROKE
    assert Renderer("/no/such/python").draw(sketch("x" * (LONGEST + 1))).reason is Reason.TOO_LONG


@pytest.mark.skipif(installed().python is None, reason="the extra diagrams is not installed")
def test_the_real_one():
    for source in ("flowchart TD\n A[Start] --> B{ok?}", "sequenceDiagram\n A->>B: hi", "classDiagram\n A <|-- B"):
        for theme in (LIGHT, DARK):
            assert isinstance(installed().draw(sketch_of(source, theme, 1.0)), bytes)
    assert installed().draw(sketch("flowchart TD\n A[ -->")).reason is Reason.WRONG
