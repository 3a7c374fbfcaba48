"""What conversations are moved about while others are chosen."""

import pytest

from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.ui.bridge.test_library import converse, delay_loading, run
from ui.bridge.organiser import Organiser


def test_what_was_chosen_while_several_are_deleted_is_shown(in_loop, tmp_path):
    async def work(bridge):
        long, other, shown = [await converse(bridge, text) for text in ("long", "other", "shown")]
        may_come = delay_loading(bridge, long)
        Organiser(bridge.engine, bridge.library, bridge.tasks).trash([other, shown])
        bridge.library.open(long)
        await until(lambda: bridge.library.current.is_empty)
        may_come.set()
        await bridge.idle()
        assert bridge.library.current.id == long

    run(in_loop, tmp_path, work, Turn(), Turn(), Turn())


@pytest.mark.parametrize("opens", [True, False])
def test_what_was_chosen_while_a_copy_is_made_stays(in_loop, tmp_path, opens):
    async def work(bridge):
        other, copied = [await converse(bridge, text) for text in ("other", "copied")]
        organiser = Organiser(bridge.engine, bridge.library, bridge.tasks)
        organiser.duplicate(copied, "{} (copy)".format)
        if opens:
            bridge.library.open(other)
        else:
            bridge.library.new()
        await bridge.idle()
        assert (bridge.library.current.id == other) == opens
        assert bridge.library.current.is_empty != opens
        assert [record.title for record in await bridge.engine.store.list_conversations()] == [
            "copied (copy)",
            "copied",
            "other",
        ]

    run(in_loop, tmp_path, work, Turn(), Turn())
