CREATE INDEX messages_by_parent ON messages (conversation, parent);
ALTER TABLE conversations ADD COLUMN origin TEXT;  -- JSON, or NULL for what began here
