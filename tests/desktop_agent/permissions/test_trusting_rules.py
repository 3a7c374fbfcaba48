"""A person trusts the sources that they were shown, and none that came in later."""

import pytest

from desktop_agent.permissions.policy import NO_UNTRUSTED_CONTENT, PermissionPolicy, UntrustedContent
from desktop_agent.types.tool_calls import UntrustedSource

SITE, OTHER = UntrustedSource("web", "a.example"), UntrustedSource("web", "b.example")
FIRST, SECOND = UntrustedSource("web", "a command", "1"), UntrustedSource("web", "a command", "2")


@pytest.mark.parametrize(
    ("sources", "trusted", "remaining"),
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
    sources: tuple[UntrustedSource, ...], trusted: tuple[str, ...] | None, remaining: tuple[UntrustedSource, ...]
) -> None:
    content = NO_UNTRUSTED_CONTENT
    for source in sources:
        content = content.with_source(source)
    lifted = content.after_trusting(trusted)
    assert lifted == UntrustedContent(remaining, tuple(source for source in sources if source not in remaining))
    assert bool(lifted.suspension.effects) is bool(remaining)


def test_what_was_shown_counts_for_the_whole_conversation() -> None:
    root = PermissionPolicy()
    nested = root.nested()
    nested.mark_untrusted(SITE)
    nested.mark_untrusted(OTHER)
    nested.lift_suspension(("a.example",))
    assert root.untrusted_content.sources == (OTHER,)
