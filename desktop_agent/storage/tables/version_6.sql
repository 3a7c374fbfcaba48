CREATE TABLE search_changes (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 111 CHECK (mark = 111),
    kind TEXT NOT NULL,
    subject INTEGER NOT NULL  -- the number of the message or the conversation
);
CREATE TABLE search_state (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    mark INTEGER NOT NULL DEFAULT 112 CHECK (mark = 112),
    token TEXT NOT NULL
);
CREATE TRIGGER search_message_added AFTER INSERT ON messages WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('message', new.number);
END;
CREATE TRIGGER search_message_changed AFTER UPDATE OF conversation, id, role, created_at, body ON messages
WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('message', new.number);
END;
-- One row for a conversation that is deleted with all its messages.
CREATE TRIGGER search_message_deleted AFTER DELETE ON messages
WHEN EXISTS (SELECT 1 FROM search_state) AND EXISTS (SELECT 1 FROM conversations WHERE number = old.conversation)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('message', old.number);
END;
CREATE TRIGGER search_conversation_added AFTER INSERT ON conversations WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('conversation', new.number);
END;
CREATE TRIGGER search_conversation_changed AFTER UPDATE OF id, title, model, workspace, deleted_at ON conversations
WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('conversation', new.number);
END;
CREATE TRIGGER search_conversation_deleted AFTER DELETE ON conversations WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('conversation_deleted', old.number);
END;
