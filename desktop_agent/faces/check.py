"""`desktop-agent check`: looks whether all that was saved can be read, and repairs what can be."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from desktop_agent.faces.arguments import parse_check_arguments
from desktop_agent.storage.paths import data_folder
from desktop_agent.storage.store import DATABASE_NAME, Store
from desktop_agent.vocabulary.errors import AgentError, Sentence, StorageFailed

CHECK_DONE, CHECK_FAILED, CHECK_INTERRUPTED = 0, 1, 130


def run_check(argv: Sequence[str]) -> int:
    """Check and print how it went; returns the exit code."""
    folder = parse_check_arguments(argv)
    try:
        return asyncio.run(_check(folder))
    except AgentError as error:
        sys.stderr.write(f"{error.whole}\n")
        return CHECK_FAILED
    except KeyboardInterrupt:
        return CHECK_INTERRUPTED


async def _check(given: Path | None) -> int:
    folder = await asyncio.to_thread(_existing_data_folder, given)
    store = await Store.open(folder)
    try:
        for notice in store.report.notices:
            sys.stdout.write(f"{notice}\n")
        result = await store.integrity_checker.run(full=True)
        if result is not None:
            sys.stdout.write(f"{result}\n")
        # What was lost before it was carried over is gone: that is no success.
        return CHECK_FAILED if store.report.notices else CHECK_DONE
    finally:
        await store.close()


def _existing_data_folder(given: Path | None) -> Path:
    """Nothing is made where nothing was saved. Raises StorageFailed."""
    folder = given.expanduser().absolute() if given is not None else data_folder()
    if not (folder / DATABASE_NAME).exists():
        what = Sentence("There are no saved conversations in “{folder}”.", {"folder": str(folder)})
        raise StorageFailed(what, "Name the folder that has them with --data-dir.")
    return folder
