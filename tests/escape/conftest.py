"""Plays attacks: on a push by calls of the permission policy, in the long form through a whole session.

One attack of each kind is marked `end_to_end` and is played through a session on a push too; some tests use `Trial`.
"""

from collections.abc import Iterator

import pytest

from desktop_agent.sandbox import backends
from tests.escape.attack import Trial
from tests.escape.judged import Judged
from tests.frame.selection import OPTION


@pytest.fixture
def attempt(request: pytest.FixtureRequest) -> type[Trial] | type[Judged]:
    is_whole = request.config.getoption(OPTION) or request.node.get_closest_marker("end_to_end")
    return Trial if is_whole else Judged


@pytest.fixture(autouse=True, scope="module")
def nothing_is_enforced() -> Iterator[None]:
    """Ask about every command, as on machines that cannot confine commands, so that only the rules decide."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(backends, "_is_ordinary_user", lambda: False)
        # The sandbox that another test found in this process is cached.
        backends.available_sandbox.cache_clear()
        yield
    backends.available_sandbox.cache_clear()
