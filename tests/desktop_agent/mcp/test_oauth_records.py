"""The stored records of a sign-in."""

import time

import pytest

from desktop_agent.mcp.oauth_records import MAX_TOKEN_LIFETIME, expiry_time


@pytest.mark.parametrize(("lifetime", "expected"), [(60, 60), (10**400, MAX_TOKEN_LIFETIME), (-(10**400), 0)])
def test_a_life_that_no_clock_knows_is_cut(lifetime, expected):
    expiry = expiry_time({"expires_in": lifetime})
    assert expiry is not None
    assert expiry - time.time() == pytest.approx(expected, abs=60)


def test_what_is_no_number_says_nothing():
    assert expiry_time({"expires_in": "soon"}) is None
    assert expiry_time({}) is None
