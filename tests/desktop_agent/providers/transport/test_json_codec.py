import pytest

from desktop_agent.providers.transport.json_codec import (
    MAX_DEPTH,
    SurrogateJoiner,
    dumps,
    loads,
    loads_object,
    repair_json,
    repair_text,
)


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert repair_text("a\ud83d") == "a\ufffd"
    assert repair_text("\ud83d\ude00é") == "😀é"
    assert repair_json({"\ude00": ["\ud83d", 1.5, float("nan")]}) == {"\ufffd": ["\ufffd", 1.5, None]}


def test_halves_in_neighbouring_pieces_are_joined() -> None:
    joiner = SurrogateJoiner()
    assert [joiner.feed(piece) for piece in ("a\ud83d", "", "\ude00b", "\ude00", "c\ud83d")] == [
        "a",
        "",
        "😀b",
        "\ufffd",
        "c",
    ]
    assert joiner.flush() == "\ufffd"
    assert joiner.flush() == ""


def test_arguments_are_objects_with_exact_integers() -> None:
    assert loads_object('{"n": 123456789012345678901}') == {"n": 123456789012345678901}
    assert loads_object('{"n": NaN}') is None
    assert loads_object("[1]") is None
    assert loads_object('{"t": "\\ud83d"}') == {"t": "\ufffd"}
    assert loads_object("[" * 100_000) is None
    assert loads_object('{"n": ' + "9" * 10_000 + "}") is None


def test_arguments_that_are_nested_too_deep_are_none() -> None:
    def nested(levels: int) -> str:
        return '{"a":' * levels + "1" + "}" * levels

    assert loads_object(nested(MAX_DEPTH)) == loads(nested(MAX_DEPTH).encode())
    assert loads_object(nested(MAX_DEPTH + 1)) is None
    assert loads_object(nested(900)) is None


def test_state_that_is_nested_too_deep_is_cut_and_breaks_nothing() -> None:
    deep = loads(b"[" * 900 + b"]" * 900)
    assert repair_json(deep) == loads(b"[" * MAX_DEPTH + b"null" + b"]" * MAX_DEPTH)
    assert loads(dumps({"a": deep}))["a"] is not None


def test_what_json_cannot_carry_is_mended_on_the_way_out() -> None:
    assert loads(dumps({"a": "\ud83d", "n": 2**70})) == {"a": "\ufffd", "n": float(2**70)}
    assert dumps({"n": 2**70}) == b'{"n":1180591620717411303424}'


def test_garbage_raises() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        loads(b"{nope")
