from desktop_agent.providers.call_builder import LONGEST_LOOKED_AT, LONGEST_NAME, CallBuilder


def test_a_name_that_comes_again_beside_whole_arguments_is_another_call() -> None:
    builder = CallBuilder("p", lambda: "made")
    for path in ("a", "b"):
        builder.fragment(index=0, name="read_file", arguments=f'{{"path": "{path}"}}')
    assert [call.input for _, call in builder.end()] == [{"path": "a"}, {"path": "b"}]


def test_arguments_too_long_to_be_looked_at_again_and_again_go_on() -> None:
    builder = CallBuilder("p", lambda: "made")
    text = '{"a": "' + "x" * LONGEST_LOOKED_AT + '"}'
    builder.fragment(index=0, name="write_file", arguments=text)
    builder.fragment(index=0, name="write_file", arguments=" ")
    ((_, call),) = builder.end()
    assert call.input == {"a": "x" * LONGEST_LOOKED_AT}


def test_names_and_ids_without_end_are_bounded() -> None:
    builder = CallBuilder("p", lambda: "made")
    builder.fragment(index=0, id="i" * 5000, name="n" * 5000, arguments="{")
    builder.fragment(index=0, id="i" * 5000, arguments="}")
    ((_, call),) = builder.end()
    assert (call.id, call.name, call.input) == ("made", "n" * LONGEST_NAME + "…", {})
