"""An engine at work on a data folder, what is said of it, and the facts about what there is of conversations.

An action says beforehand what may change (`World.intend`) and, when that has been acknowledged as stored, what is so
from then on (`World.confirm`). Both are facts, a value under a name: `place/ID` is "list" or "trash", None for what is
deleted for good; `title/ID`, `head/ID`, `draft/ID` and `message/ID/MESSAGE_ID` are texts; `placed/ID` is the folder,
the pin, the archive and the tags; `folder/ID` is a folder; `export/NAME`, `backup/NAME` and `restored/NAME` are what a
file or a folder outside holds. `observe` finds the same facts in a data folder. A new kind of fact is one line in
`_facts_of`.

What changes in one transaction is said with `World.intend_together`. Conversations and folders that get their ids
within an action are announced by what they will be (`World.announce`, with the values of `whole/ID`, and of the names
of folders), and words that are there more than once from then on with `World.copy_words`.
"""

import random
import re
import shutil
import string
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.session import Session
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.storage.backups.backup import Backup, count_stored, list_backups
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import AgentError
from desktop_agent.types.folders import Folder, Placement
from desktop_agent.types.messages import Message, new_id

Facts = Mapping[str, str | None]
ENDPOINT = "loopback"
MODEL = "m"
ANYTHING = "?"
"""Stands for an intended value that is not known yet."""
BACKUPS = "backups"
FILES = "files"
"""The folder for all files outside of the data folder, apart from backups."""
WORDS = ["tea", "water", "kettle", "slowly", "green", "leaves", "boil", "pour", "wait", "cup", "again"]
WORD = re.compile(r"\b[a-z]{14}\b")
"""A word that is used only once (`World.token`)."""


@dataclass
class World:
    """An engine, and the folder for files that its person writes outside of the data folder."""

    engine: Engine
    place: Path
    chance: random.Random
    tell: Callable[[dict[str, Any]], None]
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])

    def intend(self, facts: Facts) -> None:
        self.tell({"intend": dict(facts)})

    def confirm(self, facts: Facts) -> None:
        self.tell({"confirm": dict(facts)})

    def intend_together(self, facts: Facts) -> None:
        """Intend changes that must be stored together or not at all."""
        self.intend(facts)
        self.tell({"together": dict(facts)})

    def confirm_together(self, facts: Facts) -> None:
        self.tell({"together": {}})
        self.confirm(facts)

    def announce(self, *values: str) -> None:
        """Announce what may be stored with an unknown id: `whole_of` a conversation, or the name of a folder."""
        self.tell({"announced": values})

    def copy_words(self, texts: Iterable[str]) -> None:
        """Report that each word of each of these texts is stored once more from now on."""
        self.tell({"copied": Counter(word for text in texts for word in set(WORD.findall(text)))})

    def token(self) -> str:
        """Return a word that was never used before."""
        return "".join(self.chance.choices(string.ascii_lowercase, k=14))

    def words(self) -> str:
        return " ".join([self.token(), *self.chance.choices(WORDS, k=self.chance.randrange(1, 30))])

    async def ids(self, *, in_trash: bool = False) -> list[str]:
        return [record.id for record in await self.engine.store.list_conversations(in_trash=in_trash)]

    async def some_id(self) -> str:
        """Return the id of a conversation in the list, or of a new one if there is none."""
        ids = await self.ids() or [await self._create()]
        return self.chance.choice(ids)

    async def _create(self) -> str:
        id_ = new_id()
        self.intend({f"place/{id_}": "list"})
        await self.engine.store.create_conversation(title=self.words(), endpoint_id=ENDPOINT, model=MODEL, id_=id_)
        self.confirm({f"place/{id_}": "list"})
        return id_

    async def session(self, conversation_id: str | None = None) -> Session:
        """Return the session of this conversation, or of any stored one."""
        conversation_id = conversation_id or await self.some_id()
        session = self.sessions[conversation_id] = await self.engine.session(conversation_id)
        if session.record.endpoint_id is None:
            # An imported conversation has no endpoint until the person chooses one.
            session.change_record(endpoint_id=ENDPOINT, model=MODEL)
        return session

    def free_path(self, name: str) -> Path:
        """Return a path at which nothing exists yet."""
        (self.place / FILES).mkdir(exist_ok=True)
        return self.place / FILES / f"{self.token()[:6]}-{name}"


