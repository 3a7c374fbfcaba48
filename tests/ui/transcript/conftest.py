import pytest

from tests.ui.transcript.feeding import NoPictures
from ui.look.theme import LIGHT
from ui.transcript.blocks.colouring.highlighter import Highlighter
from ui.transcript.input import copying
from ui.transcript.look import Look
from ui.transcript.pictures import Thumbnails
from ui.transcript.rows.stage import RowFacts, Stage
from ui.transcript.workshop import Workshop


@pytest.fixture(autouse=True)
def _copies_at_once(monkeypatch):
    """However slow the machine is; tests of copying in slices set their own."""
    monkeypatch.setattr(copying, "_SLICE", 60.0)


@pytest.fixture
def stage(qapp, tmp_path):
    """What a row works with, without a view."""
    workshop, facts = Workshop(), RowFacts()
    highlighter = Highlighter(workshop, facts)
    yield Stage(Look(LIGHT, 100), facts, Thumbnails(NoPictures(tmp_path), workshop), highlighter)
    highlighter.stop()
    workshop.close()
