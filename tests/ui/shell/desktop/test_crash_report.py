"""Exceptions that nobody expected: what is told of them, and what never is."""

import sys

import pytest

from ui.bridge.internal_errors import internal_error
from ui.shell.desktop.crash_report import listen_for_errors


def fail(secret):
    raise ValueError(secret)


def test_an_error_is_described_by_its_kind_and_place_alone():
    with pytest.raises(ValueError, match="sk-secret") as caught:
        fail("sk-secret")
    error = internal_error(caught.value)
    assert str(error.sentence) == "Something went wrong inside the program (ValueError)."
    assert error.detail.startswith("ValueError\n")
    assert "test_crash_report.py:" in error.detail
    assert error.detail.endswith(" fail")
    assert "sk-secret" not in error.detail


def test_an_exception_of_a_slot_is_told_and_still_logged(monkeypatch):
    logged, errors = [], []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: logged.append(error))
    listen_for_errors(errors.append)
    error = TypeError("sk-secret")
    sys.excepthook(TypeError, error, None)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert logged[0] is error
    assert len(logged) == 2
    assert [str(problem.sentence) for problem in errors] == ["Something went wrong inside the program (TypeError)."]
