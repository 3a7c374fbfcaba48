"""Which examples hypothesis takes: the same in every process, whatever else is loaded there.

Left to itself it draws one value in twenty from the constants of all modules that happen to be loaded
(`hypothesis.internal.constants_ast`), so a seed finds something else in a run of one file than in a run of all.
"""

from hypothesis import settings
from hypothesis.internal.conjecture import providers

REPEATABLE = "repeatable"

_NO_CONSTANTS = providers.Constants()


def leave_out_constants_of_modules() -> None:
    """From now on, in this process. There is no public way to switch them off."""
    providers._get_local_constants = lambda: _NO_CONSTANTS


def repeat_examples() -> None:
    """Make the profile `repeatable`, and take it."""
    settings.register_profile(REPEATABLE, derandomize=True, database=None)
    settings.load_profile(REPEATABLE)
    leave_out_constants_of_modules()
