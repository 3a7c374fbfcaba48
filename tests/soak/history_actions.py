"""What a person does with conversations, one function an action; and what there is of them afterwards.

An action says beforehand what may change (`World.intend`) and, when that has been acknowledged as stored, what is so
from then on (`World.confirm`). Both are facts, a value under a name: `place/ID` is "list" or "trash", None for what is
deleted for good; `title/ID`, `head/ID`, `draft/ID` and `message/ID/MESSAGE_ID` are texts; `export/NAME`, `backup/NAME`
and `restored/NAME` are what a file or a folder outside holds. `observe` finds the same facts in a data folder. A new
action is one function here and one entry in ACTIONS; a new kind of fact is one line in `_facts_of`.
"""

import asyncio
import random
import shutil
import string
import tempfile
import zipfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.exchange.conversation_exchange import ConversationExchange, ExportFormat
from desktop_agent.engine.session import Session
from desktop_agent.exchange.archive import write_archive
from desktop_agent.exchange.import_conversations import ConversationImport
from desktop_agent.storage.backups.backup import (
    Backup,
    count_stored,
    list_backups,
    remove_old_backups,
    restore_backup,
    write_backup,
)
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import Draft
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Image, Text
from desktop_agent.types.conversation_tree import ConversationTree, TreeMessage
from desktop_agent.types.engine_events import Envelope
from desktop_agent.types.errors import AgentError
from desktop_agent.types.messages import Message, Role, new_id, now
from desktop_agent.types.provider_events import ContentDelta
from tests.desktop_agent.exchange.sample_trees import png, read_picture, stored

Facts = Mapping[str, str | None]
ENDPOINT = "loopback"
MODEL = "m"
ANYTHING = "?"
"""Intended: a value that nobody knows yet."""
BACKUPS = "backups"
FILES = "files"
"""In which all is that is written outside of the data folder, beside backups."""
_KEPT_BACKUPS = 2
_WORDS = ["tea", "water", "kettle", "slowly", "green", "leaves", "boil", "pour", "wait", "cup", "again"]


@dataclass
class World:
    """An engine at work, and the folder in which all is that its person writes elsewhere."""

    engine: Engine
    place: Path
    chance: random.Random
    tell: Callable[[dict[str, Any]], None]
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])

    def intend(self, facts: Facts) -> None:
        self.tell({"intend": dict(facts)})

    def confirm(self, facts: Facts) -> None:
        self.tell({"confirm": dict(facts)})

    def token(self) -> str:
        """Return a word that was never said."""
        return "".join(self.chance.choices(string.ascii_lowercase, k=14))

    def words(self) -> str:
        return " ".join([self.token(), *self.chance.choices(_WORDS, k=self.chance.randrange(1, 30))])

    async def ids(self, *, in_trash: bool = False) -> list[str]:
        return [record.id for record in await self.engine.store.list_conversations(in_trash=in_trash)]

    async def some_id(self) -> str:
        """Return the id of one that is in the list, of a new one where there is none."""
        if not await self.ids():
            await begin(self)
        return self.chance.choice(await self.ids())

    async def session(self, conversation_id: str | None = None) -> Session:
        """Return the session of this conversation, or of one of those that are there."""
        conversation_id = conversation_id or await self.some_id()
        session = self.sessions[conversation_id] = await self.engine.session(conversation_id)
        if session.record.endpoint_id is None:
            # What was imported is gone on with where the person chooses.
            session.change_record(endpoint_id=ENDPOINT, model=MODEL)
        return session

    def free_path(self, name: str) -> Path:
        """Return where nothing is yet."""
        (self.place / FILES).mkdir(exist_ok=True)
        return self.place / FILES / f"{self.token()[:6]}-{name}"


def fact_of(conversation_id: str, message: Message) -> tuple[str, str]:
    """Return the fact that this message is stored."""
    return f"message/{conversation_id}/{message.id}", message.text


async def _run(world: World, session: Session, prompt: Message | None, start: Callable[[], object]) -> None:
    """Let the model answer to its end, and confirm what is stored whenever it is."""
    id_, pieces = session.record.id, list[str]()

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, ContentDelta):
            pieces.append(envelope.event.text)

    intended = dict([fact_of(id_, prompt)]) if prompt is not None else {}
    world.intend({f"place/{id_}": "list", f"title/{id_}": ANYTHING, f"head/{id_}": ANYTHING, **intended})
    session.subscribe(on_event=note)
    start()
    while session.working:
        said = "".join(pieces)
        await session.flush()
        world.confirm({f"place/{id_}": "list", **intended})
        world.tell({"begun": [id_, said]})
        await _next_piece(session, pieces)
    await session.wait_idle()
    await session.flush()
    session.unsubscribe(note)
    history = session.history
    said = {} if session.error is None else {"error": str(session.error)}
    world.confirm(dict(fact_of(id_, message) for message in history) | {f"head/{id_}": history[-1].id})
    world.tell({"begun": None, **said})


