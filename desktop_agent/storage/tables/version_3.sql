ALTER TABLE conversations ADD COLUMN state TEXT;  -- JSON, or NULL for what every conversation begins with

-- The conversation is named by its id: a rule may be made before the conversation is written.
CREATE TABLE rules (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 108 CHECK (mark = 108),
    id TEXT NOT NULL UNIQUE,
    conversation TEXT,
    body TEXT NOT NULL,
    last_used_at TEXT
);
CREATE INDEX rules_by_conversation ON rules (conversation);

CREATE TABLE checkpoints (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 110 CHECK (mark = 110),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    body TEXT NOT NULL,  -- JSON; the bytes of files are in blobs, by their digests
    UNIQUE (conversation, id)
);
