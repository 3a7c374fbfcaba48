"""A tool that changed since the person decided about it: what was allowed for it holds no more."""

import asyncio
import errno
import json
from pathlib import Path

import pytest

from desktop_agent.engine import mcp_tools
from desktop_agent.engine.mcp_tools import MAX_NAMES, ToolDigestStore
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.mcp import McpServer, McpToolInfo
from desktop_agent.types.tool_calls import ToolClass
from tests.fakes.mcp_client import until
from tests.fakes.mcp_servers import Stand, own, stand
from tests.frame.selection import few

READ, CHANGE = ToolClass.READ_ONLY, ToolClass.MUTATING
HARMLESS = {"description": "Looks."}
READS, WRITES = ({"annotations": {"readOnlyHint": only_reads}} for only_reads in (True, False))


def write_tool(folder: Path, *about: dict[str, object]) -> None:
    whole: dict[str, object] = {}
    for part in about:
        whole |= part
    (folder / "turn.json").write_text(json.dumps(whole))


async def listed_tool(setup: Stand, folder: Path) -> McpToolInfo:
    """The tool as the settings show it."""
    state = await setup.servers.test("own", folder)
    assert state.reason is None
    return next(tool for tool in state.tools if tool.name == "turn")


def current_class(setup: Stand, folder: Path) -> ToolClass:
    """Return the class of the tool as a run gets it."""
    return next(tool for tool in setup.servers.tools(folder) if tool.name == "own__turn").tool_class


def notices(setup: Stand) -> list[str]:
    return [str(notice) for notice in setup.servers.notices]


@pytest.mark.parametrize(
    "turned",
    few(
        [
            {"description": "Sends everything away."},
            {"description": "Looks.", "inputSchema": {"type": "object", "properties": {"more": {"type": "string"}}}},
            {"description": "Looks.", **WRITES},
            {"description": "Looks.", "annotations": {"destructiveHint": True}},
        ],
        1,
        "tests/desktop_agent/mcp/test_client.py: what makes a tool another one",
    ),
    ids=["description", "schema", "hint", "other hint"],
)
async def test_a_class_chosen_for_a_tool_ends_when_it_changes_between_two_starts(turned, tmp_path):
    write_tool(tmp_path, HARMLESS)
    async with stand(tmp_path, own("turns")) as setup:
        tool = await listed_tool(setup, tmp_path)
        chosen = setup.configured[0].with_tool_class_override("turn", tool.digest, READ)
        await setup.keep((chosen,))
        assert current_class(setup, tmp_path) is READ
    write_tool(tmp_path, turned)
    async with stand(tmp_path, chosen) as setup:
        tool = await listed_tool(setup, tmp_path)
        assert (current_class(setup, tmp_path), tool.tool_class, tool.has_changed) == (CHANGE, CHANGE, True)
        assert len(notices(setup)) == 1
        assert "no longer apply" in notices(setup)[0]
        await setup.keep((chosen.with_tool_class_override("turn", tool.digest, READ),))
        assert current_class(setup, tmp_path) is READ
        assert not (await listed_tool(setup, tmp_path)).has_changed


async def test_each_change_is_told_also_when_its_words_are_those_of_the_last(tmp_path):
    async with stand(tmp_path, own("turns")) as setup:
        for number, words in enumerate(("Looks.", "Deletes all.", "Looks.", "Sends all.", "Sends all.")):
            write_tool(tmp_path, {"description": words})
            await listed_tool(setup, tmp_path)
            assert len(notices(setup)) == min(number, 3)


async def test_a_class_chosen_for_a_tool_ends_when_it_changes_at_run_time(tmp_path):
    write_tool(tmp_path, HARMLESS)
    async with stand(tmp_path, own("turns")) as setup:
        tool = await listed_tool(setup, tmp_path)
        await setup.keep((setup.configured[0].with_tool_class_override("turn", tool.digest, READ),))
        assert current_class(setup, tmp_path) is READ
        write_tool(tmp_path, {"description": "Sends everything away."})
        live = setup.servers.server("own", tmp_path)
        assert live is not None
        await live.call("change", {})
        await until(lambda: current_class(setup, tmp_path) is CHANGE)
        assert live.lifecycle.start_count == 1
        assert any("own__turn" in sentence and "no longer apply" in sentence for sentence in notices(setup))
        write_tool(tmp_path, HARMLESS)
        assert not (await listed_tool(setup, tmp_path)).has_changed
        assert current_class(setup, tmp_path) is READ


async def test_a_trusted_server_that_turns_a_tool_harmless_is_believed_and_it_is_told(tmp_path):
    write_tool(tmp_path, HARMLESS, WRITES)
    async with stand(tmp_path, own("turns", trusted=True)) as setup:
        tool = await listed_tool(setup, tmp_path)
        assert (tool.declared_class, current_class(setup, tmp_path)) == (CHANGE, CHANGE)
        identity = {tool.name: tool.identity for tool in setup.servers.tools(tmp_path)}["own__turn"]
        write_tool(tmp_path, HARMLESS, READS)
        tool = await listed_tool(setup, tmp_path)
        assert (tool.declared_class, current_class(setup, tmp_path)) == (READ, READ)
        assert {tool.name: tool.identity for tool in setup.servers.tools(tmp_path)}["own__turn"] != identity
        (sentence,) = notices(setup)
        assert "says that the tool only reads, and you trust the server" in sentence


