"""Prints each claim of the approval dialog, how many probes tried to disprove it, and which succeeded.

    python -m tests.escape.confinement_probes [NAME ...]

NAME is bubblewrap, Landlock, root (bubblewrap for root), "root Landlock", or none: no confinement at all, which shows
that a probe can get out.
"""

import sys

from tests.escape.confinement_probes.table import ALL, run, table


def main() -> int:
    for name in sys.argv[1:] or ALL:
        print(table(run(name)), end="\n\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
