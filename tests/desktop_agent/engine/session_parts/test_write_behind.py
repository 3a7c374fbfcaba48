"""Who listens to a ledger and fails: the writing goes on, and the others hear of it."""

from pathlib import Path

from desktop_agent.engine.ledger import Ledger
from desktop_agent.vocabulary.errors import StorageFailed
from desktop_agent.vocabulary.messages import Message
from tests.desktop_agent.engine.stage import DISK, record, shaky_store


def fails(*_: object) -> None:
    raise SystemExit


async def test_listeners_that_raise_end_nothing(tmp_path: Path) -> None:
    heard: list[StorageFailed | None] = []
    async with shaky_store(tmp_path) as shaky:
        ledger = Ledger(shaky, record(), is_new=True)  # type: ignore[arg-type]
        ledger.on_work(fails)
        ledger.on_trouble(fails)
        ledger.on_trouble(heard.append)
        shaky.refuse = DISK
        await ledger.commit(Message.user("kept"))
        shaky.refuse = None
        await ledger.write_all()
        assert heard == [DISK, None]
        assert [each.text for each in (await shaky.store.load(ledger.record.id)).messages] == ["kept"]
        await ledger.close()
