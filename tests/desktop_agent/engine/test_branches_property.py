"""What is said and changed, deleted, restored and imported in any order, against a plain model of the tree.

More of it: python -m tests.desktop_agent.engine.test_branches_property --worlds 200
"""

import argparse
import asyncio
import random
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from desktop_agent.engine.exchange.conversation_exchange import ConversationExchange, ExportFormat
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import in_memory_session, reopen_session
from desktop_agent.storage.backups.backup import restore_backup, write_backup
from desktop_agent.storage.store import Store
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Stage, shaky_store

CHOICES = ["say", "say", "say", "edit", "anew", "show", "show", "back", "delete", "delete"]
BETWEEN_SESSIONS = ["reopen", "back up", "restore", "trash", "import"]


@dataclass
class Model:
    """The plainest way to say it: each message by its text, in the order of writing, with the one before it."""

    parents: dict[str, str | None] = field(default_factory=dict[str, str | None])
    head: str | None = None
    seen: dict[str, str] = field(default_factory=dict[str, str])

    def go_to(self, head: str | None) -> None:
        """Go to another end. What is left is found again as it was."""
        left = set(self.path(self.head)) - set(self.path(head))
        if self.head is not None:
            self.seen |= dict.fromkeys(left, self.head)
        self.head = head

    def end_of(self, text: str) -> str:
        """Where a message is seen when it is wanted: as it was last, or in the newest branch."""
        in_view = text in self.path(self.head)
        return self.below(text if in_view else self.seen.get(text, text))[-1]

    def add(self, *texts: str) -> None:
        for text in texts:
            self.parents[text] = self.head
            self.head = text

    def copy(self) -> "Model":
        """Return it as it is found when it is opened the next time."""
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
        """The first message of an answer; a prompt itself."""
        if text.startswith("prompt"):
            return text
        path = self.path(text)
        last_prompt = max((index for index, each in enumerate(path) if each.startswith("prompt")), default=-1)
        return path[last_prompt + 1]

    def delete(self, text: str) -> None:
        top = self.beginning(text)
        versions = self.children(self.parents[top])
        index = versions.index(top)
        gone = set(self.below(top))
        if self.head in gone:
            others = versions[:index][-1:] or versions[1:2]
            self.go_to(self.below(others[0])[-1] if others else self.parents[top])
        self.parents = {each: above for each, above in self.parents.items() if each not in gone}
        self.seen = {each: end for each, end in self.seen.items() if not gone & {each, end}}

    def versions(self) -> dict[str, tuple[int, int]]:
        """Where there are several, by those in view that people see."""
        places: dict[str, tuple[int, int]] = {}
        for text in self.path(self.head):
            others = self.children(self.parents[text])
            if len(others) > 1:
                places[text] = (others.index(text) + 1, len(others))
        return places


def name_of(message: Message) -> str:
    """Texts are unique, and a result has that of its call."""
    if message.role is Role.TOOL:
        return f"result {message.id}"
    return message.text or f"call {message.id}"


