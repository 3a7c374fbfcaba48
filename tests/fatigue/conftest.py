"""Every command is asked about, as in the tests of escapes."""

from tests.escape.conftest import nothing_is_enforced

__all__ = ["nothing_is_enforced"]
