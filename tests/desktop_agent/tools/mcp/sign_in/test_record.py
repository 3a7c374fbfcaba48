"""What is kept of a sign-in."""

import time

import pytest

from desktop_agent.tools.mcp.sign_in.record import LONGEST_LIFE, expiry_of


@pytest.mark.parametrize(("said", "counts"), [(60, 60), (10**400, LONGEST_LIFE), (-(10**400), 0)])
def test_a_life_that_no_clock_knows_is_cut(said, counts):
    found = expiry_of({"expires_in": said})
    assert found is not None
    assert found - time.time() == pytest.approx(counts, abs=60)


def test_what_is_no_number_says_nothing():
    assert expiry_of({"expires_in": "soon"}) is None
    assert expiry_of({}) is None
