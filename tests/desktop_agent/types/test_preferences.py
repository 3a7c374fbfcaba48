"""The person's own modes and specialists, as the preferences take them."""

import pytest
from pydantic import ValidationError

from desktop_agent.types.permissions import BUILT_IN_MODES, Mode
from desktop_agent.types.preferences import MAX_MODES, ModePreferences, Preferences


def own(name: str) -> Mode:
    return Mode(name=name, title=name)


def test_own_modes_come_after_those_that_are_built_in() -> None:
    preferences = Preferences(modes=ModePreferences(defined=(own("a"), own("b"))))
    assert preferences.modes.all == (*BUILT_IN_MODES, own("a"), own("b"))
    assert Preferences.model_validate_json(preferences.model_dump_json()) == preferences


@pytest.mark.parametrize(
    "modes",
    [
        (own("a"), own("a")),
        (own("plan"),),
        tuple(own(f"m{number}") for number in range(MAX_MODES + 1)),
    ],
    ids=["twice", "built in", "too many"],
)
def test_no_two_of_one_name_and_no_more_than_anybody_looks_through(modes: tuple[Mode, ...]) -> None:
    with pytest.raises(ValidationError):
        ModePreferences(defined=modes)
    assert len(ModePreferences(defined=tuple(own(f"m{number}") for number in range(MAX_MODES))).defined) == MAX_MODES
