"""Imports behind a window that is in use."""

import builtins
import gc
import subprocess
import sys
import threading

import pytest
from PySide6.QtCore import QTimer

from tests.fakes.qt_loop import in_loop
from tests.frame.patience import PATIENCE
from ui.__main__ import remove_feature_import_hook
from ui.bridge.late_imports import import_in_slices, import_in_thread

__all__ = ["in_loop"]
RECORDS = """
import gc, threading
collects, thread = gc.isenabled(), threading.current_thread()
"""


IMPORTS = """
import linecache
import PySide6.QtCore
import email.message
before = [name for name in linecache.cache if "email" in name]
from ui.__main__ import remove_feature_import_hook
remove_feature_import_hook()
import http.client
print(bool(before), [name for name in linecache.cache if "http" in name], http.client.__name__)
"""


WITHOUT_GENERATOR = """
import sys
from ui.__main__ import import_qt
finders = list(sys.meta_path)
import_qt()
from PySide6.QtCore import QSize
from shibokensupport.signature.lib import pyi_generator
try:
    QSize("wide")
except TypeError as error:
    print(sys.meta_path == finders, hasattr(pyi_generator, "generate_pyi"), "(w: int, h: int, /)" in str(error))
"""


@pytest.fixture
def rooms(tmp_path, monkeypatch):
    names = ["a_room_behind", "a_second_room", "a_third_room"]
    for name in names:
        (tmp_path / f"{name}.py").write_text(RECORDS)
    monkeypatch.syspath_prepend(tmp_path)
    yield names
    for name in names:
        sys.modules.pop(name, None)


async def test_a_room_is_imported_in_a_thread_that_collects_no_garbage(rooms):
    await import_in_thread(rooms[0])
    room = sys.modules[rooms[0]]
    assert room.thread is not threading.current_thread()
    assert not room.collects
    assert gc.isenabled()


async def test_where_nobody_collects_nobody_does_afterwards(rooms):
    gc.disable()
    try:
        await import_in_thread(rooms[0])
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_between_two_slices_the_window_does_what_waits(qapp, in_loop, rooms):
    counts: list[int] = []
    timer = QTimer()
    timer.timeout.connect(lambda: counts.append(sum(name in sys.modules for name in rooms)))

    async def work():
        timer.start(0)
        await import_in_slices(rooms)
        timer.stop()

    in_loop(work())
    assert {1, 2} <= set(counts)
    assert all(sys.modules[name].thread is threading.current_thread() for name in rooms)


async def test_what_is_left_in_the_middle_is_imported_no_further(rooms):
    await import_in_slices(rooms, lambda: rooms[1] in sys.modules)
    assert [name for name in rooms if name in sys.modules] == rooms[:2]


def test_what_somebody_else_put_over_imports_stays(monkeypatch):
    original = builtins.__import__

    def watched(*args, **kwargs):
        return original(*args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", watched)
    remove_feature_import_hook()
    assert builtins.__import__ is watched


def test_qt_comes_without_its_generator_of_stubs_and_still_says_how_to_call_it():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_GENERATOR], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert run.stdout == "True False True\n"


def test_no_source_is_read_for_an_import_any_more():
    run = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout == "True [] http.client\n"
