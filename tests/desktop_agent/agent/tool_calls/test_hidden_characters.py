"""Invisible characters in tool results: a model reads them marked, as the person does."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.agent.tool_calls.tool_results import content_size, validated_content, visible_text
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.processes.foreign_code import clean_json
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Json, Text, ToolUse
from desktop_agent.types.engine_events import ToolProgress
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.policies import Limits
from tests.fakes.mcp_client import load_tool_offer, own_server, program
from tests.fakes.tool_batch import Desk, call, tool, until

SMUGGLED = "".join(chr(0xE0000 + ord(letter)) for letter in "rm")
MARKED = "⟨U+E0072⟩⟨U+E006D⟩"


async def results_of(tools: tuple[AnyTool, ...], *calls: tuple[str, dict[str, Any]]) -> Desk:
    uses = [ToolUse(id=str(index), name=name, input=arguments) for index, (name, arguments) in enumerate(calls)]
    permission_policy = PermissionPolicy([Rule(effect=RuleEffect.ALLOW, tool="*")])
    desk = Desk(*uses, tools=tools, permission_policy=permission_policy)
    await desk.run()
    return desk


async def results_in(folder: Path, *calls: tuple[str, dict[str, Any]]) -> Desk:
    return await results_of(builtin_tools(Workspace(folder), "all"), *calls)


FILE = f"plain\n\u202elive\u202c{SMUGGLED}\nhid\u200bden\x1b[8m x\n"


async def test_files_are_read_and_searched_with_marks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(FILE)
    desk = await results_in(tmp_path, ("read_file", {"path": "a.txt"}), ("search_files", {"pattern": "live"}))
    assert desk.words[0] == f"plain\n⟨U+202E⟩live⟨U+202C⟩{MARKED}\nhid⟨U+200B⟩den⟨U+001B⟩[8m x\n"
    assert f"⟨U+202E⟩live⟨U+202C⟩{MARKED}" in desk.words[1]
    assert not {"\u202e", SMUGGLED[0]} & set("".join(desk.words))


async def test_names_of_files_are_listed_and_found_with_marks(tmp_path: Path) -> None:
    (tmp_path / "exe\u202etxt.py").touch()
    desk = await results_in(tmp_path, ("list_files", {"path": "."}), ("find_files", {"names": "*.py"}))
    assert ["exe�txt.py" in text for text in desk.words] == [True, True]
    assert "\u202e" not in "".join(desk.words)


async def test_what_a_command_writes_has_no_commands_for_a_terminal(tmp_path: Path) -> None:
    line = r"printf '\033[31mred\033[0m \033]0;title\007x\n10%%\r20%%\r\nbad\342\200\256 \007end\n'"
    desk = await results_in(tmp_path, ("run_command", {"command": line}))
    assert desk.words[0].startswith("red x\n10%\n20%\nbad⟨U+202E⟩ ⟨U+0007⟩end\n[exit code 0.")


async def test_a_failed_command_says_its_words_with_marks(tmp_path: Path) -> None:
    arguments = {"command": r"printf 'a\033[8mb\342\200\256\n'; sleep 600", "timeout_seconds": 1}
    desk = await results_in(tmp_path, ("run_command", arguments))
    assert "ab⟨U+202E⟩" in desk.words[0]


async def test_a_server_s_words_are_marked(tmp_path: Path) -> None:
    async with program(own_server(), tmp_path) as live:
        offer = await load_tool_offer(live)
        desk = await results_of(tuple(offer.tools), ("srv__hostile", {"kind": "unseen"}))
    assert desk.words[0] == f"see⟨U+200B⟩n {MARKED}"


async def test_json_is_marked_in_names_and_values() -> None:
    async def work(_word: str, _call: RunningCall) -> Any:
        return (Json(value={"a\u202e": ["b\u200b", {"c": 1}], "\r\n": "\x1b"}),)

    desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)])
    await desk.run()
    (part,) = desk.results[0].content
    # Control characters are sent as escapes in any case.
    assert part == Json(value={"a⟨U+202E⟩": ["b⟨U+200B⟩", {"c": 1}], "\r\n": "\x1b"})


@pytest.mark.parametrize("reads", [True, False])
async def test_what_a_stopped_call_had_shown_is_marked(reads: bool) -> None:
    async def work(_word: str, running: RunningCall) -> str:
        running.progress("a\x1b[31mb\u202e\n")
        await asyncio.sleep(600)
        return ""

    permission_policy = PermissionPolicy([Rule(effect=RuleEffect.ALLOW, tool="*")])
    desk = Desk(call("1", "look"), tools=[tool("look", work, reads=reads)], permission_policy=permission_policy)
    running = desk.start()
    await until(lambda: desk.memory.of(ToolProgress))
    desk.round.stop()
    await running
    assert "ab⟨U+202E⟩\n" in desk.words[0]


ORDINARY = [
    "a\tb\n\n  c\n",
    "Grüße, Привет, 日本語, שלום\u200f!\n",
    "👩\u200d🚀 ❤\ufe0f 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f\n",
    "می\u200cخواهم क्\u200dष\n",
    "Donau\u00addampf\u00adschiff\n",
]


@pytest.mark.parametrize("text", ORDINARY)
async def test_what_belongs_to_a_language_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    desk = await results_in(tmp_path, ("read_file", {"path": "a.txt"}), ("run_command", {"command": "cat a.txt"}))
    assert desk.words[0] == text
    assert desk.words[1].startswith(text)


@pytest.mark.parametrize("line", ["cat a.txt", "head -n 1 a.txt"])
async def test_a_byte_order_mark_at_the_beginning_is_no_word(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.txt").write_text("\ufeffone\ntwo\n")
    desk = await results_in(tmp_path, ("read_file", {"path": "a.txt"}), ("run_command", {"command": line}))
    assert [text.startswith("one\n") for text in desk.words] == [True, True]


async def test_lines_beside_marked_ones_can_be_edited_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(FILE)
    change = {"path": "a.txt", "old_text": "plain\n", "new_text": "changed\n"}
    await results_in(tmp_path, ("edit_file", change))
    assert (tmp_path / "a.txt").read_text() == FILE.replace("plain", "changed")


MARK = "⟨U\\+[0-9A-F]{4,5}⟩"
HIDDEN = "\u202e\u200b\x9b\U000e0072\ufeff"


def length(parts: tuple[Any, ...]) -> int:
    """Return the length without the note about what was cut."""
    return sum(
        len(part.text.partition("\n[cut")[0]) if isinstance(part, Text) else content_size(part) for part in parts
    )


@pytest.mark.parametrize(
    "part",
    [Text(text=f"a{HIDDEN}" * 4), Json(value={f"a{HIDDEN}": [HIDDEN]}), Json(value=HIDDEN * 4)],
    ids=["text", "object", "string"],
)
async def test_what_is_cut_is_marked_and_no_mark_makes_it_longer_or_is_cut_itself(part: Any) -> None:
    for most in range(1, 180):
        parts = await validated_content([part], most)
        assert length(parts) <= most
        words = "".join(piece.text if isinstance(piece, Text) else str(piece.value) for piece in parts)
        assert not set(HIDDEN) & set(words)
        assert words.count("⟨") == len(re.findall(MARK, words))


async def test_why_a_call_failed_is_no_longer_for_its_marks() -> None:
    async def fails(*_arguments: Any) -> Any:
        raise ToolFailed(HIDDEN * 100)

    desk = Desk(
        call("1", "bad"), tools=[replace(tool("bad", reads=True), run=fails)], limits=Limits(result_characters=99)
    )
    await desk.run()
    (words,) = desk.words
    assert words.count("⟨U+202E⟩") < 99 / 8
    assert words.count("⟨") == len(re.findall(MARK, words))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"\ufeffa": 1, "a": 2}, {"⟨U+FEFF⟩a": 1, "a": 2}),
        ({"a": "\ufeffb"}, {"a": "⟨U+FEFF⟩b"}),
        ({"a\x7f": "b\x7f", "\x1b": "\x1b"}, {"a⟨U+007F⟩": "b⟨U+007F⟩", "\x1b": "\x1b"}),
        ({"⟨U+200B⟩": 1, "\u200b": 2}, {"⟨U+200B⟩": 1, "⟨U+200B⟩⟨1⟩": 2}),
        ([{"a\ud800": 1, "a?": 2}], [{"a?": 1, "a?⟨1⟩": 2}]),
        ({"1": "a", 1: "b"}, {"1": "a", "1⟨1⟩": "b"}),
    ],
)
async def test_no_name_in_json_is_lost(value: Any, shown: Any) -> None:
    assert await validated_content([Json(value=value)], 1_000) == (Json(value=shown),)


def test_no_name_is_lost_where_half_characters_go() -> None:
    assert clean_json({"a\ud800": 1, "a?": 2}) == {"a?": 1, "a?⟨1⟩": 2}


@pytest.mark.parametrize("text", ["\ufeffabc", "a\r\nb", "\ufeff\r\nab", "\r\r\n\r\n"])
async def test_what_is_not_shown_takes_no_room(text: str) -> None:
    shown = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    assert visible_text(text, len(shown)) == shown
    assert await validated_content([Text(text=text)], len(shown)) == (Text(text=shown),)
    assert visible_text(text, len(shown) - 1) == shown[:-1]
