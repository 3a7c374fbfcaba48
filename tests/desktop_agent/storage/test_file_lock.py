"""Locks between processes, over two paths of one folder, and where the file system has none."""

import asyncio
import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from desktop_agent.storage.file_lock import FileLock, Holder, lock_path
from desktop_agent.storage.locks.conversation_locks import ConversationLocks
from desktop_agent.types.errors import ConversationInUse, LocksRefused, StorageFailed
from tests.frame.disks import remount

ROOT = Path(__file__).parents[3]
HOLDS = """
import sys
from pathlib import Path
from desktop_agent.storage.file_lock import FileLock, Holder
print(FileLock(Path(sys.argv[1])).acquire(Holder.this_process(sys.argv[2])), flush=True)
sys.stdin.read()
"""


def start_holder(path: Path, program: str = "ask", *before: str) -> "subprocess.Popen[bytes]":
    """Start a process that takes the lock, or is refused, and runs until its input ends."""
    command = [*before, sys.executable, "-c", HOLDS, str(path), program]
    child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.report = child.stdout.readline()  # type: ignore[attr-defined]
    return child


def end_holder(child: "subprocess.Popen[bytes]", *, kill: bool = False) -> None:
    if kill:
        child.kill()
    child.communicate(timeout=60)


def test_one_holds_it_and_the_others_read_who(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    child = start_holder(path)
    assert child.report == b"True\n"
    lock = FileLock(path)
    assert not lock.acquire(Holder.this_process("window"))
    holder = lock.holder()
    assert holder is not None
    assert (holder.program, holder.pid, holder.host) == ("ask", child.pid, os.uname().nodename)
    end_holder(child, kill=True)
    assert lock.acquire(Holder.this_process("window"))
    assert lock.acquire()
    assert lock.holder() is not None
    assert lock.holder().pid == os.getpid()
    lock.release()
    lock.release()
    assert lock.holder() is None


def test_a_link_to_the_folder_is_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    child = start_holder(tmp_path / "link" / "a.lock")
    assert not FileLock(tmp_path / "data" / "a.lock").acquire()
    end_holder(child)


def test_a_bind_mount_of_the_folder_is_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "mounted").mkdir()
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    script = f'mount --bind "{tmp_path}/data" "{tmp_path}/mounted" && exec "$0" "$@"'
    if subprocess.run([*mount, script, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount")
    child = start_holder(tmp_path / "mounted" / "a.lock", "ask", *mount, script)
    assert child.report == b"True\n"
    assert not FileLock(tmp_path / "data" / "a.lock").acquire()
    end_holder(child)


def test_programs_that_are_started_do_not_inherit_it(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "a.lock")
    assert lock.acquire()
    program = [sys.executable, "-c", "import sys; print('started', flush=True); sys.stdin.read()"]
    pipe = subprocess.PIPE
    outlives = subprocess.Popen(program, stdin=pipe, stdout=pipe, close_fds=False)
    assert outlives.stdout is not None
    assert outlives.stdout.readline() == b"started\n"
    os.close(lock._handle)  # as when this process dies
    lock._handle = None
    other = FileLock(tmp_path / "a.lock")
    assert other.acquire()
    other.release()
    outlives.communicate(timeout=60)


def test_what_a_fork_has_open_holds_nothing_after_the_release(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "a.lock")
    assert lock.acquire()
    duplicate = os.dup(lock._handle)
    lock.release()
    other = FileLock(tmp_path / "a.lock")
    assert other.acquire()
    other.release()
    os.close(duplicate)


FORKS = """
import os, signal, sys
from pathlib import Path
from desktop_agent.storage.file_lock import FileLock
path = Path(sys.argv[1])
lock = FileLock(path)
assert lock.acquire()
child = os.fork()
if child == 0:
    lock.release()
    lock = None
    sys.exit(0 if not FileLock(path).acquire() else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
read_end, write_end = os.pipe()
if os.fork() == 0:
    os.write(write_end, b"x")
    sys.stdin.read()
    os._exit(0)
os.read(read_end, 1)
print(FileLock(path).acquire(), flush=True)
signal.pause()
"""


def test_a_forked_child_neither_ends_the_lock_of_its_parent_nor_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    command = [sys.executable, "-c", FORKS, str(path)]
    parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    try:
        # First the child releases the lock and ends; then it lives on.
        assert [parent.stdout.readline(), parent.stdout.readline()] == [b"0\n", b"False\n"]
        assert not FileLock(path).acquire()
        parent.kill()
        parent.wait(60)
        mine = FileLock(path)
        assert mine.acquire()
        mine.release()
    finally:
        end_holder(parent, kill=True)


def test_a_file_that_was_removed_between_opening_and_locking_is_not_the_lock(tmp_path: Path, monkeypatch) -> None:
    path, real = tmp_path / "a.lock", fcntl.flock
    removed: list[int] = []

    def flock(handle: int, how: int) -> None:
        if not removed:
            removed.append(handle)
            path.unlink()
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    lock = FileLock(path)
    assert lock.acquire()
    assert os.path.samestat(os.fstat(lock._handle), path.stat())
    assert not FileLock(path).acquire()
    lock.release()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
async def test_a_file_system_without_locks_is_said_and_nobody_holds_anything(
    tmp_path: Path, monkeypatch, code: int
) -> None:
    def flock(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(LocksRefused, match="has no locks, so two programs could write") as refused:
        await ConversationLocks(tmp_path, "ask").check()
    assert "data folder on a disk of this computer" in str(refused.value.remedy)
    lock = FileLock(tmp_path / "a.lock")
    with pytest.raises(LocksRefused):
        lock.acquire()
    assert not lock.is_held


def test_where_no_file_can_be_made_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match="is a file, where a folder is needed"):
        FileLock(tmp_path / "file" / "a.lock").acquire()


def refusal(lock: FileLock) -> str:
    with pytest.raises(StorageFailed) as refused:
        lock.acquire()
    return str(refused.value.sentence)


def test_on_a_read_only_disk_the_folder_is_named_and_not_its_lock(small_disk: Path) -> None:
    data = small_disk / "data"
    path = lock_path(data, "a")
    path.parent.mkdir(parents=True)
    remount(small_disk, "ro")
    assert refusal(FileLock(path, data)) == f"“{data}” cannot be written to."
    assert refusal(FileLock(path)) == f"“{path.parent}” cannot be written to."


def test_what_refuses_a_lock_is_named(tmp_path: Path, monkeypatch) -> None:
    path = lock_path(tmp_path, "a")
    path.parent.mkdir()
    code = errno.EACCES

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    # Such as a lock file that root has created.
    assert refusal(FileLock(path, tmp_path)) == f"“{path}” cannot be written to."
    monkeypatch.setattr(os, "access", lambda path_asked, _: path_asked != path.parent)
    assert refusal(FileLock(path, tmp_path)) == f"“{path.parent}” cannot be written to."
    code = errno.ENOSPC
    assert refusal(FileLock(path, tmp_path)) == f"There is no room left on the disk of “{tmp_path}”."


async def test_who_holds_a_conversation_is_named_with_what_to_do(tmp_path: Path) -> None:
    locks = ConversationLocks(tmp_path, "window")
    await locks.check()
    mine, strange = locks.lock("0" * 32), locks.lock("../\ud800")
    await asyncio.gather(mine.acquire(), strange.acquire())
    await mine.acquire()
    assert len(list((tmp_path / "locks").iterdir())) == 3
    other = ConversationLocks(tmp_path, "ask").lock("0" * 32)
    with pytest.raises(ConversationInUse) as refused:
        await other.acquire()
    assert f"worked on by the window (process {os.getpid()}) since 20" in str(refused.value)
    assert "close the window" in str(refused.value.remedy)
    await locks.close()
    await other.acquire()
    with pytest.raises(ConversationInUse, match="“desktop-agent ask”"):
        await mine.acquire()
    await other.release()
    assert not strange._file.is_held


async def test_a_holder_without_a_name_is_waited_for_a_moment(tmp_path: Path) -> None:
    locks = ConversationLocks(tmp_path, "ask")
    await locks.check()
    lock = locks.lock("0" * 32)
    nameless = FileLock(lock._file._path)
    assert nameless.acquire()
    with pytest.raises(ConversationInUse, match="by another process"):
        await lock.acquire()
    waiting = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)
    nameless.release()
    await waiting
    await lock.release()


async def test_a_dead_holder_is_not_named_and_a_check_is_waited_for(tmp_path: Path) -> None:
    locks = ConversationLocks(tmp_path, "ask")
    await locks.check()
    lock = locks.lock("0" * 32)
    child = start_holder(lock._file._path)
    end_holder(child, kill=True)
    assert lock._file.holder() is not None
    looking = FileLock(lock._file._path)
    assert looking.acquire()
    with pytest.raises(ConversationInUse, match="by another process"):
        await lock.acquire()
    waiting = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)
    os.close(looking._handle)  # without a word to the file, as a look that is killed
    looking._handle = None
    await waiting
    await lock.release()


