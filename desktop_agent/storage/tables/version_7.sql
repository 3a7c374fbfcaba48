CREATE TABLE folders (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 113 CHECK (mark = 113),
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    colour TEXT NOT NULL,
    parent INTEGER  -- the folder that it is in, or NULL at the top
);
CREATE INDEX folders_by_parent ON folders (parent);
CREATE TABLE tags (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 114 CHECK (mark = 114),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    name TEXT NOT NULL COLLATE NOCASE,
    UNIQUE (conversation, name)
);
CREATE INDEX tags_by_name ON tags (name, conversation);
ALTER TABLE conversations ADD COLUMN folder INTEGER;  -- NULL at the top
ALTER TABLE conversations ADD COLUMN pinned_at INTEGER;
ALTER TABLE conversations ADD COLUMN archived_at INTEGER;
-- Three partial indexes have each conversation that a list shows once: among those of its folder, pinned, or archived.
CREATE INDEX conversations_in_folder ON conversations (folder, updated_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL AND pinned_at IS NULL;
CREATE INDEX conversations_pinned ON conversations (folder, pinned_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL AND pinned_at IS NOT NULL;
CREATE INDEX conversations_archived ON conversations (updated_at)
    WHERE deleted_at IS NULL AND archived_at IS NOT NULL;
CREATE INDEX conversations_by_folder ON conversations (folder) WHERE folder IS NOT NULL;
