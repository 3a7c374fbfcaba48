CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 101 CHECK (mark = 101),
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    title_is_automatic INTEGER NOT NULL,
    created_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
    updated_at INTEGER NOT NULL,
    endpoint_id TEXT,
    model TEXT,
    workspace TEXT,
    head INTEGER,  -- the message that ends the branch in view
    message_count INTEGER NOT NULL DEFAULT 0,
    deleted_at INTEGER
);
CREATE INDEX conversations_by_time ON conversations (deleted_at, updated_at DESC);

CREATE TABLE messages (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 102 CHECK (mark = 102),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    parent INTEGER,  -- always a smaller number
    position INTEGER NOT NULL,  -- 1 for the first of a branch
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (conversation, id)
);

CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 103 CHECK (mark = 103),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0,
    UNIQUE (conversation, id)
);
CREATE INDEX runs_open ON runs (conversation) WHERE finished = 0;

-- number is run * 2^32 + seq: rows of a run lie together and in order without an index.
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 104 CHECK (mark = 104),
    parent_run_id TEXT,
    turn_id TEXT,
    at TEXT NOT NULL,
    type TEXT NOT NULL,
    event TEXT NOT NULL
);

-- number is the conversation's, or 0 for the one that is not yet created.
CREATE TABLE drafts (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 105 CHECK (mark = 105),
    body TEXT NOT NULL
);

CREATE TABLE pictures (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 106 CHECK (mark = 106),
    digest TEXT NOT NULL UNIQUE,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    width INTEGER,
    height INTEGER
);

-- conversation as in drafts: 0 is the draft that has none.
CREATE TABLE picture_uses (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 107 CHECK (mark = 107),
    conversation INTEGER NOT NULL,
    digest TEXT NOT NULL,
    UNIQUE (conversation, digest)
);
CREATE INDEX picture_uses_by_digest ON picture_uses (digest);