async def test_a_holder_on_another_machine_is_named_with_it(tmp_path: Path) -> None:
    locks = ConversationLocks(tmp_path, "ask")
    await locks.check()
    lock = locks.lock("0" * 32)
    far = FileLock(lock._file._path)
    assert far.acquire(Holder("library", 7, "elsewhere", 0.0))
    with pytest.raises(ConversationInUse, match=r"another program \(process 7\) on “elsewhere” since 19"):
        await lock.acquire()
    far.release()


@pytest.mark.parametrize("turns", range(1, 4))
async def test_a_cancelled_acquire_holds_nothing(tmp_path: Path, turns: int) -> None:
    locks = ConversationLocks(tmp_path, "window")
    taking = asyncio.create_task(locks.acquire("one"))
    for _ in range(turns):
        await asyncio.sleep(0)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    await (await ConversationLocks(tmp_path, "window").acquire("one")).release()


async def test_a_check_does_not_hold_the_lock_while_the_event_loop_is_busy(tmp_path: Path) -> None:
    locks = ConversationLocks(tmp_path, "window")
    check = asyncio.ensure_future(locks.lock("one").is_free())
    for _ in range(3):
        await asyncio.sleep(0)
    time.sleep(0.2)  # noqa: ASYNC251  the event loop is busy
    other = locks.lock("one")._file
    assert other.acquire()
    other.release()
    assert await check


async def test_many_locks_are_checked_in_the_time_of_one(tmp_path: Path) -> None:
    locks, others = ConversationLocks(tmp_path, "window"), ConversationLocks(tmp_path, "ask")
    locked = [others.lock(str(number))._file for number in range(100)]
    assert all(lock.acquire() for lock in locked)
    async with asyncio.timeout(10):
        assert not any(await asyncio.gather(*(locks.lock(str(number)).is_free() for number in range(100))))
    for lock in locked:
        lock.release()
    assert all(await asyncio.gather(*(locks.lock(str(number)).is_free() for number in range(100))))


async def test_a_cancelled_release_holds_nothing(tmp_path: Path) -> None:
    locks, loop = ConversationLocks(tmp_path, "library"), asyncio.get_running_loop()
    is_busy, may_end = asyncio.Event(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))

    async def hold() -> None:
        async with locks.hold("one"):
            loop.run_in_executor(None, may_end.wait)
            is_busy.set()

    task = asyncio.create_task(hold())
    await is_busy.wait()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await locks.lock("one").is_free()
