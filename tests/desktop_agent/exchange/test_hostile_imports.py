"""Exports of every kind that go wrong: each is read as far as it can be, or refused with a sentence."""

import copy
import json
import os
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.exchange import import_conversations
from desktop_agent.exchange.conversation_json import write_conversations
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.exchange.import_report import ExchangeFailed, Skipped
from desktop_agent.types.conversation_tree import ConversationTree
from tests.desktop_agent.exchange.sample_trees import full_tree, long_tree

EXPORTS = Path(__file__).parent / "exports"
KINDS = ("own", "chatgpt", "claude")
ODD: list[Any] = [None, True, 5, -1e300, "", "text", [], {}, [[]], [None], {"a": None}, "\ud800", "1" * 5000, 10**400]
DEEP = "[" * 20_000 + "]" * 20_000

each_kind = pytest.mark.parametrize("kind", KINDS)


def export_of(kind: str) -> Any:
    """An export as JSON, in which `conversations_in` finds the conversations."""
    if kind == "own":
        pieces: list[bytes] = []
        write_conversations([full_tree(), long_tree(4)], pieces.append)
        return json.loads(b"".join(pieces))
    return json.loads((EXPORTS / f"{kind}.json").read_text(encoding="utf-8"))


def conversations_in(export: Any) -> list[Any]:
    return export["conversations"] if isinstance(export, dict) else export


def imported(path: Path) -> list[ConversationTree | Skipped]:
    """Read it; every tree that comes is whole."""
    with ConversationImport(path) as export:
        results = list(export)
    for result in results:
        if isinstance(result, ConversationTree):
            result.branch()
        else:
            assert str(result.reason).endswith(".")
    return results


@pytest.mark.parametrize("junk", ["}", "}x", "1,", "x,", "]", "{]", '"', "[}", "\\"])
def test_damage_ends(junk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_conversations, "MAX_SKIPPED", 50)
    whole = json.dumps(export_of("claude"))
    results = imported(saved(tmp_path, f"{whole[:-1]}, {junk * 2000}"))
    assert isinstance(results[0], ConversationTree)
    assert len(results) < 60


def saved(folder: Path, data: str | bytes) -> Path:
    path = folder / "conversations.json"
    path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return path


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [path, *(place for key, member in inner for place in places(member, (*path, key)))]


def put(conversation: Any, place: tuple[Any, ...], value: Any) -> None:
    """Where the place is still there."""
    target = conversation
    try:
        for key in place[:-1]:
            target = target[key]
        target[place[-1]] = value
    except (TypeError, KeyError, IndexError):
        return


@each_kind
@pytest.mark.parametrize("seed", range(20))
def test_any_value_may_be_of_any_type(kind: str, seed: int, tmp_path: Path) -> None:
    chance, export = random.Random(seed), export_of(kind)
    whole = conversations_in(export)
    broken: list[Any] = []
    for _ in range(20):
        conversation = copy.deepcopy(chance.choice(whole))
        for _ in range(chance.choice((1, 1, 3))):
            put(conversation, chance.choice(places(conversation)[1:]), chance.choice(ODD))
        broken.append(conversation)
    count = len(whole)
    whole[:0] = broken
    assert len(imported(saved(tmp_path, json.dumps(export)))) == 20 + count


@each_kind
def test_cut_off_anywhere_what_came_is_read_or_all_of_it_refused(kind: str, tmp_path: Path) -> None:
    text = json.dumps(export_of(kind))
    for part in range(1, 32):
        try:
            results = imported(saved(tmp_path, text[: len(text) * part // 32]))
        except ExchangeFailed:
            continue
        assert isinstance(results[-1], Skipped)


def test_a_file_that_goes_while_its_folder_is_read_costs_nothing_but_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps(export_of("own")))

    def walk(folder: Path, **_: object) -> Iterator[tuple[str, list[str], list[str]]]:
        yield str(folder), [], ["gone.tmp", "conversations.json"]

    monkeypatch.setattr(os, "walk", walk)
    assert len(imported(tmp_path)) == 2


@each_kind
def test_bytes_that_are_no_text_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    chance, data = random.Random(kind), json.dumps(export_of(kind)).encode()
    for _ in range(20):
        damaged = bytearray(data)
        for _ in range(20):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with suppress(ExchangeFailed):  # any other error fails
            imported(saved(tmp_path, bytes(damaged)))


@each_kind
def test_deep_nesting_costs_only_its_conversation(kind: str, tmp_path: Path) -> None:
    chance = random.Random(kind)
    for _ in range(5):
        export = export_of(kind)
        conversations = conversations_in(export)
        deep = copy.deepcopy(conversations[0])
        put(deep, chance.choice(places(deep)[1:]), "@deep@")
        conversations.append(deep)
        results = imported(saved(tmp_path, json.dumps(export).replace('"@deep@"', DEEP)))
        assert len(results) == len(conversations)
        assert isinstance(results[-1], Skipped)
        assert all(isinstance(result, ConversationTree) for result in results[:-1])


@each_kind
def test_of_conversations_with_one_id_the_first_counts_and_their_messages_may_share_ids(
    kind: str, tmp_path: Path
) -> None:
    export = export_of(kind)
    conversations = conversations_in(export)
    again = copy.deepcopy(conversations)
    other = copy.deepcopy(conversations[0])
    for name in ("id", "conversation_id", "uuid"):
        if name in other:
            other[name] = "f" * 32
    count = len(conversations)
    conversations += [*again, other]
    results = imported(saved(tmp_path, json.dumps(export)))
    kinds = [type(result) for result in results]
    assert kinds == [*[ConversationTree] * count, *[Skipped] * count, ConversationTree]
    trees = [result for result in results if isinstance(result, ConversationTree)]
    assert len({tree.id for tree in trees}) == len(trees)
    assert [node.message.text for node in trees[-1].messages] == [node.message.text for node in trees[0].messages]


@each_kind
@pytest.mark.parametrize("filling", [b"\0", b" ", b"["])
def test_very_much_of_nothing_takes_no_memory(kind: str, filling: bytes, tmp_path: Path) -> None:
    export = json.dumps(export_of(kind)).encode()
    path = saved(tmp_path, export[:-1] if kind == "own" else export[:-1] + b",")
    with path.open("ab") as file:
        file.write(filling * 4_000_000)
    tracemalloc.start()
    try:
        imported(path)
    except ExchangeFailed:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 30_000_000
