"""The way to the process that reads a page."""

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pydantic import BaseModel, ValidationError

from desktop_agent.tools.in_thread import run_in_thread
from desktop_agent.tools.processes.running import ProcessResult, run_process
from desktop_agent.tools.web.reading.child import SECONDS
from desktop_agent.vocabulary.errors import ExtraMissing, Sentence, ToolFailed

READ_SECONDS = 20.0
"""Seconds; pages that people read take less than one."""

_MAX_OUTPUT = 40_000_000
"""Characters that the child may answer with; each of its own may be written as twelve."""

# How the system ends who used up its time of the processor, and how the child's own clock does (setrlimit(2)).
_OUT_OF_TIME = frozenset(-getattr(signal, name) for name in ("SIGXCPU", "SIGKILL", "SIGALRM") if hasattr(signal, name))
_PROCESS_FILE = Path(__file__).with_name("child.py")


class ReadPage(BaseModel):
    """A page as Markdown. `hidden` is how many unseen characters were taken out of it, `transparent` how many were not
    read because nobody sees them unless a script changes that; `cut`: its end is missing."""

    title: str
    text: str
    hidden: int
    cut: bool
    transparent: int = 0


class _ReadRequest(BaseModel):
    html: str
    base: str


@dataclass(frozen=True, slots=True)
class WebPageReader:
    """Starts a process for each page; `command` starts it."""

    command: tuple[str, ...]
    patience: float = READ_SECONDS

    async def read(self, html: str, address: str) -> ReadPage:
        """Raises ToolFailed for a page that takes too long or too much memory, and ExtraMissing."""
        if not all(find_spec(name) for name in ("selectolax", "bs4", "markdownify")):
            raise ExtraMissing.of("Reading pages of the web", "web")
        request = await run_in_thread(lambda _token: _ReadRequest(html=html, base=address).model_dump_json().encode())
        try:
            async with asyncio.timeout(self.patience):
                end = await run_process(
                    self.command, cwd=_PROCESS_FILE.anchor, env=_environment(), stdin=request, output_limit=_MAX_OUTPUT
                )
        except TimeoutError:
            raise _too_slow(address, self.patience) from None
        return await run_in_thread(lambda _token: _parse_answer(end, address))


def default_reader() -> WebPageReader:
    """With the interpreter that runs this program. A frozen program is its own interpreter."""
    if getattr(sys, "frozen", False):
        return WebPageReader((sys.executable, "--child", "page"))
    return WebPageReader((sys.executable, "-I", "-B", "-X", "utf8", str(_PROCESS_FILE)))


def _environment() -> dict[str, str]:
    """Nothing of the person's but what the system needs to start a program."""
    return {name: os.environ[name] for name in ("SYSTEMROOT", "PATH") if name in os.environ}


def _too_slow(address: str, seconds: float) -> ToolFailed:
    values = {"address": address, "seconds": f"{seconds:g}"}
    what = Sentence("Reading the page at “{address}” took longer than {seconds} seconds.", values)
    return ToolFailed(what, "Its HTML is built to be slow or very large; look for another page.")


def _parse_answer(end: ProcessResult, address: str) -> ReadPage:
    try:
        if end.exit_code == 0 and not end.truncated:
            return ReadPage.model_validate_json(end.output)
    except ValidationError:
        pass
    if end.exit_code in _OUT_OF_TIME:
        raise _too_slow(address, SECONDS)
    what = Sentence("The page at “{address}” could not be read.", {"address": address})
    remedy = "Its HTML is broken, very large, or built to do harm; look for another page."
    raise ToolFailed(what, remedy, detail=f"exit code {end.exit_code}")
