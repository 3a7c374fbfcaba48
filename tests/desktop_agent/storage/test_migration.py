"""A database of an older version opens and keeps everything."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from desktop_agent.storage.connection import connect
from desktop_agent.storage.migrations import MIGRATIONS, migrate, schema_version
from desktop_agent.storage.opening import DATABASE_NAME, open_database
from desktop_agent.storage.records import ConversationState, Draft
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.engine_events import RunStarted, TurnStarted
from desktop_agent.types.messages import Role
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ReasoningEffort

BEFORE = 2
# Rows as version 2 wrote them.
_CONVERSATION = (
    "INSERT INTO conversations (id, title, title_is_automatic, created_at, updated_at, endpoint_id, model, workspace,"
    " reasoning) VALUES ('c', 'Old', 0, 1000000, 2000000, 'ollama', 'm', '/w',"
    ' \'{"type":"effort","level":"low"}\')'
)
_PROMPT = (
    '{"id":"p","role":"user","blocks":[{"type":"text","text":"go","citations":[],"provider":"","metadata":{}}],'
    '"state":"complete","created_at":"2025-01-01T00:00:00Z","model":null,"usage":null,"stop_reason":null,'
    '"stop_details":null,"origin":null,"adjustments":[]}'
)
_ANSWER = (
    '{"id":"a","role":"assistant","blocks":[{"type":"tool_use","id":"1","name":"look","input":{},"malformed":null,'
    '"provider":"","metadata":{}}],"state":"complete","created_at":"2025-01-01T00:00:01Z","model":"m","usage":null,'
    '"stop_reason":"tool_use","stop_details":null,"origin":null,"adjustments":[]}'
)
_EVENTS = (
    ("run_started", '{"message_id":"p","type":"run_started"}'),
    ("turn_started", '{"turn_id":"t","message_id":"b","model":"m","type":"turn_started"}'),
    ("content_delta", '{"text":"Hi","phase":null,"type":"content_delta"}'),
)


def write_old(folder: Path) -> None:
    path = folder / DATABASE_NAME
    path.touch()
    with closing(connect(path)) as db:
        migrate(db, path, MIGRATIONS[:BEFORE])
        assert schema_version(db) == BEFORE
        db.execute(_CONVERSATION)
        for number, (id_, role, body) in enumerate((("p", "user", _PROMPT), ("a", "assistant", _ANSWER)), 1):
            db.execute(
                "INSERT INTO messages (conversation, id, parent, position, role, state, created_at, body)"
                " VALUES (1, ?, ?, ?, ?, 'complete', '2025-01-01T00:00:00+00:00', ?)",
                (id_, number - 1 or None, number, role, body),
            )
        db.execute("UPDATE conversations SET head = 2, message_count = 2")
        db.execute("INSERT INTO runs (conversation, id) VALUES (1, 'r')")
        for seq, (type_, event) in enumerate(_EVENTS, 1):
            db.execute(
                "INSERT INTO journal (number, turn_id, at, type, event) VALUES (?, ?, ?, ?, ?)",
                (1 << 32 | seq, None if seq == 1 else "t", "2025-01-01T00:00:02+00:00", type_, event),
            )
        db.execute('INSERT INTO drafts (number, body) VALUES (1, \'{"text":"half a thought","images":[]}\')')
        db.execute("INSERT INTO pictures (digest, media_type, size) VALUES ('d', 'image/png', 1)")
        db.execute("INSERT INTO picture_uses (conversation, digest) VALUES (1, 'd')")


async def test_everything_of_the_version_before_is_there(tmp_path: Path) -> None:
    write_old(tmp_path)
    store = await Store.open(tmp_path)
    (record,) = await store.list_conversations()
    assert (record.id, record.title, record.title_is_automatic) == ("c", "Old", False)
    assert (record.endpoint_id, record.model, record.workspace) == ("ollama", "m", "/w")
    assert record.updated_at == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    assert record.reasoning == ReasoningEffort(level="low")
    assert record.state == ConversationState()
    loaded = await store.load("c")
    assert [(item.id, item.role) for item in loaded.messages] == [("p", Role.USER), ("a", Role.ASSISTANT)]
    assert loaded.messages[0].blocks == (Text(text="go"),)
    assert loaded.messages[1].tool_uses == (ToolUse(id="1", name="look"),)
    assert loaded.skipped == 0
    assert [item.event for item in loaded.journal] == [
        RunStarted("p"),
        TurnStarted("t", "b", "m"),
        ContentDelta("Hi"),
    ]
    assert await store.load_draft("c") == Draft(text="half a thought")
    assert await store.rules.all() == ()
    page, _ = await store.list_page(5)
    assert [(row.id, row.is_pinned, row.tags) for row in page] == [("c", False, ())]
    assert (record.folder, record.archived_at, await store.folders.all()) == (None, None, ())
    assert await store.checkpoints.of_conversation("c") == ()
    await store.close()
    with closing(open_database(tmp_path).connection) as db:
        assert schema_version(db) == len(MIGRATIONS)
        assert db.execute("SELECT digest FROM pictures").fetchall() == [("d",)]


def test_a_copy_of_the_version_before_is_left(tmp_path: Path) -> None:
    write_old(tmp_path)
    open_database(tmp_path).connection.close()
    (copy,) = tmp_path.glob(f"{DATABASE_NAME}.before-version-*")
    with closing(connect(copy)) as db:
        assert schema_version(db) == BEFORE
        assert db.execute("SELECT title FROM conversations").fetchall() == [("Old",)]
