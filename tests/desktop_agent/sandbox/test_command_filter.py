"""What the filter for sockets answers, on each machine that it is known for."""

import errno

import pytest

from desktop_agent.sandbox.kernel_limits import ALLOW, ARCHITECTURES, REFUSE, X32, _tables, command_filter
from tests.desktop_agent.sandbox.filters import answer

UNKNOWN = REFUSE | errno.EAFNOSUPPORT
UNIX, INET, INET6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40
STREAM, DATAGRAM, RAW, SEQUENCE, CLOSED_ON_EXEC = 1, 2, 3, 5, 0o2000000
NUMBERS = {"x86_64": (41, 53, 0), "aarch64": (198, 199, 63)}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("internet", [True, False])
def test_sockets_by_family_and_pairs_by_kind(machine: str, *, internet: bool) -> None:
    made, code = command_filter(machine, internet=internet, in_namespaces=True), ARCHITECTURES[machine]
    socket, pair, read = NUMBERS[machine]
    for family in (INET, INET6, NETLINK):
        assert answer(made, code, socket, family, DATAGRAM) == (ALLOW if internet else UNKNOWN)
    for family in (UNIX, PACKET, VSOCK, 0, INET + 2**32 - 1):
        assert answer(made, code, socket, family, STREAM) == UNKNOWN
    for kind in (STREAM, SEQUENCE):
        assert answer(made, code, pair, UNIX, kind) == ALLOW
        assert answer(made, code, pair, UNIX, kind | CLOSED_ON_EXEC) == ALLOW
    for kind in (DATAGRAM, RAW, DATAGRAM | CLOSED_ON_EXEC, 0, 4, 6, 15):
        assert answer(made, code, pair, UNIX, kind) == UNKNOWN
    assert answer(made, code, read, UNIX, DATAGRAM) == ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_ways_around_it_are_closed(machine: str) -> None:
    made, code = command_filter(machine, internet=True, in_namespaces=True), ARCHITECTURES[machine]
    other = ARCHITECTURES["aarch64" if machine == "x86_64" else "x86_64"]
    assert answer(made, other, NUMBERS[machine][2]) == REFUSE | errno.EACCES
    assert answer(made, code, 425) == REFUSE | errno.ENOSYS
    assert answer(made, code, X32 | 41, UNIX, STREAM) == REFUSE | errno.ENOSYS


def test_it_is_not_known_for_every_machine() -> None:
    with pytest.raises(OSError, match="riscv64"):
        command_filter("riscv64", internet=True, in_namespaces=True)


# mount, keyctl, clone3, add_key, setns, open_by_handle_at, bpf; then shmget, mq_open, setxattr.
REFUSED = {
    "x86_64": {165: "EPERM", 250: "ENOSYS", 435: "ENOSYS", 248: "ENOSYS", 308: "EPERM", 304: "EPERM", 321: "EPERM"},
    "aarch64": {40: "EPERM", 219: "ENOSYS", 435: "ENOSYS", 217: "ENOSYS", 268: "EPERM", 265: "EPERM", 280: "EPERM"},
}
SHARED = {
    "x86_64": {29: "ENOSYS", 240: "ENOSYS", 188: "EOPNOTSUPP"},
    "aarch64": {194: "ENOSYS", 180: "ENOSYS", 5: "EOPNOTSUPP"},
}
CALLS = {"x86_64": (56, 272, 16, 302, 141, 101), "aarch64": (220, 97, 29, 261, 140, 117)}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("in_namespaces", [True, False])
def test_calls_past_files_are_refused(machine: str, *, in_namespaces: bool) -> None:
    made, code = command_filter(machine, internet=False, in_namespaces=in_namespaces), ARCHITECTURES[machine]
    for call, error in REFUSED[machine].items():
        assert answer(made, code, call) == REFUSE | getattr(errno, error)
    for call, error in SHARED[machine].items():
        assert answer(made, code, call) == (ALLOW if in_namespaces else REFUSE | getattr(errno, error))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_are_refused_by_what_they_ask_for(machine: str) -> None:
    made, code = command_filter(machine, internet=False, in_namespaces=False), ARCHITECTURES[machine]
    clone, unshare, ioctl, prlimit, priority, ptrace = CALLS[machine]
    refused = REFUSE | errno.EPERM
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(made, code, clone, flag | 17) == answer(made, code, unshare, flag) == refused
    # As a thread is made, and as a process is; a table of files of its own.
    for call, flags in ((clone, 0x3D0F00), (clone, 0x1200011), (unshare, 0x400)):
        assert answer(made, code, call, flags) == ALLOW
    for asked, expected in ((0x5412, refused), (0x541C, refused), (2**32 + 0x5412, refused), (0x5401, ALLOW)):
        assert answer(made, code, ioctl, 0, asked) == expected
    assert (answer(made, code, prlimit, 0), answer(made, code, prlimit, 1)) == (ALLOW, refused)
    for which, who, expected in ((0, 0, ALLOW), (1, 0, ALLOW), (0, 7, refused), (2, 0, refused)):
        assert answer(made, code, priority, which, who) == expected
    # Debuggers and the sanitizers of compilers trace their own processes; others are out of reach anyway.
    assert answer(made, code, ptrace) == ALLOW


def test_every_call_of_the_table_is_of_both_machines() -> None:
    for tables in _tables().values():
        for calls in tables.values():
            assert all(len(numbers) == 2 for numbers in calls.values())
    numbers = [one for tables in _tables().values() for calls in tables.values() for one, _ in calls.values()]
    assert len(numbers) == len(set(numbers))
