ALTER TABLE conversations ADD COLUMN parameters TEXT;  -- JSON, or NULL for what the server does by itself
