"""The filter of a process that only reckons, on machines that the tests do not run on as well."""

import errno

import pytest

from desktop_agent.sandbox.kernel_limits import ALLOW, ARCHITECTURES, REFUSE, X32, _worker_filter
from tests.desktop_agent.sandbox.filters import answer

REFUSED = REFUSE | errno.EACCES
# arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h
READ_WRITE_MMAP_EXIT = {"x86_64": (0, 1, 9, 231), "aarch64": (63, 64, 222, 94)}
FORBIDDEN = {
    "x86_64": {
        "open": 2,
        "stat": 4,
        "ioctl": 16,
        "dup": 32,
        "socket": 41,
        "connect": 42,
        "clone": 56,
        "execve": 59,
        "kill": 62,
        "ptrace": 101,
        "prctl": 157,
        "mount": 165,
        "tgkill": 234,
        "openat": 257,
        "newfstatat": 262,
        "process_vm_readv": 310,
        "bpf": 321,
        "execveat": 322,
    },
    "aarch64": {
        "dup": 23,
        "ioctl": 29,
        "mount": 40,
        "openat": 56,
        "newfstatat": 79,
        "ptrace": 117,
        "kill": 129,
        "tgkill": 131,
        "prctl": 167,
        "socket": 198,
        "connect": 203,
        "clone": 220,
        "execve": 221,
        "process_vm_readv": 270,
        "bpf": 280,
        "execveat": 281,
    },
}
EVERYWHERE = {"io_uring_setup": 425, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "yet to come": 600}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_what_it_lets_through(machine: str):
    steps, architecture = _worker_filter(machine), ARCHITECTURES[machine]
    assert {answer(steps, architecture, call) for call in READ_WRITE_MMAP_EXIT[machine]} == {ALLOW}
    told = {name: answer(steps, architecture, call) for name, call in (FORBIDDEN[machine] | EVERYWHERE).items()}
    assert told == dict.fromkeys(told, REFUSED)
    assert sum(answer(steps, architecture, call) == ALLOW for call in range(1000)) == 29


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_numbers_that_mean_other_calls_are_refused(machine: str):
    steps, architecture = _worker_filter(machine), ARCHITECTURES[machine]
    others = {*ARCHITECTURES.values(), 0x40000003} - {architecture}
    for call in range(1000):
        assert {answer(steps, other, call) for other in others} == {REFUSED}
        assert answer(steps, architecture, X32 + call) == REFUSED


# clone; fork, vfork, execve, execveat, ptrace, process_vm_writev, kill, pidfd_send_signal; openat, getdents64, tgkill.
CLONE = {"x86_64": 56, "aarch64": 220}
PROCESSES = {"x86_64": (57, 58, 59, 322, 101, 311, 62, 424), "aarch64": (221, 281, 117, 271, 129, 424)}
ALLOWED = {"x86_64": (257, 217, 234), "aarch64": (56, 61, 131)}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_who_reads_files_starts_threads_and_no_process(machine: str):
    steps, architecture = _worker_filter(machine, reads_files=True), ARCHITECTURES[machine]
    refused = REFUSE | errno.EPERM
    assert {answer(steps, architecture, call) for call in PROCESSES[machine]} == {refused}
    assert {answer(steps, architecture, call) for call in ALLOWED[machine]} == {ALLOW}
    # As a thread is made, and as a process is; a thread in a namespace of its own; clone3, whose flags no filter sees.
    for flags, expected in ((0x3D0F00, ALLOW), (0x1200011, refused), (17, refused), (0x3D0F00 | 0x40000000, refused)):
        assert answer(steps, architecture, CLONE[machine], flags) == expected
    assert answer(steps, architecture, EVERYWHERE["clone3"]) == REFUSE | errno.ENOSYS


def test_a_machine_of_which_no_numbers_are_known():
    with pytest.raises(OSError, match="riscv64"):
        _worker_filter("riscv64")


def test_an_interpreter_of_32_bits_on_a_machine_of_64(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.maxsize", 2**31 - 1)
    with pytest.raises(OSError, match="aarch64"):
        _worker_filter("aarch64")


def test_on_another_system_nothing_is_tried(monkeypatch: pytest.MonkeyPatch):
    from desktop_agent.sandbox import kernel_limits

    monkeypatch.setattr(kernel_limits.sys, "platform", "darwin")
    monkeypatch.setattr(kernel_limits.ctypes, "CDLL", lambda *_, **__: pytest.fail("asked for"))
    kernel_limits.confine_worker(reads_files=True)
    monkeypatch.setattr(kernel_limits.sys, "platform", "linux")
    with pytest.raises(pytest.fail.Exception, match="asked for"):
        kernel_limits.confine_worker(reads_files=False)