class World:
    """A real session and the model of it."""

    def __init__(self, stage: Stage, chance: random.Random, folder: Path, *, is_stored: bool) -> None:
        self.stage = stage
        self.chance = chance
        self.is_stored = is_stored
        setup = stage.session._runs._setup
        self.session = stage.session if is_stored else in_memory_session(replace(setup, store=None), model="m")
        self.model = Model()
        self.ids: dict[str, str] = {}
        self.prompts = 0
        self.store = stage.shaky.store
        self.data = folder / "data"
        self.folder = folder
        self.backups: list[tuple[Path, Model]] = []

    async def settle(self, *, prompt: str | None = None) -> None:
        """Take into the model what the run wrote behind what was kept."""
        await self.session.wait_idle()
        kept = len(self.model.path(self.model.head))
        for message in self.session.history[kept:]:
            name = prompt or name_of(message)
            prompt = None
            self.model.add(name)
            self.ids[name] = message.id

    async def step(self) -> None:
        view = self.model.path(self.model.head)
        prompts = [text for text in view if text.startswith("prompt")]
        answers = [text for text in view if not text.startswith("prompt")]
        everything = list(self.model.parents)
        choice = self.chance.choice([*CHOICES, *BETWEEN_SESSIONS])
        self.prompts += 1
        if choice == "say" or not view:
            self.session.send(Message.user(f"prompt {self.prompts}"))
            await self.settle()
        elif choice == "edit" and prompts:
            edited = self.chance.choice(prompts)
            self.session.branches.edit_prompt(self.ids[edited], Message.user(f"prompt {self.prompts}"))
            self.model.go_to(self.model.parents[edited])
            await self.settle()
        elif choice == "anew" and answers:
            answer = self.chance.choice(answers)
            self.session.branches.regenerate(self.ids[answer])
            self.model.go_to(self.model.parents[self.model.beginning(answer)])
            await self.settle()
        elif choice == "show":
            wanted = self.chance.choice(everything)
            await self.session.branches.show(self.ids[wanted])
            self.model.go_to(self.model.end_of(wanted))
        elif choice == "back":
            end = self.chance.choice([text for text in view if not text.startswith("call")])
            self.session.branches.branch_from(self.ids[end])
            self.model.go_to(end)
        elif choice == "delete":
            wanted = self.chance.choice(everything)
            await self.session.branches.delete(self.ids[wanted])
            self.model.delete(wanted)
        elif self.is_stored and choice in BETWEEN_SESSIONS:
            await self.between_sessions(choice)

    async def between_sessions(self, choice: str) -> None:
        """Close the conversation, do something with what is stored of it, and open it again."""
        await self.session.close()
        self.model = self.model.copy()
        id_ = self.session.record.id
        if choice == "back up":
            backup = await write_backup(self.store, self.data, self.folder / "backups")
            self.backups.append((backup.folder, self.model.copy()))
        elif choice == "restore" and self.backups:
            await self.restore(*self.chance.choice(self.backups))
        elif choice == "trash":
            await self.store.delete_conversation(id_)
            await self.store.restore_conversation(id_)
        elif choice == "import":
            await self.export_and_import(id_)
        setup = replace(self.session._runs._setup, store=self.store)
        self.session = await reopen_session(self.store, id_, setup)

    async def restore(self, backup: Path, model: Model) -> None:
        """Go on in a data folder that is restored from a backup."""
        folder = self.folder / f"restored {self.prompts}"
        before, after = await restore_backup(backup, folder)
        assert before == after
        await self.close_restored()
        self.store, self.data, self.model = await Store.open(folder), folder, model.copy()

    async def close_restored(self) -> None:
        if self.store is not self.stage.shaky.store:
            await self.store.close()

    async def export_and_import(self, id_: str) -> None:
        """Delete it for good, and take it from its export."""
        path = self.folder / f"{self.prompts}.json"
        exchange = ConversationExchange(self.store)
        await exchange.export([id_], path, ExportFormat.JSON)
        await self.store.delete_conversation(id_)
        await self.store.purge_conversation(id_)
        assert (await exchange.import_file(path)).added == [id_]
        assert (await exchange.import_file(path)).present == 1

    async def check(self) -> None:
        names = {id_: name for name, id_ in self.ids.items()}
        session = self.session
        assert [names[message.id] for message in session.history] == self.model.path(self.model.head)
        places = {names[id_]: (place.index + 1, len(place.ids)) for id_, place in session.branches.versions.items()}
        assert places == {text: place for text, place in self.model.versions().items() if not text.startswith("result")}
        assert {names[id_] for id_ in session.branches.continuations} == set(self.model.children(self.model.head))
        if self.is_stored:
            await session.flush()
            tree = await self.store.load_tree(session.record.id)
            stored = {names[node.message.id]: node.parent and names[node.parent] for node in tree.messages}
            assert list(stored.items()) == list(self.model.parents.items())
            assert tree.head == session._writer.head
        self.check_title(session)

    def check_title(self, session: Session) -> None:
        assert session.record.title == "" or session.record.title in self.model.parents


async def live(folder: Path, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    turns = [
        Turn(call(str(number), "look", f"word {number}"))
        if chance.random() < 0.2
        else Turn(ContentDelta(f"answer {number}"))
        for number in range(3 * steps)
    ]
    async with shaky_store(folder) as shaky:
        stage = Stage(shaky, *turns, tools=(tool("look", read_only=True),), setup={"store": shaky.store}, title="")
        world = World(stage, chance, folder.parent, is_stored=bool(seed % 4))
        for _ in range(steps):
            await world.step()
            await world.check()
        assert await world.store.integrity_checker.run(full=True) is not None
        await world.session.close()
        await world.close_restored()
        await stage.session.close()


@pytest.mark.parametrize("seed", range(4))
async def test_any_changes_leave_the_tree_of_the_model(tmp_path: Path, seed: int) -> None:
    await live(tmp_path / "data", seed, 12)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    for seed in range(given.first, given.first + given.worlds):
        with tempfile.TemporaryDirectory() as folder:
            try:
                asyncio.run(live(Path(folder) / "data", seed, given.steps))
            except BaseException:
                print(f"world {seed}")
                raise
    print(f"{given.worlds} worlds of {given.steps} steps")


if __name__ == "__main__":
    main()
