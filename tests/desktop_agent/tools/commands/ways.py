"""The ways to confine a command that this machine has, for tests that try each of them for real."""

import sys
from functools import lru_cache

import pytest

from desktop_agent.tools.commands import bubblewrap, landlock
from desktop_agent.tools.commands.confinement import Confinement, bubblewrapped, landlocked, works


@lru_cache
def way(name: str) -> Confinement:
    """Skips the test where it does not work."""
    if name == "Landlock":
        if not landlock.is_known() or not works(landlocked()):
            pytest.skip("this kernel has no Landlock of version 4 or later")
        return landlocked()
    program = bubblewrap.installed() if sys.platform == "linux" else None
    if program is None:
        pytest.skip("bubblewrap is not installed")
    if not works(bubblewrapped(program)):
        pytest.skip("bubblewrap may not make namespaces here")
    return bubblewrapped(program)
