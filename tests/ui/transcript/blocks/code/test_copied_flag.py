"""A button that says it has copied, for a while."""

import pytest

from ui.style.theme import LIGHT
from ui.transcript.blocks.code import code_block
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.style import RenderStyle


@pytest.fixture
def look(qapp):
    return RenderStyle(LIGHT, 100)


def test_copied_is_said_for_two_seconds(look, monkeypatch):
    now, later, arrived = [100.0], [], []
    monkeypatch.setattr(code_block, "monotonic", lambda: now[0])

    def frames():
        waiting, later[:] = later[:], []
        for callback in waiting:
            callback()

    host = CodeCallbacks(lambda text: None, lambda: None, run_later=later.append, on_arrived=lambda: arrived.append(1))
    block = CodeBlock("x", "py", host)

    def words():
        block.layout(400, look)
        return block._header_buttons()[0].text

    block._copy()
    assert words() == "Copied"
    now[0] += 1.5
    frames()
    block._copy()
    assert len(later) == 1
    now[0] += 1.5
    frames()
    assert words() == "Copied"
    assert not arrived
    now[0] += 0.6
    frames()
    assert arrived == [1]
    assert not block.is_laid_out
    assert words() == "Copy"
    assert not later
