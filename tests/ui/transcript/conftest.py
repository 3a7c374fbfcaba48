import pytest

from tests.fakes.transcript_feed import NoPictures
from ui.style.theme import LIGHT
from ui.transcript import clipboard
from ui.transcript.blocks.code.highlighter import Highlighter
from ui.transcript.blocks.diagram_renderer import DiagramCache
from ui.transcript.blocks.image_store import RemoteImages, ThumbnailCache
from ui.transcript.blocks.math.formulas import FormulaCache
from ui.transcript.rows.render_context import RenderContext, RowSignals, SecondTimer
from ui.transcript.style import RenderStyle
from ui.transcript.workers import JobQueue


@pytest.fixture(autouse=True)
def _copies_at_once(monkeypatch):
    """Let copying end in one slice however slow the machine is; tests of slices set their own limit."""
    monkeypatch.setattr(clipboard, "_SLICE_SECONDS", 60.0)


@pytest.fixture
def render_context(qapp, tmp_path):
    """Return what a row works with, without a view."""
    job_queue, signals = JobQueue(), RowSignals()
    highlighter = Highlighter(job_queue, signals)
    formulas, diagrams, seconds = FormulaCache(job_queue), DiagramCache(), SecondTimer(signals)
    thumbnails, remote = ThumbnailCache(NoPictures(tmp_path), job_queue), RemoteImages(signals)
    style = RenderStyle(LIGHT, 100)
    yield RenderContext(style, signals, thumbnails, highlighter, formulas, remote, diagrams, seconds)
    highlighter.stop()
    diagrams.close()
    seconds.stop()
    job_queue.close()
