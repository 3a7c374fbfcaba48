"""How the world opens its conversation: as the engine does, with a model, hooks and guards of the world's own."""

from typing import TYPE_CHECKING

from desktop_agent.engine.permission_records import RuleBook
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.messages import now
from desktop_agent.types.policies import (
    Guard,
    GuardContinue,
    GuardMoment,
    GuardPass,
    Hooks,
    Limits,
    PostToolUse,
    PreToolUse,
    Specialist,
    UserPromptSubmit,
)
from desktop_agent.types.providers import ProviderConfig
from tests.invariants.life import RandomModel
from tests.invariants.scripts import HELPER, READ, WRITE

if TYPE_CHECKING:
    from tests.invariants.world import World

ID = "conversation"
# More turns than a server may pause in a row, so that both bounds are met.
LIMITS = Limits(tool_iterations=3, turns=25, depth=2)
BELOW = Limits(tool_iterations=2, turns=6)
GUARD_ITERATIONS = 2


_SPECIALIST = Specialist(
    name=HELPER,
    description="helps",
    system_prompt="You help.",
    tools=(READ, WRITE),
    specialists=(HELPER,),
    limits=BELOW,
)


def new_session(world: "World", book: RuleBook | None = None) -> Session:
    record = ConversationRecord(
        id=ID, title="New conversation", created_at=now(), updated_at=now(), endpoint_id="e", model="m"
    )
    return Session(
        SessionWriter(JournalQueue(world.life.store, record, is_new=True)), _setup(world, book or RuleBook())
    )


def opened_session(world: "World") -> Session:
    """Reopen what the disk holds, or a new session where the process died before anything was written."""
    return world.life.loop.complete(_opened(world))


async def _opened(world: "World") -> Session:
    store = world.life.store
    book = RuleBook(await store.rules.all())
    if not any(conversation.id == ID for conversation in await store.list_conversations()):
        return new_session(world, book)
    return await reopen_session(store, ID, _setup(world, book))


def _setup(world: "World", book: RuleBook) -> SessionSetup:
    model = RandomModel(world.next_answer)
    life = world.life

    async def open_provider(_record: ConversationRecord, _model: str) -> RandomModel:
        return model

    async def read_picture(_source: object) -> bytes:
        raise AssertionError

    def raise_if_told() -> None:
        if world.hooks_raise:
            raise ZeroDivisionError

    async def on_prompt(_moment: UserPromptSubmit) -> None:
        raise_if_told()

    async def before(_moment: PreToolUse) -> None:
        raise_if_told()

    async def after(_moment: PostToolUse) -> None:
        raise_if_told()

    async def guard(moment: GuardMoment) -> GuardContinue | GuardPass:
        if world.guard == "raise":
            raise ZeroDivisionError
        return GuardContinue("go on") if world.endless == "guards" or world.guard == "continue" else GuardPass()

    return SessionSetup(
        open_provider=open_provider,  # type: ignore[arg-type]
        read_picture=read_picture,
        tools_for=lambda _: ToolRegistry(life.tools()),
        config_for=lambda _: ProviderConfig(),
        limits=lambda: LIMITS,
        hooks=Hooks((on_prompt,), (before,), (after,)) if world.has_hooks else Hooks(),
        guards=(Guard("again", guard, GUARD_ITERATIONS),),
        specialists=lambda: (_SPECIALIST,),
        rule_book=book,
        store=None,
    )
