"""`.venv` is made with a Python that suits, and with a fast one where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "packaging/find_python.sh"
SYSTEM = "/usr/bin/python3"


class Pythons:
    """Stand-ins that answer what is asked about a Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, *, suits: bool = True, is_fast: bool = False) -> str:
        path = self.folder / name
        path.write_text(
            f"#!/bin/sh\ncase $2 in *ensurepip*) {str(is_fast).lower()} ;; *) {str(suits).lower()} ;; esac\n"
        )
        path.chmod(0o755)
        return str(path)

    def found(self, named: str = "") -> str:
        environment = {**os.environ, "PATH": str(self.folder), "PYTHON": named}
        done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr


@pytest.fixture
def pythons(tmp_path: Path) -> Pythons:
    return Pythons(tmp_path)


def test_a_fast_one_is_taken_before_the_usual_one(pythons: Pythons) -> None:
    pythons.add("python3")
    pythons.add("python3.13", suits=False, is_fast=True)
    pythons.add("python3.12", is_fast=True)
    assert pythons.found() == "python3.12"


def test_the_usual_one_is_taken_where_it_is_fast(pythons: Pythons) -> None:
    pythons.add("python3", is_fast=True)
    pythons.add("python3.14", is_fast=True)
    assert pythons.found() == "python3"


def test_a_slow_one_is_better_than_none(pythons: Pythons) -> None:
    pythons.add("python3", suits=False)
    pythons.add("python3.11")
    assert pythons.found() in {"python3.11", SYSTEM}


def test_the_one_that_is_named_is_taken(pythons: Pythons) -> None:
    pythons.add("python3", is_fast=True)
    named = pythons.add("own")
    assert pythons.found(named) == named


def test_this_python_suits() -> None:
    assert subprocess.run([SCRIPT, "--suits", sys.executable], check=False).returncode == 0
    assert subprocess.run([SCRIPT, "--suits", "/nowhere/python3"], check=False).returncode != 0


def test_one_that_is_named_and_does_not_suit_is_refused(pythons: Pythons) -> None:
    pythons.add("python3", is_fast=True)
    named = pythons.add("own", suits=False)
    assert pythons.found(named).startswith(f"PYTHON names {named}, which is no Python 3.11 to 3.14.")
