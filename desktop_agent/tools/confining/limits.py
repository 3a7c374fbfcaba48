"""How much of the machine a process may use, with all that it starts (setrlimit(2))."""

import platform
import re


def limit_process(*, for_good: bool, **most: int) -> None:
    """Limit each of `most`, named as in `resource` without RLIMIT_, where the system knows limits.

    `for_good`: the process cannot raise them again. Who uses up the time of the processor is then ended without a word.
    """
    try:
        import resource
    except ImportError:
        return
    for name, value in most.items():
        limit: int = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(limit)[1]
        own = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (own, own if for_good else hard))


def counts_per_namespace() -> bool:
    """Whether NPROC counts the processes of a user namespace alone, as since Linux 5.14, or all that a user runs."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return found is not None and tuple(map(int, found.groups())) >= (5, 14)
