"""A program in the place of xdg-open."""

import os


def fake_opener(folder, monkeypatch, code):
    """Put a program in the place of the browser: it notes its argument, and ends with this code."""
    program, notes = folder / "xdg-open", folder / "opened"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> "{notes}"\nexit {code}\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return lambda: notes.read_text(encoding="utf-8").split() if notes.exists() else []
