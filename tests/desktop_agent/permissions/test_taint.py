"""What came in from outside, and what is asked about because of it."""

from desktop_agent.permissions.standing import Standing
from desktop_agent.permissions.taint import CLEAN, SUSPENDED, Taint
from desktop_agent.storage.records import ConversationState
from desktop_agent.vocabulary.tool_calls import UntrustedSource

SITE, OTHER = UntrustedSource("web", "example.org"), UntrustedSource("mcp", "tickets")


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


def test_a_server_is_known_by_its_id_and_not_by_a_title_that_can_change() -> None:
    files = UntrustedSource("mcp", "Files", "files")
    trusted = CLEAN.marked(files).lifted()

    assert trusted.marked(UntrustedSource("mcp", "My files", "files")) is trusted
    for other in (
        UntrustedSource("mcp", "Files", "files-2"),
        UntrustedSource("mcp", "files"),
        UntrustedSource("web", "Files", "files"),
    ):
        assert trusted.marked(other).outsiders == (other,)


def test_a_state_of_before_there_were_ids_loads_and_trusts_no_server_by_its_title() -> None:
    text = '{"outside": [{"kind": "web", "name": "a.example"}], "trusted": [{"kind": "mcp", "name": "files"}]}'
    state = ConversationState.model_validate_json(text)
    taint = Taint(state.outside, state.trusted)

    assert taint.marked(UntrustedSource("web", "a.example")) is taint
    assert taint.marked(UntrustedSource("mcp", "Files", "files")) is not taint
    assert ConversationState.model_validate_json(state.model_dump_json()) == state


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
