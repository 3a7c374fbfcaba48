"""The person's table of models: read when it is good, named with its line when it is not."""

from pathlib import Path

import pytest

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.model_listings import MODELS_FILE, load_model_overrides


async def notices(folder: Path, content: bytes) -> list[str]:
    (folder / MODELS_FILE).write_bytes(content)
    _, problems = await load_model_overrides(folder)
    return [str(problem) for problem in problems]


async def test_no_file_is_no_table(tmp_path: Path) -> None:
    assert await load_model_overrides(tmp_path) == (None, ())


async def test_a_good_file(tmp_path: Path) -> None:
    assert await notices(tmp_path, b'\xef\xbb\xbf[openai."gpt-6-sol"]\nprice.input = 1.5\n') == []
    table, _ = await load_model_overrides(tmp_path)
    assert table is not None
    assert list(table.rows) == ["openai"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[openai\n", "“models.toml” cannot be used: .*line 1"),
        (b"a = 1\nb = \n", "cannot be used: .*line 2"),
        (b"a = " + b"9" * 5000, "cannot be used: a number is too long"),
        (b"a = " + b"[" * 100_000, "cannot be used: a number is too long, or it is nested too deeply"),
        (b"a = 1\n# \xff\n", "cannot be used: line 2 is not text in UTF-8"),
        (b'[openai."gpt-6-sol"]\nprice.input = "cheap"\n', 'line 2, openai."gpt-6-sol".price.input was left out'),
        (b'[openai]\n"gpt-6-sol" = 3\n', 'In your file “models.toml”, openai."gpt-6-sol" was left out'),
    ],
)
async def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, content: bytes, expected: str) -> None:
    import re

    problems = await notices(tmp_path, content)
    assert len(problems) == 1
    assert re.search(expected, problems[0]), problems


async def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / MODELS_FILE).mkdir()
    table, problems = await load_model_overrides(tmp_path)
    assert table is None
    assert "cannot be used" in str(problems[0])


async def test_a_damaged_file_does_not_keep_the_program_from_starting(tmp_path: Path) -> None:
    (tmp_path / MODELS_FILE).write_text("[broken\n")
    engine = await Engine.open(tmp_path)
    try:
        assert [notice for notice in engine.notices if "models.toml" in str(notice)]
    finally:
        await engine.close()


async def test_what_the_person_wrote_reaches_the_models(tmp_path: Path) -> None:
    (tmp_path / MODELS_FILE).write_text('[anthropic."claude-opus-5"]\nprice.input = 4.5\n')
    engine = await Engine.open(tmp_path)
    try:
        await engine.connections.warm_up()
        known = engine.connections.known_model("anthropic", "claude-opus-5")
        assert known is not None
        assert known.price is not None
        assert (known.price.input, known.price.output) == (4.5, 25)
        assert known.capabilities.context_window == 1_000_000
    finally:
        await engine.close()
