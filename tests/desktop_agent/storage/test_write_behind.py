"""Listeners of the journal queue that raise, and what is written when the event loop has stopped."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message
from tests.fakes.session import DISK, record, shaky_store
from tests.frame.another_loop import raised_on_another_loop


def fails(*_: object) -> None:
    raise SystemExit


async def test_listeners_that_raise_end_nothing(tmp_path: Path) -> None:
    troubles: list[StorageFailed | None] = []
    async with shaky_store(tmp_path) as shaky:
        journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
        journal_queue.on_pending_change(fails)
        journal_queue.on_trouble(fails)
        journal_queue.on_trouble(troubles.append)
        shaky.refuse = DISK
        await journal_queue.commit(Message.user("kept"))
        shaky.refuse = None
        await journal_queue.write_all()
        assert troubles == [DISK, None]
        assert [message.text for message in (await shaky.store.load(journal_queue.record.id)).messages] == ["kept"]
        await journal_queue.close()


@pytest.mark.parametrize("wait", ["gate", "late_gate"])
async def test_what_is_being_written_when_the_loop_stands_still_is_written_once(
    tmp_path: Path, wait: Literal["gate", "late_gate"]
) -> None:
    """The result of the write under way never arrives."""
    async with shaky_store(tmp_path) as shaky:
        journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
        await journal_queue.commit(Message.user("one"))
        gate = asyncio.Event()
        shaky.reached.clear()
        setattr(shaky, wait, gate)
        writing = asyncio.create_task(journal_queue.commit(Message.user("two")))
        await shaky.reached.wait()
        setattr(shaky, wait, None)
        journal_queue.change_record(title="three")
        shaky.refuse = DISK
        assert raised_on_another_loop(journal_queue.write_at_once) is DISK
        shaky.refuse = None
        assert raised_on_another_loop(journal_queue.write_at_once) is None
        loaded = await shaky.store.load(journal_queue.record.id)
        assert [message.text for message in loaded.messages] == ["one", "two"]
        assert loaded.record.title == "three"
        gate.set()
        await writing
        await journal_queue.close()
        assert [message.text for message in (await shaky.store.load(journal_queue.record.id)).messages] == [
            "one",
            "two",
        ]


async def test_a_conversation_that_is_being_begun_when_the_loop_stands_still_has_a_place(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
        gate = shaky.late_gate = asyncio.Event()
        writing = asyncio.create_task(journal_queue.commit(Message.user("one")))
        await shaky.reached.wait()
        shaky.late_gate = None
        assert raised_on_another_loop(journal_queue.write_at_once) is None
        assert not journal_queue.is_new
        gate.set()
        await writing
        await journal_queue.close()
        assert [message.text for message in (await shaky.store.load(journal_queue.record.id)).messages] == ["one"]
