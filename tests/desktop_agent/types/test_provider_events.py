"""Unknown is not zero."""

from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.types.provider_events import Usage

COUNTS = st.none() | st.integers(0, 10**9)
USAGES = st.builds(Usage, input_tokens=COUNTS, output_tokens=COUNTS, cache_read_tokens=COUNTS, total_tokens=COUNTS)


@given(USAGES, USAGES)
def test_merging_keeps_the_larger_and_what_is_known(a: Usage, b: Usage) -> None:
    merged = a.merge_max(b)
    for name in Usage.model_fields:
        known = [value for value in (getattr(a, name), getattr(b, name)) if value is not None]
        assert getattr(merged, name) == (max(known) if known else None)
    assert merged == b.merge_max(a)
    assert merged.merge_max(merged) == merged


@given(USAGES, USAGES)
def test_adding_turns_adds_what_is_known(a: Usage, b: Usage) -> None:
    total = a + b
    for name in Usage.model_fields:
        known = [value for value in (getattr(a, name), getattr(b, name)) if value is not None]
        assert getattr(total, name) == (sum(known) if known else None)


def test_a_number_of_tokens_that_nobody_can_have_counted_is_bounded() -> None:
    most = Usage(input_tokens=10**15, output_tokens=10**400)
    assert most == Usage(input_tokens=10**15, output_tokens=10**15)
    assert most + most == most