def fact_of(conversation_id: str, message: Message) -> tuple[str, str]:
    """Return the fact that this message is stored."""
    return f"message/{conversation_id}/{message.id}", message.text


Action = Callable[[World], Awaitable[None]]


def whole_of(tree: ConversationTree, endpoint: str | None) -> str:
    """Return a value that differs between a whole conversation and a part of it."""
    return f"{endpoint}|{'/'.join(tree.folder)}|{','.join(sorted(tree.tags))}|{len(tree.messages)} messages"


def value_of_folder(folder: Folder) -> str:
    return f"{folder.name}|{folder.colour.value}|{folder.parent}|{folder.instructions}"


def fact_of_placement(placement: Placement) -> tuple[str, str]:
    is_pinned, is_archived = placement.pinned_at is not None, placement.archived_at is not None
    tags = ",".join(sorted(placement.tags))
    return f"placed/{placement.conversation_id}", f"{placement.folder}|{is_pinned}|{is_archived}|{tags}"


async def observe(world: World) -> dict[str, str | None]:
    """Return all facts about what is stored now, and about what lies outside."""
    facts: dict[str, str | None] = {}
    for place in ("list", "trash"):
        for id_ in await world.ids(in_trash=place == "trash"):
            facts[f"place/{id_}"] = place
            facts |= await _facts_of(world.engine, id_)
    facts |= {f"folder/{folder.id}": value_of_folder(folder) for folder in await world.engine.store.folders.all()}
    facts |= map(fact_of_backup, await list_backups(world.place / BACKUPS))
    for path in (world.place / FILES).glob("*-*"):
        kind = path.name.partition("-")[2].partition(".")[0]
        if kind == "restored":
            facts[f"restored/{path.name}"] = await _counted(path) if (path / DATABASE_NAME).exists() else None
        elif kind == "export":
            facts[f"export/{path.name}"] = _exported(path)
    return facts


async def _facts_of(engine: Engine, id_: str) -> dict[str, str | None]:
    tree, record = await engine.store.load_tree(id_), await engine.store.record(id_)
    (placement,) = await engine.store.placements.of([id_])
    return {
        f"whole/{id_}": whole_of(tree, record.endpoint_id),
        **dict([fact_of_placement(placement)]),
        f"title/{id_}": tree.title,
        f"head/{id_}": tree.head,
        f"draft/{id_}": (await engine.store.load_draft(id_)).text or None,
        **dict(fact_of(id_, node.message) for node in tree.messages),
    }


def fact_of_backup(backup: Backup) -> tuple[str, str | None]:
    """Return the fact that a backup is intact, with its contents."""
    is_whole = count_stored(backup.folder) == backup.counts
    return f"backup/{backup.folder.name}", str(backup.counts) if is_whole else "broken"


async def _counted(folder: Path) -> str:
    """Return the contents of a restored folder, by opening it, since a kill may have left it half restored."""
    try:
        await (await Store.open(folder)).close()
        return str(count_stored(folder))
    except AgentError as error:
        return f"broken: {error} {error.detail}"


def _exported(path: Path) -> str | None:
    """Return the number of conversations in a file or a folder of files; None if it does not exist yet."""
    if path.suffix == ".zip" and zipfile.ZipFile(path).testzip() is not None:
        return "broken"
    if path.suffix in {".zip", ".json"}:
        with ConversationImport(path) as entries:
            return str(sum(isinstance(entry, ConversationTree) for entry in entries))
    if path.is_file():
        return "1" if _is_whole(path) else "broken"
    files = [file for file in path.iterdir() if file.is_file() and not file.name.startswith(".")]
    return str(len(files)) if all(map(_is_whole, files)) else "broken"


def _is_whole(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return text.rstrip().endswith("</html>") if path.suffix == ".html" else bool(text.strip())


def tidy(world: World) -> None:
    """Remove the observed files outside of the data folder, except backups."""
    shutil.rmtree(world.place / FILES, ignore_errors=True)
