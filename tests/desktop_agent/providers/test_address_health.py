"""The order in which addresses are tried, with a simulated clock."""

from desktop_agent.providers.provider import INITIAL_BACKOFF, MAX_BACKOFF, AddressHealth


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_preferred_one_then_as_listed() -> None:
    health = AddressHealth(3)
    assert health.order() == (0, 1, 2)
    assert health.order(2) == (2, 0, 1)


def test_a_failed_address_comes_last_until_its_backoff_is_over() -> None:
    clock = Clock()
    health = AddressHealth(3, clock)
    health.request_failed(0)
    assert health.order() == (1, 2, 0)
    clock.now += INITIAL_BACKOFF - 0.1
    assert health.order() == (1, 2, 0)
    clock.now += 0.1
    assert health.order() == (0, 1, 2)


def test_one_request_at_a_time_tries_it_again() -> None:
    clock = Clock()
    health = AddressHealth(2, clock)
    health.request_failed(0)
    clock.now += INITIAL_BACKOFF
    health.request_started(0)
    assert health.order() == (1, 0)
    health.request_abandoned(0)
    assert health.order() == (0, 1)
    health.request_started(0)
    health.request_succeeded(0)
    health.request_started(0)
    assert health.order() == (0, 1)  # it is healthy: any number of requests may use it


def test_each_further_failure_doubles_the_rest_up_to_the_longest() -> None:
    clock = Clock()
    health = AddressHealth(2, clock)
    for backoff in (5, 10, 20, 40, 80, 160, 300, 300):
        health.request_failed(0)
        clock.now += backoff - 0.1
        assert health.order() == (1, 0)
        clock.now += 0.1
        assert health.order() == (0, 1)
    health.request_succeeded(0)
    health.request_failed(0)
    clock.now += INITIAL_BACKOFF
    assert health.order() == (0, 1)
    for _ in range(2000):  # no number grows without end
        health.request_failed(0)
    clock.now += MAX_BACKOFF
    assert health.order() == (0, 1)


def test_a_servers_own_wish_is_kept_within_reason() -> None:
    clock = Clock()
    health = AddressHealth(2, clock)
    health.request_failed(0, 60.0)
    clock.now += 59
    assert health.order() == (1, 0)
    clock.now += 1
    assert health.order() == (0, 1)
    health.request_failed(0, 1e9)
    clock.now += MAX_BACKOFF
    assert health.order() == (0, 1)


def test_with_all_in_backoff_the_soonest_is_still_tried() -> None:
    clock = Clock()
    health = AddressHealth(3, clock)
    for number in (1, 0, 2):
        health.request_failed(number)
        clock.now += 1
    assert health.order() == (1, 0, 2)
    assert health.order(2) == (1, 0, 2)
