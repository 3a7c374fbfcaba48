"""What is said and changed, deleted, restored and imported in any order, against a plain model of the tree.

The engine is real, and so are its database and its model server; conversations are opened whole or by their end.

More of it: python -m tests.desktop_agent.engine.test_branches_property --worlds 200
"""

import argparse
import asyncio
import json
import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from desktop_agent.engine import session_branches, session_opening
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.exchange.conversation_exchange import ConversationExchange, ExportFormat
from desktop_agent.storage.backups.backup import restore_backup, write_backup
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import Endpoint
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.fakes.model_server import answer, listing

CHOICES = ["say", "say", "say", "edit", "anew", "show", "show", "back", "delete", "delete"]
STORED = ["reopen", "back up", "restore", "trash", "export", "import", "import again"]
FIRST_PART = 3
"""So few messages are loaded first, that most conversations have earlier ones."""
_ENDPOINT, _MODEL = "loopback", "m"


@dataclass
class Model:
    """A plain model of the tree: each message by its text, in the order of writing, with its parent."""

    parents: dict[str, str | None] = field(default_factory=dict[str, str | None])
    head: str | None = None
    seen: dict[str, str] = field(default_factory=dict[str, str])

    def go_to(self, head: str | None) -> None:
        """Go to another end. What goes out of view is remembered with the end that it had."""
        abandoned = set(self.path(self.head)) - set(self.path(head))
        if self.head is not None:
            self.seen |= dict.fromkeys(abandoned, self.head)
        self.head = head

    def end_of(self, text: str) -> str:
        """Return the end to show a message with: that of its last view, else that of its newest branch."""
        in_view = text in self.path(self.head)
        return self.below(text if in_view else self.seen.get(text, text))[-1]

    def add(self, *texts: str) -> None:
        for text in texts:
            self.parents[text] = self.head
            self.head = text

    def copy(self) -> "Model":
        """Return the model as it is when the conversation is opened again."""
        return Model(dict(self.parents), self.head)

    def path(self, end: str | None) -> list[str]:
        texts: list[str] = []
        while end is not None:
            texts.insert(0, end)
            end = self.parents[end]
        return texts

    def below(self, top: str) -> list[str]:
        return [text for text in self.parents if top in self.path(text)]

    def children(self, parent: str | None) -> list[str]:
        return [text for text, above in self.parents.items() if above == parent]

    def beginning(self, text: str) -> str:
        """Return the first message of an answer, or the prompt itself."""
        if text.startswith("prompt"):
            return text
        path = self.path(text)
        last_prompt = max((index for index, name in enumerate(path) if name.startswith("prompt")), default=-1)
        return path[last_prompt + 1]

    def delete(self, text: str) -> None:
        top = self.beginning(text)
        versions = self.children(self.parents[top])
        index = versions.index(top)
        deleted = set(self.below(top))
        if self.head in deleted:
            others = versions[:index][-1:] or versions[1:2]
            self.go_to(self.below(others[0])[-1] if others else self.parents[top])
        self.parents = {name: above for name, above in self.parents.items() if name not in deleted}
        self.seen = {name: end for name, end in self.seen.items() if not deleted & {name, end}}

    def versions(self) -> dict[str, tuple[int, int]]:
        """Return the place and the number of versions of each message in view that has several."""
        places: dict[str, tuple[int, int]] = {}
        for text in self.path(self.head):
            others = self.children(self.parents[text])
            if len(others) > 1:
                places[text] = (others.index(text) + 1, len(others))
        return places


def name_of(message: Message) -> str:
    """Return the unique name of a message in the model; a result is named after its id."""
    if message.role is Role.TOOL:
        return f"result {message.id}"
    return message.text or f"call {message.id}"