async def _next_piece(session: Session, pieces: Sequence[str]) -> None:
    known = len(pieces)
    while session.working and len(pieces) == known:
        await asyncio.sleep(0.002)


async def begin(world: World) -> None:
    session, prompt = world.engine.new_session(), Message.user(world.words())
    world.sessions[session.record.id] = session
    await _run(world, session, prompt, partial(session.send, prompt))


async def go_on(world: World) -> None:
    session, prompt = await world.session(), Message.user(world.words())
    await _run(world, session, prompt, partial(session.send, prompt))


async def edit(world: World) -> None:
    session, edited = await world.session(), Message.user(world.words())
    own = [message.id for message in session.history if message.role is Role.USER]
    if own:
        await _run(world, session, edited, partial(session.branches.edit_prompt, world.chance.choice(own), edited))


async def regenerate(world: World) -> None:
    session = await world.session()
    answers = [message.id for message in session.history if message.role is Role.ASSISTANT]
    if answers:
        await _run(world, session, None, partial(session.branches.regenerate, world.chance.choice(answers)))


async def show_version(world: World) -> None:
    session = await world.session()
    tree = await world.engine.store.load_tree(session.record.id)
    if tree.messages:
        name = f"head/{session.record.id}"
        world.intend({name: ANYTHING})
        await session.branches.show(world.chance.choice(tree.messages).message.id)
        await session.flush()
        world.confirm({name: session.history[-1].id})


async def rename(world: World) -> None:
    session, title = await world.session(), world.words()
    name = f"title/{session.record.id}"
    world.intend({name: title})
    session.change_record(title=title, title_is_automatic=False)
    await session.flush()
    world.confirm({name: title})


async def write_draft(world: World) -> None:
    id_, text = await world.some_id(), world.words()
    world.intend({f"draft/{id_}": text})
    await world.engine.store.save_draft(id_, Draft(text=text))
    world.confirm({f"draft/{id_}": text})


async def trash(world: World) -> None:
    id_ = await world.some_id()
    world.intend({f"place/{id_}": "trash"})
    await world.engine.delete_conversation(id_)
    world.confirm({f"place/{id_}": "trash"})


async def restore_from_trash(world: World) -> None:
    in_trash = await world.ids(in_trash=True)
    if in_trash:
        id_ = world.chance.choice(in_trash)
        world.intend({f"place/{id_}": "list"})
        await world.engine.store.restore_conversation(id_)
        world.confirm({f"place/{id_}": "list"})


async def delete_for_good(world: World) -> None:
    await trash(world)
    id_ = world.chance.choice(await world.ids(in_trash=True))
    world.intend({f"place/{id_}": None})
    await world.engine.store.purge_conversation(id_)
    world.confirm({f"place/{id_}": None})


async def empty_trash(world: World) -> None:
    await trash(world)
    facts = {f"place/{id_}": None for id_ in await world.ids(in_trash=True)}
    world.intend(facts)
    await world.engine.store.empty_trash()
    world.confirm(facts)


async def import_archive(world: World) -> None:
    """New ones, and then the same once more."""
    trees = [_tree(world) for _ in range(world.chance.randrange(1, 5))]
    places = {f"place/{tree.id}": "list" for tree in trees}
    messages = [fact_of(tree.id, node.message) for tree in trees for node in tree.messages]
    world.intend(places)
    # All or nothing: where the conversation is, they are.
    world.confirm(dict(messages) | {f"head/{tree.id}": tree.head for tree in trees})
    exchange = ConversationExchange(world.engine.store)
    # It comes from elsewhere: the disk of the data folder may refuse.
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        write_archive(file, trees, read_picture)
        file.flush()
        result = await exchange.import_file(Path(file.name))
        world.confirm(places)
        again = await exchange.import_file(Path(file.name))
    if len(result.added) != len(trees) or again.added or result.skipped:
        world.tell({"error": f"{result} of {len(trees)}, then {again}"})


def _tree(world: World) -> ConversationTree:
    nodes: list[TreeMessage] = []
    for number in range(world.chance.randrange(1, 12)):
        picture = Image(source=stored(png()), name="tea.png")
        role = Role.ASSISTANT if number % 2 else Role.USER
        blocks = [Text(text=world.words()), *([picture] if number % 4 == 0 else [])]
        parent = world.chance.choice(nodes[-3:]).message.id if nodes else None
        nodes.append(TreeMessage(message=Message(id=new_id(), role=role, blocks=blocks), parent=parent))
    moment = now()
    return ConversationTree(
        id=new_id(),
        title=world.words(),
        created_at=moment,
        updated_at=moment,
        messages=nodes,
        head=nodes[-1].message.id,
    )


