"""A program in the place of xdg-open."""

import os


def fake_opener(folder, monkeypatch, code):
    """What stands in for the browser: notes what it was given, and ends with this code."""
    program, noted = folder / "xdg-open", folder / "opened"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> "{noted}"\nexit {code}\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return lambda: noted.read_text(encoding="utf-8").split() if noted.exists() else []
