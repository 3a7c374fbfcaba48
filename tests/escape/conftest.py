"""How an attack is tried: judged by function calls on a push, through a whole session in the long form.

An attack of each kind is marked `end_to_end` and goes through a session on a push too; others call `Trial` themselves.
"""

import pytest

from desktop_agent.sandbox import backends
from tests.escape.attack import Trial
from tests.escape.judged import Judged
from tests.frame.selection import OPTION


@pytest.fixture
def attempt(request: pytest.FixtureRequest) -> type[Trial] | type[Judged]:
    is_whole = request.config.getoption(OPTION) or request.node.get_closest_marker("end_to_end")
    return Trial if is_whole else Judged


@pytest.fixture(autouse=True)
def nothing_is_enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command be asked about, as where commands cannot be confined: what a rule allows is what is judged."""
    monkeypatch.setattr(backends, "_is_ordinary_user", lambda: False)
