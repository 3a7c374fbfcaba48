import pytest

from desktop_agent.tools.builtin_tools import MAX_ITEMS, update_todos
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.errors import ToolInputInvalid
from desktop_agent.types.tool_calls import ToolClass


async def answer_to(*items: dict[str, str]) -> str:
    tool = update_todos()
    (part,) = await tool.run(tool.checked({"items": list(items)}), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


async def test_the_list_is_a_checklist() -> None:
    items = ({"text": "Read", "state": "done"}, {"text": "Write\nit", "state": "started"}, {"text": "Test"})
    assert await answer_to(*items) == "1 of 3 done.\n\n- [x] Read\n- [~] Write it\n- [ ] Test"
    assert await answer_to() == "The list is empty."


async def test_it_touches_nothing_and_is_bounded() -> None:
    tool = update_todos()
    assert (tool.tool_class, tool.effects) == (ToolClass.READ_ONLY, frozenset())
    for items in ([{"text": ""}], [{"text": "x", "state": "never"}], [{"text": "x"}] * (MAX_ITEMS + 1)):
        with pytest.raises(ToolInputInvalid):
            tool.checked({"items": items})