async def search(world: World) -> None:
    await world.engine.store.search.index_all()


async def export(world: World) -> None:
    ids = await world.ids() or [await world.some_id()]
    chosen = world.chance.sample(ids, min(len(ids), world.chance.randrange(1, 5)))
    export_format = world.chance.choice(tuple(ExportFormat))
    path = world.free_path(f"export.{export_format.value}")
    is_folder = len(chosen) > 1 and export_format in {ExportFormat.MARKDOWN, ExportFormat.HTML}
    world.intend({f"export/{path.name}": ANYTHING if is_folder else str(len(chosen))})
    await ConversationExchange(world.engine.store).export(chosen, path, export_format)
    world.confirm({f"export/{path.name}": str(len(chosen))})


async def back_up(world: World) -> None:
    backup = await write_backup(world.engine.store, world.engine.folder, world.place / BACKUPS)
    world.confirm(dict([_fact_of_backup(backup)]))


async def thin_out_backups(world: World) -> None:
    await back_up(world)
    backups = await list_backups(world.place / BACKUPS)
    old = {f"backup/{backup.folder.name}": None for backup in backups[_KEPT_BACKUPS:]}
    world.intend(old)
    await remove_old_backups(world.place / BACKUPS, _KEPT_BACKUPS)
    world.confirm(old)


async def restore_from_backup(world: World) -> None:
    backups = await list_backups(world.place / BACKUPS)
    if not backups:
        await back_up(world)
        backups = await list_backups(world.place / BACKUPS)
    backup, path = world.chance.choice(backups), world.free_path("restored")
    world.intend({f"restored/{path.name}": str(backup.counts)})
    before, after = await restore_backup(backup.folder, path)
    world.confirm({f"restored/{path.name}": str(backup.counts)})
    if not backup.counts == before == after:
        world.tell({"error": f"{backup.counts} restored as {after}"})


async def check(world: World) -> None:
    if result := await world.engine.store.integrity_checker.run(full=True):
        world.tell({"said": str(result)})


ACTIONS: dict[str, Callable[[World], Awaitable[None]]] = {
    "begin": begin,
    "go on": go_on,
    "edit": edit,
    "regenerate": regenerate,
    "show version": show_version,
    "rename": rename,
    "draft": write_draft,
    "trash": trash,
    "restore from trash": restore_from_trash,
    "delete for good": delete_for_good,
    "empty trash": empty_trash,
    "import": import_archive,
    "search": search,
    "export": export,
    "back up": back_up,
    "thin out backups": thin_out_backups,
    "restore from backup": restore_from_backup,
    "check": check,
}


async def observe(world: World) -> dict[str, str | None]:
    """Return all facts about what is stored now, and about what lies outside."""
    facts: dict[str, str | None] = {}
    for place in ("list", "trash"):
        for id_ in await world.ids(in_trash=place == "trash"):
            facts[f"place/{id_}"] = place
            facts |= await _facts_of(world.engine, id_)
    facts |= map(_fact_of_backup, await list_backups(world.place / BACKUPS))
    for path in (world.place / FILES).glob("*-*"):
        kind = path.name.partition("-")[2].partition(".")[0]
        if kind == "restored":
            facts[f"restored/{path.name}"] = await _counted(path) if (path / DATABASE_NAME).exists() else None
        elif kind == "export":
            facts[f"export/{path.name}"] = _exported(path)
    return facts


async def _facts_of(engine: Engine, id_: str) -> dict[str, str | None]:
    tree = await engine.store.load_tree(id_)
    return {
        f"title/{id_}": tree.title,
        f"head/{id_}": tree.head,
        f"draft/{id_}": (await engine.store.load_draft(id_)).text or None,
        **dict(fact_of(id_, node.message) for node in tree.messages),
    }


def _fact_of_backup(backup: Backup) -> tuple[str, str | None]:
    """Return what is in a backup; that it is whole is what the fact says."""
    is_whole = count_stored(backup.folder) == backup.counts
    return f"backup/{backup.folder.name}", str(backup.counts) if is_whole else "broken"


async def _counted(folder: Path) -> str:
    """Return what a folder has into which was restored: opened, since a kill may have left it half-way."""
    try:
        await (await Store.open(folder)).close()
        return str(count_stored(folder))
    except AgentError as error:
        return f"broken: {error} {error.detail}"


def _exported(path: Path) -> str | None:
    """Return how many conversations a file, or a folder of files, has; None where it is not there yet."""
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
    """Remove what was observed outside of the data folder, but for backups."""
    shutil.rmtree(world.place / FILES, ignore_errors=True)
