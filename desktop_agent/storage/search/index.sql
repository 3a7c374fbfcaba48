CREATE TABLE state (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    token TEXT NOT NULL,  -- the database's when its changes were read last
    next_token TEXT,  -- the database's after they are removed there
    conversations_below INTEGER NOT NULL,  -- those with smaller numbers are not in the index yet
    messages_below INTEGER NOT NULL
);
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    model TEXT,
    workspace TEXT,
    created_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
    is_deleted INTEGER NOT NULL,
    id TEXT NOT NULL
);
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    at INTEGER NOT NULL,  -- as created_at
    role TEXT NOT NULL,
    flags INTEGER NOT NULL,
    text INTEGER,  -- the number of the first piece of its text; NULL where there is none
    last_text INTEGER,
    model TEXT
);
CREATE INDEX documents_by_conversation ON documents (conversation);
-- Numbered as they come, so that pages are filled: messages come newest first.
CREATE TABLE texts (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE shards (number INTEGER PRIMARY KEY);
CREATE TABLE compactions (shard INTEGER PRIMARY KEY);
