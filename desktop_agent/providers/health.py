"""Which of several addresses to ask first: pure state, told what happened, with a clock that tests replace."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

# Seconds that an address rests after its first failure; doubled with each further one, up to the longest.
INITIAL_BACKOFF = 5.0
MAX_BACKOFF = 300.0


@dataclass(slots=True)
class _Address:
    """`failures` in a row; `until` when it rests; `probing` while one request finds out whether it is well again."""

    failures: int = 0
    until: float = 0.0
    probing: bool = False


class AddressHealth:
    """Addresses by number. One that failed rests; after its rest one request at a time tries it again."""

    def __init__(self, count: int, clock: Callable[[], float] = monotonic) -> None:
        self._addresses = [_Address() for _ in range(count)]
        self._clock = clock

    def order(self, preferred: int = 0) -> tuple[int, ...]:
        """All addresses, best first: the preferred one, then as listed; those that rest come last, soonest first.

        None is left out: with all of them at rest the person's own attempt is still made.
        """
        now = self._clock()
        listed = sorted(range(len(self._addresses)), key=lambda number: (number != preferred, number))
        resting = [number for number in listed if self._is_backing_off(number, now)]
        ready = [number for number in listed if number not in resting]
        return (*ready, *sorted(resting, key=lambda number: self._addresses[number].until))

    def request_started(self, number: int) -> None:
        """A request goes there now; it must be followed by `succeeded`, `failed` or `left`."""
        address = self._addresses[number]
        address.probing = address.failures > 0

    def request_succeeded(self, number: int) -> None:
        """It answered, be it with a refusal."""
        self._addresses[number] = _Address()

    def request_failed(self, number: int, hint: float | None = None) -> None:
        """It did not answer, or is out of order; `hint` is the server's own wish for rest, in seconds."""
        address = self._addresses[number]
        address.failures += 1
        address.probing = False
        rest = min(INITIAL_BACKOFF * 2 ** min(address.failures - 1, 16), MAX_BACKOFF)
        address.until = self._clock() + max(rest, min(hint or 0.0, MAX_BACKOFF))

    def request_abandoned(self, number: int) -> None:
        """The request was given up before anything was learnt."""
        self._addresses[number].probing = False

    def _is_backing_off(self, number: int, now: float) -> bool:
        address = self._addresses[number]
        return address.failures > 0 and (address.probing or now < address.until)
