"""Every command is asked about, as where commands cannot be confined."""

import pytest

from desktop_agent.sandbox import backends


@pytest.fixture(autouse=True)
def _nothing_is_enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_is_ordinary_user", lambda: False)
