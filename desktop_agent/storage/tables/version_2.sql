ALTER TABLE conversations ADD COLUMN reasoning TEXT;  -- JSON, or NULL for what the model does by itself
