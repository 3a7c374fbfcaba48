"""Hypothesis draws the same examples whatever modules are loaded."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DRAWING = """
from hypothesis import given, seed, settings, strategies
from tests.frame.examples import ALL, repeat_examples

repeat_examples()
settings.load_profile(ALL)

@seed(1)
@given(strategies.integers(0, 2**32), strategies.text(max_size=9))
def draw(number, text):
    print(number, ascii(text))

draw()
"""


def _drawn(beside: str) -> list[str]:
    command = [sys.executable, "-c", f"import {beside}\n{DRAWING}"]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_examples_are_the_same_beside_other_modules() -> None:
    alone, beside = _drawn("sys"), _drawn("desktop_agent.api.ask_command, ui.app")

    assert len(alone) > 50
    assert alone == beside
