"""The next times of a scheduled prompt, while it is being edited."""

from dataclasses import dataclass
from datetime import datetime

from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.schedules import Timing

PREVIEWED = 5


@dataclass(frozen=True, slots=True)
class TimingPreview:
    """The local times of the next runs, or why there are none."""

    walls: tuple[datetime, ...] = ()
    problem: Sentence | None = None


def preview_timing(timing: Timing) -> TimingPreview:
    """Return the next times."""
    # Late: nothing of it is needed at the start.
    from desktop_agent.schedule.timing import Clock, next_walls

    try:
        walls = next_walls(timing, Clock(), PREVIEWED)
    except WrongUse as error:
        return TimingPreview(problem=error.whole)
    return TimingPreview(walls, None if walls else Sentence("This time is past. Choose a later one."))
