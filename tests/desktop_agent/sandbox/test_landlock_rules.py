"""What each version of Landlock is asked for."""

import ctypes
import sys

import pytest

from desktop_agent.sandbox.kernel_limits import IOCTL, TRUNCATE, LandlockRules, all_rights, check_syscall


@pytest.mark.parametrize(("version", "bits"), [(1, 13), (2, 14), (3, 15), (4, 15), (5, 16), (6, 16), (9, 16)])
def test_rights_that_a_version_knows(version: int, bits: int):
    assert all_rights(version) == 2**bits - 1
    assert bool(all_rights(version) & TRUNCATE) == (version >= 3)
    assert bool(all_rights(version) & IOCTL) == (version >= 5)


class _Kernel:
    """Takes down what it is asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def syscall(self, number: int, ruleset: object, size: int, _flags: int) -> int:
        assert number == 444
        self.asked.append(bytes(ruleset._obj)[:size])  # type: ignore[attr-defined]  what byref() holds
        return 3


@pytest.mark.parametrize(
    ("version", "network", "expected"),
    [(3, False, [0x7FFF]), (4, False, [0x7FFF, 3]), (5, True, [0xFFFF, 0]), (6, False, [0xFFFF, 3, 3])],
)
def test_no_field_that_a_version_does_not_know(version: int, network: bool, expected: list[int]):
    kernel = _Kernel()
    LandlockRules(kernel, version, network=network)  # type: ignore[arg-type]
    assert kernel.asked == [b"".join(each.to_bytes(8, sys.byteorder) for each in expected)]


def test_a_refusal_is_raised():
    ctypes.set_errno(13)
    with pytest.raises(PermissionError):
        check_syscall(-1)
    assert check_syscall(3) == 3
