"""The job object of Windows: a program with all that it starts, ended at once. Not tried on Windows yet (ADR 0032)."""

import ctypes
import sys
from contextlib import suppress
from typing import Any

import psutil

from desktop_agent.types.errors import Sentence, ToolFailed

# CREATE_SUSPENDED and CREATE_NO_WINDOW. Suspended, a program starts nothing before it is in the job.
_CREATION_FLAGS = 0x00000004 | 0x08000000
KILL_ON_JOB_CLOSE = 0x00002000
_SET_QUOTA_AND_TERMINATE = 0x0100 | 0x0001
_BASIC_ACCOUNTING, _EXTENDED_LIMITS = 1, 9
_EXIT_CODE = 1

# ctypes.wintypes has a DWORD of eight bytes on Linux, where the layout is tested.
_DWORD, _HANDLE, _BOOL = ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int32


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", _DWORD),
        ("min_working_set", ctypes.c_size_t),
        ("max_working_set", ctypes.c_size_t),
        ("active_process_limit", _DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority", _DWORD),
        ("scheduling", _DWORD),
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", _BasicLimits),
        ("io_counters", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


class BasicAccounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

    _fields_ = (
        ("times", ctypes.c_int64 * 4),
        ("page_faults", _DWORD),
        ("processes", _DWORD),
        ("active_processes", _DWORD),
        ("terminated_processes", _DWORD),
    )


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "CreateJobObjectW": (_HANDLE, (ctypes.c_void_p, ctypes.c_wchar_p)),
    "SetInformationJobObject": (_BOOL, (_HANDLE, ctypes.c_int, ctypes.c_void_p, _DWORD)),
    "QueryInformationJobObject": (_BOOL, (_HANDLE, ctypes.c_int, ctypes.c_void_p, _DWORD, ctypes.c_void_p)),
    "OpenProcess": (_HANDLE, (_DWORD, _BOOL, _DWORD)),
    "AssignProcessToJobObject": (_BOOL, (_HANDLE, _HANDLE)),
    "TerminateJobObject": (_BOOL, (_HANDLE, ctypes.c_uint)),
    "CloseHandle": (_BOOL, (_HANDLE,)),
}


def load_kernel32() -> Any:
    """Return the functions of Windows that a job needs, with their signatures. Raises OSError elsewhere."""
    if sys.platform != "win32":
        raise OSError("Job objects are of Windows.")
    library = ctypes.WinDLL("kernel32")
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class JobObject:
    """A job that ends all its processes when it is closed, also because this program ended.

    Whatever a process in it starts is in it too. It has the methods of ProcessTree. What services of Windows start for
    a program (WMI, the task scheduler) is not in it.
    """

    ids = ()
    creation_flags = _CREATION_FLAGS
    """The flags for starting a process that it will adopt."""

    def __init__(self, kernel32: Any) -> None:
        self._kernel32 = kernel32
        self._job = kernel32.CreateJobObjectW(None, None)
        if not self._job:
            raise _not_held("CreateJobObjectW")
        limits = ExtendedLimits()
        limits.basic.flags = KILL_ON_JOB_CLOSE
        if not kernel32.SetInformationJobObject(
            self._job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
        ):
            self.close()
            raise _not_held("SetInformationJobObject")

    def adopt(self, pid: int) -> None:
        """Add a suspended process to the job, and let it run. Raises ToolFailed, and kills it, where that fails."""
        try:
            process = self._kernel32.OpenProcess(_SET_QUOTA_AND_TERMINATE, 0, pid)
            if not process:
                raise _not_held("OpenProcess")
            try:
                if not self._kernel32.AssignProcessToJobObject(self._job, process):
                    raise _not_held("AssignProcessToJobObject")
            finally:
                self._kernel32.CloseHandle(process)
            # Another program may have ended it.
            with suppress(psutil.NoSuchProcess):
                psutil.Process(pid).resume()
        except (ToolFailed, psutil.Error) as error:
            # It has done nothing yet.
            with suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
            raise error if isinstance(error, ToolFailed) else _not_held("resume") from error

    def terminate(self) -> int:
        """End all processes at once; return how many there were."""
        count = self._active_processes()
        self._kernel32.TerminateJobObject(self._job, _EXIT_CODE)
        return count

    def kill(self) -> int:
        """End all once more; return how many were left."""
        return self.terminate()

    def is_alive(self) -> bool:
        """Return whether any process of the job still runs."""
        return self._active_processes() > 0

    def close(self) -> None:
        """Close the job, which ends whatever is left in it."""
        self._kernel32.CloseHandle(self._job)

    def _active_processes(self) -> int:
        accounting = BasicAccounting()
        self._kernel32.QueryInformationJobObject(
            self._job, _BASIC_ACCOUNTING, ctypes.byref(accounting), ctypes.sizeof(accounting), None
        )
        return accounting.active_processes


def _not_held(function: str) -> ToolFailed:
    return ToolFailed(
        Sentence(
            "The program was not started, because its child processes could not be ended later ({function}).",
            {"function": function},
        )
    )
