"""`usage`: tokens and cost from a terminal."""

import asyncio
from datetime import date
from pathlib import Path

import pytest

from desktop_agent.__main__ import main
from desktop_agent.storage.store import Store
from desktop_agent.types.spending import NANOS, UsageFigures, UsageKey


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def fill() -> None:
        store = await Store.open(tmp_path / "data")
        await store.usage.add(
            {
                UsageKey(date(2026, 3, 1), "m", "/w"): UsageFigures(answers=2, tokens=300, cost_nanos=NANOS),
                UsageKey(date(2026, 3, 2), "x\x1b[31m", ""): UsageFigures(answers=1, unpriced=1, tokens=50),
            }
        )
        await store.close()

    asyncio.run(fill())
    monkeypatch.setenv("DESKTOP_AGENT_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.mark.usefixtures("data")
def test_a_row_for_each_day_and_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "day         answers  tokens       cost",
        "2026-03-01        2     300    $1.0000",
        "2026-03-02        1      50          ?",
        "total             3     350  >=$1.0000",
    ]


@pytest.mark.usefixtures("data")
def test_by_model_since_a_day(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", "--by", "model", "--since", "2026-03-02"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.splitlines()[1].startswith("x\\x1b[31m")
    assert main(["usage", "--by", "project", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("/w,2,300,")


@pytest.mark.usefixtures("data")
def test_a_day_that_is_none_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["usage", "--since", "yesterday"])
    assert end.value.code == 2
    assert "is not a day such as" in capsys.readouterr().err


def test_nothing_is_created_where_nothing_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKTOP_AGENT_DATA_DIR", str(tmp_path / "none"))
    assert main(["usage"]) in {1, 2}
    assert not (tmp_path / "none").exists()
