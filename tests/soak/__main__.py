"""`python -m tests.soak TOOL_NAME …`, or `make soak ARGS='TOOL_NAME …'`; without a name, `silence`."""

import sys

from tests.soak import (
    disk_faults,
    kills,
    owners,
    refusals,
    schedules,
    silence,
    window_kills,
    window_refusals,
    window_schedules,
)

_SOAKS = {
    "silence": silence.main,
    "owners": owners.main,
    "disk-faults": disk_faults.main,
    "kills": kills.main,
    "refusals": refusals.main,
    "schedules": schedules.main,
    "window-kills": window_kills.main,
    "window-refusals": window_refusals.main,
    "window-schedules": window_schedules.main,
}


def main() -> int:
    """Return 0 if there were no faults."""
    arguments = sys.argv[1:]
    name = arguments.pop(0) if arguments and arguments[0] in _SOAKS else "silence"
    return _SOAKS[name](arguments)


if __name__ == "__main__":
    sys.exit(main())
