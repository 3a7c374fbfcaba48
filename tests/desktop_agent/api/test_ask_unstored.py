"""`ask` where the answer cannot be stored: the system refuses files above a size."""

import asyncio
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from desktop_agent.api.ask_command import ERROR, _AskRun
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.ask_command import ROOT, Asked, Asker, finished, serving
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.scripted_provider import ScriptedProvider, Turn

LARGEST_KB = 400


async def limited(words: list[str]) -> Asked:
    """In a process whose files cannot grow beyond a size: what the journal needs fails, what is read does not."""
    limit = f'ulimit -f {LARGEST_KB}; exec "$@"'
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", limit, "bash", sys.executable, "-m", "desktop_agent", *words),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    return await finished(process)


async def test_an_answer_that_was_not_stored_is_said_and_fails(ask: Asker, tmp_path: Path) -> None:
    long = "word " * 200_000
    with serving(Loopback(Reply(sse(chunk({"content": long}), chunk(finish="stop"))))) as server:
        result = await limited(ask.words("Write much", server=server))
    assert result.out.strip() == long.strip()
    assert "The answer was not stored: " in result.err
    assert "only copy" in result.err
    assert result.code == 1


async def test_an_answer_that_was_stored_says_nothing_of_it(ask: Asker) -> None:
    with serving(Loopback(Reply(sse(chunk({"content": "short"}), chunk(finish="stop"))))) as server:
        result = await limited(ask.words("Write little", server=server))
    assert (result.code, result.out) == (0, "short\n")
    assert result.err == f"conversation {result.conversation}\n"


async def test_what_was_lost_in_the_middle_of_a_run_fails_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def never(*_: object, **__: object) -> None:
        raise ValueError("never")

    engine = await Engine.open(tmp_path, RunDefaults(model="m"))
    engine.connections._providers["e"] = ScriptedProvider(Turn(ContentDelta("ok")))
    session = engine.new_session(endpoint_id="e")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", never)
        session._writer.add(Message.user("lost"))
        with pytest.raises(StorageFailed):
            await session.flush()
    arguments = SimpleNamespace(jsonl=False, tools="none", approve="never")
    code = await _AskRun(session, arguments, io.StringIO()).run(Message.user("go on"))  # type: ignore[arg-type]
    assert code == ERROR
    assert "The answer was not stored: " in capsys.readouterr().err
    await engine.close()
