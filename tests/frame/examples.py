"""Makes hypothesis draw the same examples in every process, whatever modules are loaded there.

By default it draws one value in twenty from the constants of all modules that happen to be loaded
(`hypothesis.internal.constants_ast`), so a seed draws other examples in a run of one file than in a run of all.
"""

from hypothesis import settings
from hypothesis.internal.conjecture import providers

PUSH = "push"
ALL = "all"
SHARE = 8
"""On a push a property draws one example where the long form draws so many."""
LEAST = 10

_NO_CONSTANTS = providers.Constants()


def leave_out_constants_of_modules() -> None:
    """Draw no constants of modules any more, in this process. There is no public way to switch them off."""
    providers._get_local_constants = lambda: _NO_CONSTANTS


def repeat_examples() -> None:
    """Register the profiles, which draw the same each time, and load that of a push."""
    settings.register_profile(ALL, derandomize=True, database=None)
    settings.register_profile(PUSH, settings.get_profile(ALL), max_examples=examples_on_a_push(100))
    settings.load_profile(PUSH)
    leave_out_constants_of_modules()


def examples(most: int) -> int:
    """Return how many examples the loaded profile draws where the long form draws `most`."""
    return examples_on_a_push(most) if settings.get_current_profile_name() == PUSH else most


def examples_on_a_push(most: int) -> int:
    return max(min(LEAST, most), most // SHARE)
