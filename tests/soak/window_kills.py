"""`kill -9` of the real window while it is used: `python -m tests.soak window-kills --kills 30 --seed 1`.

The program runs on a display of its own, with a model server on loopback, and is used by its accessible names and by
keys: prompts, edits, regenerated answers, titles, searches, deletions, imports. Each window is killed a moment after
such an action began. Just before, the committed content is read from its database. The next window must open without a
warning and hold all of it, each word in only one message, except what was being deleted; SQLite's own check must find
no damage. At the end no byte of a deleted message is in the data folder.
"""

import argparse
import json
import random
import re
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.exchange.conversation_json import write_conversations
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.types.blocks import Text
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.messages import Message, new_id, now
from tests.fakes.threaded_model_server import MODEL, Asked, ModelServer, Story
from tests.fakes.window_process import Screen, opened, wait_until
from tests.frame.displays import readable_display
from tests.soak.stored_files import find_damage, find_words

_WORD = re.compile(r"\bz[a-z]{13}z\b")
_LONGEST_DELAY = 1.5
"""Seconds between the start of an action and the kill."""
_PACE = 0.01
_ACTIONS_WITH_TITLES = {"rename", "stream", "edit", "delete message"}
"""Actions after which a title may have changed."""


@dataclass
class Report:
    """The results of all kills. `kills` by the action under way; `words` counts the words that were compared."""

    kills: Counter[str] = field(default_factory=Counter[str])
    words: int = 0
    faults: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Stored:
    """What is committed: how many messages have each word, words of unfinished answers, and titles by id."""

    messages: Counter[str] = field(default_factory=Counter[str])
    journal: frozenset[str] = frozenset()
    titles: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def words(self) -> set[str]:
        return self.messages.keys() | self.journal


def read_stored(data: Path) -> Stored:
    """Read beside the program."""
    if not (data / DATABASE_NAME).exists():
        return Stored()
    with closing(sqlite3.connect(f"file:{data / DATABASE_NAME}?mode=ro", uri=True)) as database:
        database.execute("BEGIN")
        messages = [str(body) for (body,) in database.execute("SELECT body FROM messages")]
        journal = [str(event) for (event,) in database.execute("SELECT event FROM journal")]
        titles: dict[str, str] = dict(database.execute("SELECT id, title FROM conversations"))
    words = Counter(word for body in messages for word in set(_WORD.findall(body)))
    return Stored(words, frozenset(word for event in journal for word in _WORD.findall(event)), titles)


def compare(before: Stored, after: Stored, action: str) -> Iterator[str]:
    """Yield what is lost, changed or repeated and cannot be due to this action, which was under way."""
    lost = before.words - after.words
    if lost and action != "delete message":
        yield f"{len(lost)} words are gone: {sorted(lost)[:3]}"
    yield from (f"{word} is in {count} messages" for word, count in after.messages.items() if count > 1)
    for id_, title in before.titles.items():
        is_kept = after.titles.get(id_) == title or action in _ACTIONS_WITH_TITLES
        if id_ not in after.titles or not is_kept:
            yield f"the title {title!r} of {id_} is {after.titles.get(id_)!r}"