async def test_restrictions_hold_whatever_becomes_of_the_tool(tmp_path):
    write_tool(tmp_path, HARMLESS, WRITES)
    async with stand(tmp_path, own("turns", trusted=True)) as setup:
        tool = await listed_tool(setup, tmp_path)
        await setup.keep((setup.configured[0].with_tool_class_override("turn", tool.digest, CHANGE),))
        write_tool(tmp_path, {"description": "Only looks, truly."}, READS)
        tool = await listed_tool(setup, tmp_path)
        assert (current_class(setup, tmp_path), tool.has_changed) == (CHANGE, False)
        await setup.change(off_tools=frozenset({"turn"}))
        write_tool(tmp_path, {"description": "Call me."}, READS)
        assert not (await listed_tool(setup, tmp_path)).is_enabled
        assert "own__turn" not in {tool.name for tool in setup.servers.tools(tmp_path)}


async def test_a_word_of_an_older_file_that_names_no_digest_loads_and_allows_nothing(tmp_path):
    write_tool(tmp_path, HARMLESS)
    older = own("turns").model_dump(mode="json", exclude={"chosen_for"}) | {"classes": {"turn": "read_only"}}
    async with stand(tmp_path, McpServer.model_validate(older)) as setup:
        tool = await listed_tool(setup, tmp_path)
        assert (current_class(setup, tmp_path), tool.has_changed) == (CHANGE, True)
        taken_back = setup.configured[0].with_tool_class_override("turn", tool.digest, None)
        assert (taken_back.classes, taken_back.chosen_for) == ({}, {})


async def test_one_that_changes_on_and_on_is_asked_later_and_later(tmp_path, monkeypatch):
    waits: list[float] = []
    async with stand(tmp_path, own()) as setup:

        async def counted(pause=0.0):
            waits.append(pause)
            place._refreshed_at = asyncio.get_running_loop().time()
            place._is_paused = False

        setup.servers.server("own", None)
        (place,) = setup.servers._instances.values()
        monkeypatch.setattr(place, "_refresh", counted)
        for _ in range(9):
            place.schedule_refresh()
            place.schedule_refresh()
            await place._task
        assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60]
        place._refreshed_at -= 61
        place.schedule_refresh()
        await place._task
        assert waits[-1] == 0


async def exchanged(store: ToolDigestStore, server: str, digests: dict[str, str]) -> dict[str, str]:
    before, refusal = await store.exchange(server, digests)
    assert refusal is None
    return before


async def test_names_that_are_remembered_are_bounded_and_the_newest_stay(tmp_path):
    digests = ToolDigestStore(tmp_path)
    for batch in range(8):
        await digests.exchange("s", {f"t{batch}_{number}": "d" for number in range(200)})
    known = await exchanged(digests, "s", {})
    assert len(known) == MAX_NAMES
    assert "t7_199" in known
    assert "t0_0" not in known


async def test_two_processes_keep_what_the_other_has_seen(tmp_path):
    one, other = ToolDigestStore(tmp_path), ToolDigestStore(tmp_path)
    assert await exchanged(one, "a", {"x": "1"}) == {}
    assert await exchanged(other, "b", {"y": "1"}) == {}
    await asyncio.gather(
        *(store.exchange(name, {"x": "1"}) for name, store in (("c", one), ("d", other), ("e", one), ("f", other)))
    )
    later = ToolDigestStore(tmp_path)
    assert [await exchanged(later, name, {}) for name in "acdef"] == [{"x": "1"}] * 5
    # Whoever has seen a tool before says that it changed, whatever another has seen meanwhile.
    assert await exchanged(other, "a", {"x": "2"}) == {"x": "1"}
    assert await exchanged(one, "a", {"x": "2"}) == {"x": "1"}
    assert await exchanged(ToolDigestStore(tmp_path), "a", {}) == {"x": "2"}


async def test_a_change_is_told_on_a_disk_that_is_full_too(tmp_path, monkeypatch):
    write_tool(tmp_path, HARMLESS)
    async with stand(tmp_path, own("turns")) as setup:
        await listed_tool(setup, tmp_path)
    write_tool(tmp_path, {"description": "Sends everything away."})

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(mcp_tools, "write_atomically", refuse)
    async with stand(tmp_path, own("turns")) as setup:
        await listed_tool(setup, tmp_path)
        refused, changed = notices(setup)
        assert "room" in refused
        assert "no longer apply" in changed


async def test_what_cannot_be_read_now_is_not_overwritten(tmp_path):
    await exchanged(ToolDigestStore(tmp_path), "a", {"x": "1"})
    file = tmp_path / "mcp_tools.json"
    file.rename(tmp_path / "aside")
    file.mkdir()
    store = ToolDigestStore(tmp_path)
    before, refusal = await store.exchange("b", {"y": "1"})
    assert (before, isinstance(refusal, StorageFailed)) == ({}, True)
    file.rmdir()
    (tmp_path / "aside").rename(file)
    assert await exchanged(store, "b", {"y": "2"}) == {"y": "1"}
    assert await exchanged(store, "a", {"x": "2"}) == {"x": "1"}
