"""A second start on the same folder raises the first window."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from desktop_agent.api.command_line import parse_window_arguments
from desktop_agent.storage.file_lock import FileLock, Holder, lock_path
from ui.bridge import single_instance
from ui.bridge.single_instance import SingleInstance, StartRequest

ROOT = Path(__file__).parents[3]
# A window that is not Qt's: it holds the lock, and can be reached by nobody.
SILENT = """
import sys
import tempfile
from pathlib import Path
from desktop_agent.api.command_line import parse_window_arguments
from desktop_agent.storage.file_lock import FileLock, Holder, lock_path
holder = Holder.this_process("window", "desktop-agent-gone")
print(FileLock(lock_path(Path(sys.argv[1]), "window")).acquire(holder), flush=True)
sys.stdin.read()
"""
# A start in a process of its own, which says whether the first window has taken what it was asked for.
LATER = """
import json, sys
from pathlib import Path
from ui.bridge.single_instance import SingleInstance, StartRequest
later = SingleInstance(Path(sys.argv[1]))
print(later.is_first(StartRequest(tuple(json.loads(sys.argv[2])))), later.is_raised)
"""


def start_later(folder, targets):
    return subprocess.Popen(
        [sys.executable, "-c", LATER, str(folder), json.dumps(targets)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def test_a_later_start_hands_over_what_it_was_asked_for(qtbot, tmp_path):
    first = SingleInstance(tmp_path)
    assert first.is_first()
    first.listen()
    # The name of a file need not be a text, and all of it may be long.
    targets = [os.fsdecode(b"/a\xff b"), "desktop-agent://new?prompt=" + "a" * 100_000]
    with qtbot.waitSignal(first.requested, timeout=60_000) as signal:
        later = start_later(tmp_path, targets)
    assert signal.args == [StartRequest(tuple(targets))]
    assert later.communicate(timeout=60)[0] == "False True\n"
    first.close()


def test_a_later_start_waits_until_the_first_one_listens(qtbot, tmp_path):
    first = SingleInstance(tmp_path)
    assert first.is_first()
    later = start_later(tmp_path, ["/a"])
    with qtbot.waitSignal(first.requested, timeout=60_000) as signal:
        first.listen()
    assert signal.args == [StartRequest(("/a",))]
    assert later.communicate(timeout=60)[0] == "False True\n"
    first.close()


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b'{"targets": [1, null]}', b'{"targets": 3}', b"[" * 100_000])
def test_what_is_no_request_raises_the_window_and_no_more(line):
    assert StartRequest.from_line(line) == StartRequest()


@pytest.mark.skipif(sys.platform == "win32", reason="there it is a pipe")
def test_one_who_says_nothing_or_too_much_is_let_go(qtbot, tmp_path):
    first = SingleInstance(tmp_path)
    assert first.is_first()
    first.listen()
    requests = []
    first.requested.connect(requests.append)
    holder = FileLock(lock_path(tmp_path, "window")).holder()
    assert holder is not None
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as loud:
        silent.connect(holder.address)
        silent.shutdown(socket.SHUT_WR)
        loud.connect(holder.address)
        loud.setblocking(False)

        def is_let_go():
            try:
                loud.send(b"a" * 65_536)
            except BlockingIOError:
                return False
            except OSError:
                return True
            return False

        qtbot.waitUntil(is_let_go, timeout=60_000)
        qtbot.waitUntil(lambda: not first._server.children()[1:], timeout=60_000)
    assert requests == []
    first.close()


def test_the_second_start_raises_the_first(qtbot, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    names = ("data", "link", "data/.", "elsewhere")
    first, by_link, again, elsewhere = (SingleInstance(tmp_path / name) for name in names)
    assert first.is_first()
    first.listen()
    assert lock_path(tmp_path / "data", "window").exists()
    with qtbot.waitSignal(first.requested):
        assert not by_link.is_first()
    assert by_link.is_raised
    assert f"already open (process {os.getpid()} since " in str(by_link.sentence)
    assert not again.is_first()
    assert elsewhere.is_first()
    first.close()
    assert again.is_first()
    for instance in (first, by_link, again, elsewhere):
        instance.close()


def test_where_the_folder_for_temporary_files_is_lies_nothing_that_counts(qtbot, tmp_path, monkeypatch):
    first, second = SingleInstance(tmp_path), SingleInstance(tmp_path)
    assert first.is_first()
    first.listen()
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "other"))
    with qtbot.waitSignal(first.requested):
        assert not second.is_first()
    for instance in (first, second):
        instance.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there it is a pipe, which is no file")
def test_only_the_same_user_reaches_the_window_and_nothing_is_left_of_its_socket(qtbot, tmp_path, monkeypatch):
    # The path of a socket has a hundred characters at most.
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setenv("TMPDIR", short)
        first = SingleInstance(tmp_path)
        assert first.is_first()
        first.listen()
        [socket] = Path(short).iterdir()
        assert socket.name.startswith("desktop-agent-")
        assert socket.stat().st_mode & 0o777 == 0o600
        first.close()
        assert list(Path(short).iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there it is a pipe, whose name may be as long")
def test_where_a_socket_cannot_be_it_is_the_first_window_all_the_same(qtbot, tmp_path, monkeypatch):
    long_folder = tmp_path / ("long" * 40)
    long_folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(long_folder))
    first, second = SingleInstance(tmp_path), SingleInstance(tmp_path)
    assert first.is_first()
    first.listen()
    assert not second.is_first()
    assert not second.is_raised
    for instance in (first, second):
        instance.close()


def test_a_window_that_is_not_painted_yet_comes_to_the_front_by_itself(qtbot, tmp_path):
    first, second = SingleInstance(tmp_path), SingleInstance(tmp_path)
    assert first.is_first()
    assert not second.is_first()
    assert second.is_raised
    for instance in (first, second):
        instance.close()


def test_one_that_does_not_answer_is_named_and_no_second_window_opens(qtbot, tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", SILENT, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"True\n"
    second = SingleInstance(tmp_path)
    assert not second.is_first()
    assert not second.is_raised
    assert f"(process {child.pid} since " in str(second.sentence)
    assert "does not answer" in str(second.sentence)
    child.kill()
    child.communicate(timeout=60)
    assert second.is_first()
    second.close()


def test_one_on_another_machine_is_named_with_it(qtbot, tmp_path):
    far = FileLock(lock_path(tmp_path, "window"))
    assert far.acquire(Holder("window", 7, "elsewhere", 0.0))
    second = SingleInstance(tmp_path)
    assert not second.is_first()
    assert "process 7 on “elsewhere” since 19" in str(second.sentence)
    far.release()
    second.close()


@pytest.mark.parametrize("code", [37, 95])
def test_where_nothing_can_be_locked_the_engine_says_so(qtbot, tmp_path, monkeypatch, code):
    import fcntl

    def flock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    first = SingleInstance(tmp_path)
    assert first.is_first()
    first.listen()
    first.close()


@pytest.mark.parametrize("address", ["\ud800", "a\0b", ""])
@pytest.mark.skipif(sys.platform == "win32", reason="names of sockets are paths elsewhere")
def test_what_is_no_address_is_reached_by_nobody_and_removed_without_an_error(address):
    assert not single_instance._send(address, b"{}\n", wait=False)
    single_instance._remove_socket(address)


def test_the_arguments_of_a_new_start_open_nothing_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    picture = tmp_path / "a.png"
    picture.touch()
    words = ("--data-dir", "data", "--base-url", "http://127.0.0.1:1/v1", "--model=-m", "--background")
    options = parse_window_arguments([*words, str(picture)])
    again = parse_window_arguments(options.restart_arguments)
    assert again == options._replace(data_dir=tmp_path / "data", targets=(), background=False)
    assert parse_window_arguments(["--demo", "--quick-ask"]).restart_arguments == ["--demo"]
    # As it was read at this start: a shell leaves this one as it is.
    at_home = parse_window_arguments(["--data-dir=~/mine"])
    assert at_home.restart_arguments == [f"--data-dir={Path.home() / 'mine'}"]


def test_a_program_that_is_gone_offers_no_new_start(tmp_path, monkeypatch, capsys):
    assert single_instance.can_restart()
    monkeypatch.setattr(single_instance, "program_command", lambda: [str(tmp_path / "gone")])
    assert not single_instance.can_restart()
    monkeypatch.setenv("PYINSTALLER_RESET_ENVIRONMENT", "0")
    single_instance.restart_program([])
    assert capsys.readouterr().err == "Desktop Agent could not be started again: No such file or directory\n"
