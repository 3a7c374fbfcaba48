"""What came in from outside, and what is asked about because of it."""

from desktop_agent.permissions.standing import Standing
from desktop_agent.permissions.taint import CLEAN, SUSPENDED
from desktop_agent.vocabulary.tool_calls import Outsider

SITE, OTHER = Outsider("web", "example.org"), Outsider("mcp", "tickets")


def test_each_source_is_marked_once_until_it_is_trusted() -> None:
    marked = CLEAN.marked(SITE).marked(OTHER)

    assert marked.outsiders == (SITE, OTHER)
    assert marked.marked(SITE) is marked
    assert marked.suspension.effects == SUSPENDED
    assert "tickets and 1 more" in str(marked.suspension.why)


def test_what_was_trusted_marks_no_more_and_others_do() -> None:
    lifted = CLEAN.marked(SITE).lifted()

    assert lifted.suspension.effects == frozenset()
    assert lifted.marked(SITE) is lifted
    assert lifted.marked(OTHER).outsiders == (OTHER,)


def test_what_a_specialist_reads_marks_the_whole_conversation() -> None:
    root = Standing()
    changes: list[int] = []
    root.on_change(lambda: changes.append(1))

    assert root.nested().nested().mark(SITE)
    assert root.taint.outsiders == (SITE,)
    assert not root.mark(SITE)
    assert len(changes) == 1

    root.nested().lift()
    assert root.taint.trusted == (SITE,)
