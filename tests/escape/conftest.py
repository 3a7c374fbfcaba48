"""How an attack is tried: judged by function calls on a push, through a whole session in the long form.

An attack of each kind is marked `end_to_end` and goes through a session on a push too; others call `Trial` themselves.
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
    """Let every command be asked about, as where commands cannot be confined: what a rule allows is what is judged."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(backends, "_is_ordinary_user", lambda: False)
        # What another test found out in this process is kept.
        backends.available_sandbox.cache_clear()
        yield
    backends.available_sandbox.cache_clear()
