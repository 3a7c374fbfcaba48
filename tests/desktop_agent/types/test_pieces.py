"""Pieces of a text: joined, and apart again."""

from desktop_agent.types.engine_events import Envelope, Event
from desktop_agent.types.messages import now
from desktop_agent.types.pieces import joined, single_envelopes
from desktop_agent.types.provider_events import ContentDelta, Done, ThinkingDelta, ToolArgsDelta


def test_neighbouring_pieces_of_one_text_are_joined_and_no_others() -> None:
    events: list[Event] = [
        ThinkingDelta("a"),
        ThinkingDelta("b"),
        ContentDelta("c"),
        ContentDelta("d", "commentary"),
        ContentDelta("e", "commentary"),
        ContentDelta("f", "commentary", 1),
        ThinkingDelta("g", 1),
        ThinkingDelta("h", 2),
        Done(),
        Done(),
        ContentDelta("i"),
    ]
    wholes = list(joined(events))
    assert [whole for whole, _ in wholes] == [
        ThinkingDelta("ab"),
        ContentDelta("c"),
        ContentDelta("de", "commentary"),
        *events[5:],
    ]
    assert [piece for whole, pieces in wholes for piece in pieces or (whole,)] == events


def test_a_call_gets_its_name_from_the_piece_that_has_it() -> None:
    fragments = [ToolArgsDelta("1", None, "{"), ToolArgsDelta("1", "look", "}"), ToolArgsDelta("2", "look", "{}")]
    assert list(joined(fragments)) == [
        (ToolArgsDelta("1", "look", "{}"), tuple(fragments[:2])),
        (ToolArgsDelta("2", "look", "{}"), ()),
    ]


def test_apart_again_each_piece_has_its_number() -> None:
    whole = Envelope(7, "run", None, "turn", now(), ContentDelta("abc"))
    pieces = [ContentDelta("a"), ContentDelta("b"), ContentDelta("c")]
    singles = single_envelopes(whole, pieces)
    assert [(single.seq, single.event) for single in singles] == list(zip((5, 6, 7), pieces, strict=True))
    assert {(single.run_id, single.turn_id, single.at) for single in singles} == {("run", "turn", whole.at)}
    assert list(single_envelopes(whole, ())) == [whole]
