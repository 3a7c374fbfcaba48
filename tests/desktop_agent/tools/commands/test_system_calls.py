"""What the filter for sockets answers, on each machine that it is known for."""

import errno

import pytest

from desktop_agent.tools.commands.system_calls import steps
from desktop_agent.tools.confining.call_filter import ALLOW, ARCHITECTURES, REFUSE, X32
from tests.desktop_agent.tools.confining.filters import answer

UNKNOWN = REFUSE | errno.EAFNOSUPPORT
UNIX, INET, INET6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40
STREAM, DATAGRAM, RAW, SEQUENCE, CLOSED_ON_EXEC = 1, 2, 3, 5, 0o2000000
NUMBERS = {"x86_64": (41, 53, 0), "aarch64": (198, 199, 63)}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("internet", [True, False])
def test_sockets_by_family_and_pairs_by_kind(machine: str, *, internet: bool) -> None:
    made, code = steps(machine, internet=internet, in_namespaces=True), ARCHITECTURES[machine]
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
    made, code = steps(machine, internet=True, in_namespaces=True), ARCHITECTURES[machine]
    other = ARCHITECTURES["aarch64" if machine == "x86_64" else "x86_64"]
    assert answer(made, other, NUMBERS[machine][2]) == REFUSE | errno.EACCES
    assert answer(made, code, 425) == REFUSE | errno.ENOSYS
    assert answer(made, code, X32 | 41, UNIX, STREAM) == REFUSE | errno.ENOSYS


def test_it_is_not_known_for_every_machine() -> None:
    with pytest.raises(OSError, match="riscv64"):
        steps("riscv64", internet=True, in_namespaces=True)
