from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.calculator import calculate
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool, ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.tool_calls import Effect, ToolClass


class Nothing(BaseModel):
    pass


async def run(_input: Nothing, _call: RunningCall) -> tuple[Text, ...]:
    return ()


def named(name: str) -> AnyTool:
    return Tool(name=name, description="", schema=ModelSchema(Nothing), run=run)


def test_two_tools_of_one_name_are_wrong_use() -> None:
    with pytest.raises(WrongUse, match="two tools named “same”"):
        ToolRegistry([named("same"), named("other"), named("same")])


def test_names_are_case_sensitive_and_keep_their_order() -> None:
    registry = ToolRegistry([named("b"), named("A"), named("a")])
    assert registry.names == ("b", "A", "a")
    assert registry.get("B") is None
    assert registry.get("A") is not registry.get("a")
    assert [spec.name for spec in registry.specs()] == ["b", "A", "a"]
    assert [spec.name for spec in registry.specs(["a", "b"])] == ["a", "b"]
    with pytest.raises(WrongUse, match="no tool named “c”"):
        registry.specs(["c"])


def test_an_unknown_tool_counts_as_mutating() -> None:
    registry = ToolRegistry([calculate(), named("plain")])
    assert registry.class_of("calculate") is ToolClass.READ_ONLY
    assert registry.class_of("plain") is ToolClass.MUTATING
    assert registry.class_of("Calculate") is ToolClass.MUTATING


def test_class_and_effects_may_be_given_by_their_words() -> None:
    def make_tool(**facts: Any) -> AnyTool:
        return Tool(name="n", description="", schema=ModelSchema(Nothing), run=run, **facts)

    assert make_tool(tool_class="mutating").tool_class is ToolClass.MUTATING
    for effects in ("write", ["write"], {Effect.WRITE}):
        assert [type(effect) for effect in make_tool(effects=effects).effects] == [Effect]
    for facts in ({"tool_class": "read-only"}, {"tool_class": None}, {"effects": "wirte"}, {"effects": [5]}):
        with pytest.raises(WrongUse, match="tool “n” cannot be or do"):
            make_tool(**facts)


def test_the_sets_of_built_in_tools(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)

    def names(*arguments: object) -> list[str]:
        return [tool.name for tool in builtin_tools(*arguments)]  # type: ignore[arg-type]

    assert names(workspace, "none") == []
    assert names(None, "read") == names(None, "all") == ["calculate", "update_todos", "fetch_page"]
    reading = ["read_file", "list_files", "find_files", "search_files", "view_image"]
    assert names(workspace, "read") == ["calculate", "update_todos", "fetch_page", *reading]
    changing = ["write_file", "edit_file", "move_file", "delete_file", "run_command"]
    assert names(workspace, "all") == ["calculate", "update_todos", "fetch_page", *reading, *changing]


def test_read_only_tools_say_so(tmp_path: Path) -> None:
    reading = builtin_tools(Workspace(tmp_path), "read")
    assert {tool.tool_class for tool in reading} == {ToolClass.READ_ONLY}
    assert {effect for tool in reading for effect in tool.effects} == {Effect.READ, Effect.NETWORK}
    changing = [
        tool for tool in builtin_tools(Workspace(tmp_path), "all") if tool.name not in {t.name for t in reading}
    ]
    assert {tool.tool_class for tool in changing} == {ToolClass.MUTATING}
    assert all(tool.preview and tool.subjects for tool in changing)


def test_the_same_tool_on_another_folder_has_another_identity(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, second = (builtin_tools(Workspace(folder), "all")[-1] for folder in (tmp_path, tmp_path / "other"))
    arguments = {"path": "a", "content": "b"}
    assert first.digest(arguments) != second.digest(arguments)


def test_who_changes_a_schema_changes_only_what_they_got() -> None:
    spec = named("a").spec
    spec.input_schema["properties"] = {"harm": {}}
    assert "harm" not in str(named("a").spec)