class Person:
    """Uses one window. Each action begins something and returns."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.chance = chance
        self.place = folder
        self.stored = Stored()
        """What was stored when this window opened."""
        self.screen: Screen | None = None

    def word(self) -> str:
        """Return a word that was never used before."""
        return f"z{''.join(self.chance.choices('abcdefghijklmnopqrstuvwxy', k=13))}z"

    def answer(self, _: Asked) -> Story:
        count = self.chance.choice((3, 30, 1000))
        return Story((f"{self.word()} " for _ in range(count)), pace=_PACE)

    @property
    def _screen(self) -> Screen:
        assert self.screen is not None
        return self.screen

    def stream(self) -> None:
        if self.chance.random() < 0.3:
            self._screen.new_conversation()
        self._screen.send(f"{self.word()} {self.word()}")

    def edit(self) -> None:
        self._with_an_answer()
        self._screen.keys("ctrl+alt+e")
        self._screen.wait_for("Editing an earlier message")
        self._screen.write("Message", self.word())
        self._screen.press("Send")

    def regenerate(self) -> None:
        self._with_an_answer()
        self._screen.keys("ctrl+alt+r")

    def rename(self) -> None:
        self._with_an_answer()
        self._command("Rename this conversation")
        self._screen.type_text(f"{self.word()} by hand")
        self._screen.keys("Return")

    def search(self) -> None:
        candidates = sorted(self.stored.words) or [self.word()]
        self._screen.keys("ctrl+shift+f")
        self._screen.wait_for("Search conversations")
        self._screen.write("Search conversations", self.chance.choice(candidates))

    def delete_conversation(self) -> None:
        self._with_an_answer()
        self._command("Delete this conversation")

    def delete_message(self) -> None:
        self._with_an_answer()
        self._command("Delete message…")
        self._screen.wait_for("Delete for good")
        self._screen.press("Delete for good")

    def import_file(self) -> None:
        path = self.place / f"{self.word()}.json"
        with path.open("wb") as file:
            write_conversations([self._tree() for _ in range(20)], file.write)
        self._command("Import conversations…")
        self._screen.wait_for("Import conversations — Desktop Agent", "dialog")
        self._screen.write("File name:", str(path))
        wait_until("Open can be pressed", lambda: "enabled" in self._screen.wait_for("Open")["states"])
        self._screen.press("Open")

    def _tree(self) -> ConversationTree:
        nodes: list[TreeMessage] = []
        for _ in range(20):
            parent = nodes[-1].message.id if nodes else None
            message = Message.user(Text(text=self.word()).text)
            nodes.append(TreeMessage(message=message, parent=parent))
        moment = now()
        return ConversationTree(
            id=new_id(),
            title="Imported",
            created_at=moment,
            updated_at=moment,
            messages=nodes,
            head=nodes[-1].message.id,
        )

    def _with_an_answer(self) -> None:
        """Make sure that an answer is on the screen and nothing is under way."""
        if not self._screen.texts("Assistant said"):
            self._screen.send(self.word())
            wait_until("an answer begins", lambda: self._screen.texts("Assistant said"))
        if self._screen.find("Stop") is not None:
            self._screen.keys("ctrl+l", "Escape")
            self._screen.wait_gone("Stop")

    def _command(self, name: str) -> None:
        """Choose a command of the palette."""
        self._screen.keys("ctrl+k")
        self._screen.wait_for("Commands", "text")
        self._screen.write("Commands", name)
        wait_until(f"{name} is listed first", lambda: ("Commands", name) in pairwise(self._commands()))
        self._screen.keys("Return")
        wait_until("the palette closes", lambda: self._screen.find("Commands", "text") is None)

    def _commands(self) -> list[str]:
        """Return the items of the palette; the heading is an item too."""
        return [node["name"] for node in self._screen.tree() if node["role"] == "list item"]


Action = Callable[[Person], None]
ACTIONS: Mapping[str, Action] = {
    "stream": Person.stream,
    "edit": Person.edit,
    "regenerate": Person.regenerate,
    "rename": Person.rename,
    "search": Person.search,
    "delete conversation": Person.delete_conversation,
    "delete message": Person.delete_message,
    "import": Person.import_file,
}


class Lives:
    """The successive windows on one data folder."""

    def __init__(self, environment: dict[str, str], folder: Path, person: Person, server: ModelServer) -> None:
        self._environment = environment
        self._data = folder / "data"
        self._person = person
        self._arguments = ("--base-url", server.url, "--model", MODEL)
        self._gone: set[str] = set()
        self._before = Stored()
        self._action = ""
        self.report = Report()

    def kill_one(self, action: str) -> None:
        with opened(self._environment, self._data, *self._arguments) as (running, screen):
            screen.wait_for("Message")
            self._judge()
            self._person.screen = screen
            ACTIONS[action](self._person)
            time.sleep(self._person.chance.random() * _LONGEST_DELAY)
            self._before, self._action = read_stored(self._data), action
            running.kill()
        self.report.kills[action] += 1
        self._fault(*find_damage(self._data))

    def close(self) -> None:
        """Open and close the folder twice more, and look for deleted words in its files."""
        for _ in range(2):
            with opened(self._environment, self._data, *self._arguments) as (running, screen):
                screen.wait_for("Message")
                self._judge()
                self._person.screen = screen
                self._person.search()
                wait_until("it is searched", lambda: screen.find("Search results"))
                if code := running.end():
                    self._fault(f"it ended with {code}")
            self._before, self._action = read_stored(self._data), ""
        self._fault(*find_damage(self._data), *find_words(self._data, self._gone))

    def _judge(self) -> None:
        """Compare with what was committed before the kill, and go on from what there is."""
        stored = read_stored(self._data)
        self._fault(*compare(self._before, stored, self._action))
        self._fault(*(f"{word} is back" for word in self._gone & stored.words))
        self._gone |= self._before.words - stored.words
        self.report.words += len(stored.words)
        self._person.stored = stored

    def _fault(self, *faults: str) -> None:
        kills = self.report.kills.total()
        self.report.faults += [f"{kills} kills, {self._action or 'the end'}: {fault}" for fault in faults]


def live(kills: int, seed: int, actions: list[str], tell: Callable[[str], object]) -> Report:
    """Run everything in a temporary folder, which is kept if there were faults."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="window-kills-"))
    person = Person(chance, folder)
    with readable_display(folder / "home") as environment, ModelServer(person.answer) as server:
        lives = Lives(environment, folder, person, server)
        for number, action in enumerate(_plan(chance, actions, kills), 1):
            lives.kill_one(action)
            tell(f"{number} {action}: {len(lives.report.faults)} faults")
            if lives.report.faults:
                break
        else:
            lives.close()
    if lives.report.faults:
        tell(f"the data is in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return lives.report


def _plan(chance: random.Random, actions: list[str], kills: int) -> Iterator[str]:
    """Yield each action equally often, in random order."""
    round_: list[str] = []
    for _ in range(kills):
        round_ = round_ or chance.sample(actions, len(actions))
        yield round_.pop()


def main(argv: list[str]) -> int:
    """Return 0 if there were no faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak window-kills", description="Kills of the window")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--action", choices=sorted(ACTIONS), action="append", default=[], help="these only")
    arguments: Any = parser.parse_args(argv)
    print(f"seed {arguments.seed}, {arguments.kills} kills of the window", flush=True)
    try:
        report = live(
            arguments.kills, arguments.seed, arguments.action or list(ACTIONS), lambda line: print(line, flush=True)
        )
    except pytest.fail.Exception as error:
        print(f"FAULT {error}")
        return 1
    print(json.dumps(report.kills), f"{report.words} words compared, {len(report.faults)} faults")
    for fault in report.faults:
        print(f"FAULT {fault}")
    return 1 if report.faults else 0
