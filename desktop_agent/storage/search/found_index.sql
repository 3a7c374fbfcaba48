CREATE TABLE IF NOT EXISTS origins (
    number INTEGER PRIMARY KEY,  -- of the conversation; those of its messages begin with it
    size INTEGER NOT NULL,  -- how many numbers are its own
    program TEXT NOT NULL,
    id BLOB NOT NULL,  -- in that program; names of files are no text everywhere
    changed TEXT NOT NULL,  -- what the program's list said of its last change
    updated_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
    characters INTEGER NOT NULL,
    UNIQUE (program, id)
);
CREATE TABLE IF NOT EXISTS message_ids (number INTEGER PRIMARY KEY, id TEXT NOT NULL);
