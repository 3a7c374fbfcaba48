import pytest

from tests.ui.transcript.feeding import NoPictures
from ui.look.theme import LIGHT
from ui.transcript.blocks.colouring.highlighter import Highlighter
from ui.transcript.input import copying
from ui.transcript.look import RenderStyle
from ui.transcript.pictures import ThumbnailCache
from ui.transcript.rows.stage import RenderContext, RowSignals
from ui.transcript.workshop import JobQueue


@pytest.fixture(autouse=True)
def _copies_at_once(monkeypatch):
    """However slow the machine is; tests of copying in slices set their own."""
    monkeypatch.setattr(copying, "_SLICE_SECONDS", 60.0)


@pytest.fixture
def render_context(qapp, tmp_path):
    """What a row works with, without a view."""
    job_queue, signals = JobQueue(), RowSignals()
    highlighter = Highlighter(job_queue, signals)
    yield RenderContext(RenderStyle(LIGHT, 100), signals, ThumbnailCache(NoPictures(tmp_path), job_queue), highlighter)
    highlighter.stop()
    job_queue.close()
