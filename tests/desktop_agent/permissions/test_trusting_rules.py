"""Who says that they trust what came in trusts those whom they saw, and nobody who came since."""

import pytest

from desktop_agent.permissions.policy import NO_UNTRUSTED_CONTENT, PermissionPolicy, UntrustedContent
from desktop_agent.types.tool_calls import UntrustedSource

SITE, OTHER = UntrustedSource("web", "a.example"), UntrustedSource("web", "b.example")
FIRST, SECOND = UntrustedSource("web", "a command", "1"), UntrustedSource("web", "a command", "2")


@pytest.mark.parametrize(
    ("came", "shown", "kept"),
    [
        ((SITE, OTHER), None, ()),
        ((SITE, OTHER), ("a.example",), (OTHER,)),
        ((SITE, OTHER), ("a.example", "b.example"), ()),
        ((SITE,), (), (SITE,)),
        ((FIRST, SECOND), ("a command",), (SECOND,)),
        ((FIRST, SECOND), ("a command", "a command"), ()),
    ],
)
def test_only_those_that_were_shown_are_trusted(
    came: tuple[UntrustedSource, ...], shown: tuple[str, ...] | None, kept: tuple[UntrustedSource, ...]
) -> None:
    taint = NO_UNTRUSTED_CONTENT
    for each in came:
        taint = taint.with_source(each)
    lifted = taint.after_trusting(shown)
    assert lifted == UntrustedContent(kept, tuple(each for each in came if each not in kept))
    assert bool(lifted.suspension.effects) is bool(kept)


def test_what_was_shown_counts_for_the_whole_conversation() -> None:
    root = PermissionPolicy()
    nested = root.nested()
    nested.mark_untrusted(SITE)
    nested.mark_untrusted(OTHER)
    nested.lift_suspension(("a.example",))
    assert root.untrusted_content.sources == (OTHER,)
