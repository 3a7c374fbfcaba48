"""Time at work: it stands still while nothing is done, and a person or another run is waited for."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from desktop_agent.agent.budget import Budget


class WorkClock:
    """Tells the budget when the calls of one answer do nothing themselves."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._working = 0
        self._waiting = 0
        self._pause: ExitStack | None = None

    @contextmanager
    def working(self) -> Generator[None]:
        """A call is judged, or runs."""
        self._working += 1
        self._update()
        try:
            yield
        finally:
            self._working -= 1
            self._update()

    @contextmanager
    def delegating(self) -> Generator[None]:
        """A specialist has a call; its own run says whether it works or waits."""
        self.begin_waiting()
        try:
            yield
        finally:
            self.end_waiting()

    def begin_waiting(self) -> None:
        """A person is asked about one more call."""
        self._waiting += 1
        self._update()

    def end_waiting(self) -> None:
        """That was decided, or taken back."""
        self._waiting -= 1
        self._update()

    def _update(self) -> None:
        stands_still = self._waiting > 0 and self._working == 0
        if stands_still and self._pause is None:
            self._pause = ExitStack()
            self._pause.enter_context(self._budget.paused())
        elif not stands_still and self._pause is not None:
            pause, self._pause = self._pause, None
            pause.close()
