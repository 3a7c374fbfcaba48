"""A button that says it has copied, for a while."""

import pytest

from ui.style.theme import LIGHT
from ui.transcript.blocks.code import code_block
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.style import RenderStyle


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


def test_copied_is_said_for_two_seconds(style, monkeypatch):
    time, callbacks, arrivals = [100.0], [], []
    monkeypatch.setattr(code_block, "monotonic", lambda: time[0])

    def frames():
        ready, callbacks[:] = callbacks[:], []
        for callback in ready:
            callback()

    host = CodeCallbacks(
        lambda text: None, lambda: None, run_later=callbacks.append, on_arrived=lambda: arrivals.append(1)
    )
    block = CodeBlock("x", "py", host)

    def words():
        block.layout(400, style)
        return block._header_buttons()[0].text

    block._copy()
    assert words() == "Copied"
    time[0] += 1.5
    frames()
    block._copy()
    assert len(callbacks) == 1
    time[0] += 1.5
    frames()
    assert words() == "Copied"
    assert not arrivals
    time[0] += 0.6
    frames()
    assert arrivals == [1]
    assert not block.is_laid_out
    assert words() == "Copy"
    assert not callbacks
