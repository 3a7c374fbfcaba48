"""Every action in the window while the disk refuses writes: `python -m tests.soak window-refusals`.

The real window runs in a namespace of its own, on a small file system that becomes full or read-only when an action
begins. The screen must report it with a remedy, or the action must succeed. Then the disk is repaired: the next prompt
is answered, and every prompt shown on the screen is in the database, also when the window is opened anew. The same
actions without the window are in tests/soak/refusals.py.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.desktop_agent.exchange.readers.foreign_homes import write_claude_code
from tests.fakes.threaded_model_server import MODEL, Asked, ModelServer, Story
from tests.fakes.window_process import Screen, opened, wait_until
from tests.frame.displays import readable_display
from tests.soak.kills import ROOT
from tests.soak.refusals import DONE, FULL, READ_ONLY, Report, break_disk, small_disk
from tests.soak.window_kills import Person, read_stored

CONDITIONS = (FULL, READ_ONLY)
_REMEDIES = ("Free some space", "Make it writable", "can be written", "hoose another")
_FOUND = "What a.py does"
_SECONDS = 8.0
"""Seconds in which an action must be refused or done."""


class _Person(Person):
    """A person with more actions, whose model answers briefly."""

    def __init__(self, chance: random.Random, folder: Path, new_folder: Path) -> None:
        super().__init__(chance, folder)
        self._new_folder = new_folder

    def answer(self, _: Asked) -> Story:
        return Story(f"{self.word()} " for _ in range(3))

    def version(self) -> None:
        self._command("Previous version")

    def branch(self) -> None:
        self._screen.focus("Transcript")
        self._screen.keys("Home", "b")

    def duplicate(self) -> None:
        self._command("Duplicate this conversation")

    def summarise(self) -> None:
        self._command("Summarise older messages")

    def archive(self) -> None:
        self._command("Archive this conversation")

    def folder(self) -> None:
        self._command("New folder…")
        self._screen.write("Name of the folder", self.word())
        self._screen.press("Create")

    def tag(self) -> None:
        self._command("Tags of this conversation…")
        self._screen.wait_for("Tags", "text")
        self._screen.write("Tags", self.word())
        self._screen.keys("Return")
        self._screen.press("Done")

    def back_up(self) -> None:
        self._storage("Back up now")

    def restore(self) -> None:
        self._storage("Restore into a new folder…", beginning="Backup of ")
        self._screen.write("Directory:", str(self._new_folder))
        wait_until("Choose can be pressed", lambda: "enabled" in self._screen.wait_for("Choose")["states"])
        self._screen.press("Choose")

    def show_found(self) -> None:
        """Open a conversation of another program, which can be continued."""
        self._screen.press("Show")
        self._screen.press(self._screen.wait_line("Claude Code, conversations: 1, closed"))
        self._screen.press(self._screen.wait_line(f"{_FOUND}, "))
        self._screen.wait_for("Continue here")

    def continue_found(self) -> None:
        self._screen.press("Continue here")

    def compact(self) -> None:
        self._storage("Compact")

    def check(self) -> None:
        self._command("Check saved conversations")

    def schedule(self) -> None:
        self._command("Scheduled prompts")
        self._screen.press("Add scheduled prompt…")
        self._screen.write("Name", self.word())
        self._screen.write("Prompt", self.word())
        self._screen.press("Save")

    def _storage(self, name: str, *, beginning: str = "") -> None:
        self._screen.keys("ctrl+comma")
        self._screen.wait_for("Sections")
        self._screen.press("Storage")
        if beginning:
            self._screen.press(self._screen.wait_line(beginning))
        self._screen.press(name)


Act = Callable[[_Person], None]
ACTIONS: Mapping[str, Act] = {
    "stream": _Person.stream,
    "edit": _Person.edit,
    "regenerate": _Person.regenerate,
    "version": _Person.version,
    "branch": _Person.branch,
    "rename": _Person.rename,
    "duplicate": _Person.duplicate,
    "summarise": _Person.summarise,
    "archive": _Person.archive,
    "folder": _Person.folder,
    "tag": _Person.tag,
    "back up": _Person.back_up,
    "restore": _Person.restore,
    "compact": _Person.compact,
    "check": _Person.check,
    "schedule": _Person.schedule,
    "delete message": _Person.delete_message,
    "import": _Person.import_file,
    "search": _Person.search,
    "continue": _Person.continue_found,
    "delete conversation": _Person.delete_conversation,
}


class Trial:
    """One action on one disk, in one window."""

    def __init__(self, environment: dict[str, str], disk: Path, folder: Path, name: str, report: Report) -> None:
        self._environment = environment
        self._disk = disk
        self._action, self._condition = name.split(", ")
        self._name = name
        self._report = report
        new_folder = disk / "restored"
        new_folder.mkdir()
        self._person = _Person(random.Random(name), folder, new_folder)

    def run(self) -> None:
        data = self._disk / "data"
        if self._action == "continue":
            home = self._disk / "home"
            write_claude_code(home)
            self._environment = {**self._environment, "HOME": str(home)}
        with ModelServer(self._person.answer) as server:
            arguments = ("--base-url", server.url, "--model", MODEL)
            with opened(self._environment, data, *arguments) as (running, screen):
                self._act(screen, data)
                if running.process.poll() is not None:
                    self._fault(f"it ended with {running.process.returncode}")
                lines = running.unexpected
                running.output.write_text("")
            for line in lines:
                if "Traceback" in line:
                    self._fault("\n".join(lines))
            stored = read_stored(data)
            with opened(self._environment, data, *arguments) as (_, screen):
                screen.wait_for("Message")
                if lost := stored.words - read_stored(data).words:
                    self._fault(f"lost at the next start: {sorted(lost)}")

    def _act(self, screen: Screen, data: Path) -> None:
        person = self._person
        person.screen = screen
        screen.wait_for("Message")
        screen.send(person.word())
        wait_until("an answer", lambda: screen.texts("Assistant said"))
        screen.wait_for("Send")
        if self._action in {"version", "delete message"}:
            person.regenerate()
            screen.wait_for("2 of 2", "panel")
            screen.wait_for("Send")
        if self._action == "restore":
            person.back_up()
            screen.wait_says("The backup is in")
            screen.press("Close")
            screen.wait_gone("Sections")
        if self._action == "continue":
            person.show_found()
        before = read_stored(data)
        mend = break_disk(self._disk, self._condition)
        try:
            ACTIONS[self._action](person)
            self._report.outcomes[self._name] = self._outcome(screen)
        except pytest.fail.Exception as error:
            self._fault(f"the window cannot be used: {str(error)[:300]}")
        finally:
            mend()
        self._go_on(screen, data, before.words)

    def _outcome(self, screen: Screen) -> str:
        """Return what the screen says about the disk, or DONE."""

        def remedy() -> str:
            lines = screen.says().splitlines()
            return next((line for line in lines if any(known_remedy in line for known_remedy in _REMEDIES)), "")

        try:
            return wait_until("it is refused", remedy, _SECONDS)
        except pytest.fail.Exception:
            return DONE

    def _go_on(self, screen: Screen, data: Path, before: set[str]) -> None:
        word = self._person.word()
        try:
            screen.keys("Escape")
            if screen.find("Stop") is not None:
                screen.keys("ctrl+l", "Escape")
                screen.wait_gone("Stop")
            if screen.find("Continue here") is not None:
                self._person.continue_found()
                screen.wait_gone("Continue here")
            if screen.find("Search conversations") is not None:
                screen.write("Search conversations", "")
            screen.send(word)
            wait_until("the prompt is stored", lambda: word in read_stored(data).words)
        except pytest.fail.Exception as error:
            self._fault(f"afterwards: {str(error)[:300]}; the screen says {screen.says()[-1500:]!r}")
        shown_words = {shown for text in screen.texts("You said") for shown in text.split() if shown.startswith("z")}
        stored = read_stored(data).words
        if lost := shown_words - stored:
            self._fault(f"on the screen and not stored: {sorted(lost)}")
        if self._action != "delete message" and (lost := before - stored):
            self._fault(f"lost: {sorted(lost)}")

    def _fault(self, fault: str) -> None:
        self._report.faults.append(f"{self._name}: {fault}")


def live(actions: Sequence[str], conditions: Sequence[str]) -> Report:
    """Run all trials in this process, which must be allowed to mount."""
    report = Report()
    with (
        tempfile.TemporaryDirectory(prefix="window-refusals-") as name,
        readable_display(Path(name, "home")) as environment,
    ):
        for number, trial in enumerate(f"{action}, {condition}" for action in actions for condition in conditions):
            with small_disk(Path(name, str(number)), trial.partition(", ")[2]) as disk:
                try:
                    Trial(environment, disk, Path(name), trial, report).run()
                except (pytest.fail.Exception, AssertionError) as error:
                    report.faults.append(f"{trial}: {str(error)[:1500]}")
            faults = [fault for fault in report.faults if fault.startswith(trial)]
            print(f"{trial}: {report.outcomes.get(trial)}; {len(faults)} faults", *faults, sep="\n  ", file=sys.stderr)
    return report


def run_in_namespace(*arguments: str) -> Report:
    """Run the trials in a process that may mount, and return their report. Raises CalledProcessError."""
    command = ["unshare", "-Urm", sys.executable, "-m", "tests.soak.window_refusals", *arguments]
    process = subprocess.run(command, cwd=ROOT, env=dict(os.environ), check=True, stdout=subprocess.PIPE)
    return Report(**json.loads(process.stdout.splitlines()[-1]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.soak window-refusals", description="The window")
    parser.add_argument("--action", choices=sorted(ACTIONS), action="append", default=[], help="these only")
    parser.add_argument("--condition", choices=CONDITIONS, action="append", default=[], help="these only")
    return parser


def main(argv: list[str]) -> int:
    """Return 0 if there were no faults."""
    _parser().parse_args(argv)
    report = run_in_namespace(*argv)
    print(f"{len(report.outcomes)} trials, {len(report.faults)} faults")
    return 1 if report.faults else 0


def _inside() -> None:
    arguments: Any = _parser().parse_args()
    report = live(arguments.action or tuple(ACTIONS), arguments.condition or CONDITIONS)
    print(json.dumps({"outcomes": report.outcomes, "faults": report.faults}))


if __name__ == "__main__":
    _inside()
