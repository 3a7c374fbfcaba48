"""Where rows stand after others came and went: the numbers in a frame's changes are those of their own moment."""

from collections.abc import Sequence

from desktop_agent.conversation.items import Added, Change, Removed


def index_after(index: int, changes: Sequence[Change]) -> int | None:
    """The number that a row has after these changes; None when it is gone."""
    for change in changes:
        match change:
            case Added(at) if at <= index:
                index += 1
            case Removed(first, count) if first <= index:
                if index < first + count:
                    return None
                index -= count
            case _:
                pass
    return index


def control_after(where: tuple[int, str], change: Change) -> tuple[int, str]:
    """A control, by its row's number and its key, after this change; (-1, "") when it is gone."""
    row = index_after(where[0], [change]) if where[0] >= 0 else None
    return (-1, "") if row is None else (row, where[1])