class Server:
    """Answers with another text each time, and sometimes calls a tool that does not exist."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0

    def reply(self, request: Request) -> Reply:
        if request.method == "GET":
            return listing(_MODEL)
        self._count += 1
        if self._chance.random() < 0.8:
            return answer(f"answer {self._count}")
        function = {"name": "look", "arguments": json.dumps({"word": f"word {self._count}"})}
        call = {"index": 0, "id": f"call-{self._count}", "type": "function", "function": function}
        return Reply(sse(chunk({"tool_calls": [call]}), chunk(finish="tool_calls")))


class World:
    """A real conversation and the model of it."""

    def __init__(self, engine: Engine, chance: random.Random, folder: Path, *, is_stored: bool) -> None:
        self.engine = engine
        self.chance = chance
        self.is_stored = is_stored
        self.session = engine.new_session(in_memory=not is_stored)
        self.model = Model()
        self.ids: dict[str, str] = {}
        self.steps = 0
        self.folder = folder
        self.backups: list[tuple[Path, Model]] = []
        self.exports: list[tuple[Path, Model]] = []

    async def settle(self) -> None:
        """Add to the model what the run wrote behind the messages that stayed."""
        await self.session.wait_idle()
        assert self.session.error is None
        loaded = len(self.model.path(self.model.head)) - self.session.history_loader.unloaded_count
        for message in self.session.history[loaded:]:
            name = name_of(message)
            self.model.add(name)
            self.ids[name] = message.id

    async def step(self) -> str:
        """Do something; return what."""
        choice = self.chance.choice([*CHOICES, *(STORED if self.is_stored else [])])
        self.steps += 1
        if choice == "say" or not self.model.path(self.model.head):
            self.session.send(Message.user(f"prompt {self.steps}"))
            await self.settle()
        elif choice in STORED:
            await self.do_with_stored(choice)
        else:
            await self.change(choice)
        return choice

    async def change(self, choice: str) -> None:
        view = self.model.path(self.model.head)
        prompts = [text for text in view if text.startswith("prompt")]
        answers = [text for text in view if not text.startswith("prompt")]
        everything = list(self.model.parents)
        branches, loader = self.session.branches, self.session.history_loader
        if choice == "edit" and prompts:
            edited = self.chance.choice(prompts)
            assert await loader.load_until(self.ids[edited])
            branches.edit_prompt(self.ids[edited], Message.user(f"prompt {self.steps}"))
            self.model.go_to(self.model.parents[edited])
            await self.settle()
        elif choice == "anew" and answers:
            target = self.chance.choice(answers)
            assert await loader.load_until(self.ids[target])
            await loader.load_turn(self.ids[target])
            branches.regenerate(self.ids[target])
            self.model.go_to(self.model.parents[self.model.beginning(target)])
            await self.settle()
        elif choice == "show":
            target = self.chance.choice(everything)
            await branches.show(self.ids[target], whole=self.chance.random() < 0.5)
            self.model.go_to(self.model.end_of(target))
        elif choice == "back":
            end = self.chance.choice([text for text in view if not text.startswith("call")])
            assert await loader.load_until(self.ids[end])
            branches.branch_from(self.ids[end])
            self.model.go_to(end)
        elif choice == "delete":
            target = self.chance.choice(everything)
            await branches.delete(self.ids[target])
            self.model.delete(target)

    async def do_with_stored(self, choice: str) -> None:
        """Most of it with a conversation that is closed, and opened again afterwards."""
        id_ = self.session.record.id
        if choice == "import again":
            await self.import_again(id_)
            return
        await self.session.close()
        self.model = self.model.copy()
        match choice:
            case "back up":
                backup = await write_backup(self.engine.store, self.engine.folder, self.folder / "backups")
                self.backups.append((backup.folder, self.model.copy()))
            case "restore" if self.backups:
                await self.restore(*self.chance.choice(self.backups))
            case "trash":
                await self.engine.delete_conversation(id_)
                await self.import_again(id_)
                await self.engine.store.restore_conversation(id_)
            case "export":
                await self.export(id_)
            case "import" if self.exports:
                await self.delete_and_import(id_, *self.chance.choice(self.exports))
            case _:
                pass
        self.session = await self.engine.session(id_, whole=self.chance.random() < 0.5)
        if self.session.record.endpoint_id is None:
            # What was imported is gone on with where the person chooses.
            self.session.change_record(endpoint_id=_ENDPOINT, model=_MODEL)

    async def restore(self, backup: Path, model: Model) -> None:
        """Go on in a data folder that is restored from a backup."""
        folder = self.folder / f"restored {self.steps}"
        before, after = await restore_backup(backup, folder)
        assert before == after
        defaults = self.engine._defaults
        await self.engine.close()
        self.engine, self.model = await Engine.open(folder, defaults), model.copy()

    async def export(self, id_: str) -> None:
        export_format = self.chance.choice([ExportFormat.JSON, ExportFormat.ARCHIVE])
        path = self.folder / f"{self.steps}.{export_format.value}"
        await ConversationExchange(self.engine.store).export([id_], path, export_format)
        self.exports.append((path, self.model.copy()))

    async def delete_and_import(self, id_: str, path: Path, model: Model) -> None:
        """Delete it for good, and take it from an export, which may be an old one."""
        await self.engine.delete_conversation(id_)
        await self.engine.store.purge_conversation(id_)
        result = await ConversationExchange(self.engine.store).import_file(path)
        assert (result.added, result.present, result.skipped) == ([id_], 0, [])
        self.model = model.copy()

    async def import_again(self, id_: str) -> None:
        """Import an export, which may be an old one, of what is there: nothing comes of it."""
        if not self.exports:
            return
        await self.session.flush()
        store = self.engine.store
        before = await store.load_tree(id_), await store.record(id_)
        result = await ConversationExchange(store).import_file(self.chance.choice(self.exports)[0])
        assert (result.added, result.present, result.skipped) == ([], 1, [])
        assert (await store.load_tree(id_), await store.record(id_)) == before

    async def check(self) -> None:
        names = {id_: name for name, id_ in self.ids.items()}
        session, count = self.session, self.session.history_loader.unloaded_count
        path = self.model.path(self.model.head)
        assert [names[message.id] for message in session.history] == path[count:]
        places = {names[id_]: (place.index + 1, len(place.ids)) for id_, place in session.branches.versions.items()}
        expected = {text: place for text, place in self.model.versions().items() if text in path[count:]}
        assert places == {text: place for text, place in expected.items() if not text.startswith("result")}
        assert {names[id_] for id_ in session.branches.continuations} == set(self.model.children(self.model.head))
        if self.is_stored:
            await session.flush()
            await self.check_stored(names)
        assert session.record.title in {"", "New conversation", *self.model.parents}

    async def check_stored(self, names: dict[str, str]) -> None:
        listed = await self.engine.store.list_conversations()
        assert [record.id for record in listed] == ([self.session.record.id] if self.ids else [])
        if self.ids:
            tree = await self.engine.store.load_tree(self.session.record.id)
            stored = {names[node.message.id]: node.parent and names[node.parent] for node in tree.messages}
            assert list(stored.items()) == list(self.model.parents.items())
            assert tree.head == self.session.branches.head


async def live(folder: Path, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        for module in (session_opening, session_branches):
            patch.setattr(module, "FIRST_PART", FIRST_PART)
        async with Loopback(choose=Server(chance).reply, judged=False) as server:
            endpoint = Endpoint(id=_ENDPOINT, title="Loopback", base_url=server.url)
            engine = await Engine.open(folder / "data", RunDefaults(endpoint=endpoint, model=_MODEL, toolset="none"))
            world = World(engine, chance, folder, is_stored=bool(seed % 4))
            done: list[str] = []
            try:
                for _ in range(steps):
                    done.append(await world.step())
                    await world.check()
                assert await world.engine.store.integrity_checker.run(full=True) is not None
            except BaseException as error:
                error.add_note(f"world {seed}: {', '.join(done)}, and the next")
                raise
            finally:
                await world.engine.close()


@pytest.mark.parametrize("seed", range(4))
async def test_any_changes_leave_the_tree_of_the_model(tmp_path: Path, seed: int) -> None:
    await live(tmp_path, seed, 20)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    for seed in range(arguments.first, arguments.first + arguments.worlds):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(live(Path(folder), seed, arguments.steps))
    print(f"{arguments.worlds} worlds of {arguments.steps} steps")


if __name__ == "__main__":
    main()
