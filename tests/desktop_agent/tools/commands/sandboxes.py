"""The sandboxes that work on this machine, for tests that try each of them for real."""

import sys
from functools import lru_cache

import pytest

from desktop_agent.sandbox import backends
from desktop_agent.sandbox.backends import Sandbox, bubblewrap_sandbox, is_working, landlock_sandbox


@lru_cache
def working_sandbox(name: str) -> Sandbox:
    """Return the sandbox of this name; skip the test where it does not work."""
    if name == "Landlock":
        if not backends.is_landlock_supported() or not is_working(landlock_sandbox()):
            pytest.skip("this kernel has no Landlock of version 4 or later")
        return landlock_sandbox()
    program = backends.find_bubblewrap() if sys.platform == "linux" else None
    if program is None:
        pytest.skip("bubblewrap is not installed")
    if not is_working(bubblewrap_sandbox(program)):
        pytest.skip("bubblewrap may not make namespaces here")
    return bubblewrap_sandbox(program)
