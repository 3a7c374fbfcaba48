"""Untrusted content of a conversation, and what is asked about because of it."""

from desktop_agent.permissions.policy import NO_UNTRUSTED_CONTENT, SUSPENDED_EFFECTS, PermissionPolicy, UntrustedContent
from desktop_agent.storage.records import ConversationState
from desktop_agent.types.tool_calls import UntrustedSource

SITE, OTHER = UntrustedSource("web", "example.org"), UntrustedSource("mcp", "tickets")


def test_each_source_is_marked_once_until_it_is_trusted() -> None:
    marked = NO_UNTRUSTED_CONTENT.with_source(SITE).with_source(OTHER)

    assert marked.sources == (SITE, OTHER)
    assert marked.with_source(SITE) is marked
    assert marked.suspension.effects == SUSPENDED_EFFECTS
    assert "“tickets” and 1 more" in str(marked.suspension.why)


def test_what_was_trusted_marks_no_more_and_others_do() -> None:
    lifted = NO_UNTRUSTED_CONTENT.with_source(SITE).after_trusting()

    assert lifted.suspension.effects == frozenset()
    assert lifted.with_source(SITE) is lifted
    assert lifted.with_source(OTHER).sources == (OTHER,)


def test_a_server_is_known_by_its_id_and_not_by_a_title_that_can_change() -> None:
    files = UntrustedSource("mcp", "Files", "files")
    trusted = NO_UNTRUSTED_CONTENT.with_source(files).after_trusting()

    assert trusted.with_source(UntrustedSource("mcp", "My files", "files")) is trusted
    for other in (
        UntrustedSource("mcp", "Files", "files-2"),
        UntrustedSource("mcp", "files"),
        UntrustedSource("web", "Files", "files"),
    ):
        assert trusted.with_source(other).sources == (other,)


def test_a_state_of_before_there_were_ids_loads_and_trusts_no_server_by_its_title() -> None:
    text = '{"outside": [{"kind": "web", "name": "a.example"}], "trusted": [{"kind": "mcp", "name": "files"}]}'
    state = ConversationState.model_validate_json(text)
    taint = UntrustedContent(state.outside, state.trusted)

    assert taint.with_source(UntrustedSource("web", "a.example")) is taint
    assert taint.with_source(UntrustedSource("mcp", "Files", "files")) is not taint
    assert ConversationState.model_validate_json(state.model_dump_json()) == state


def test_what_a_specialist_reads_marks_the_whole_conversation() -> None:
    root = PermissionPolicy()
    changes: list[int] = []
    root._listeners.append(lambda: changes.append(1))

    assert root.nested().nested().mark_untrusted(SITE)
    assert root.untrusted_content.sources == (SITE,)
    assert not root.mark_untrusted(SITE)
    assert len(changes) == 1

    root.nested().lift_suspension()
    assert root.untrusted_content.trusted == (SITE,)


def test_a_source_of_which_only_the_name_is_known_is_the_known_one_of_that_name() -> None:
    known, named = UntrustedSource("mcp", "Notes", "1"), UntrustedSource("mcp", "Notes")
    for content in (UntrustedContent((known,)), UntrustedContent((), (known,))):
        assert content.with_source(named) is content
        assert content.with_source(UntrustedSource("mcp", "Other")).sources[-1].name == "Other"
    # The other way round it may be another server of that name.
    trusted = UntrustedContent((), (named,))
    assert trusted.with_source(known).sources == (known,)


def test_the_title_of_a_server_is_quoted_and_what_describes_itself_is_not() -> None:
    server = NO_UNTRUSTED_CONTENT.with_source(UntrustedSource("mcp", "crash", "1"))
    imported = server.with_source(UntrustedSource("file", "an imported conversation", "import"))
    assert str(server.suspension.why).startswith("Content from “crash” came into")
    assert str(imported.suspension.why).startswith("Content from an imported conversation and 1 more came into")
