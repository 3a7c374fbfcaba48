-- What a rescue does after rows were lost: what points at a row that is lost, or in a circle, is mended so that every
-- message can still be reached.
DELETE FROM runs WHERE conversation NOT IN (SELECT number FROM conversations);
DELETE FROM journal WHERE number >> 32 NOT IN (SELECT number FROM runs);
DELETE FROM checkpoints WHERE conversation NOT IN (SELECT number FROM conversations);
DELETE FROM drafts WHERE number <> 0 AND number NOT IN (SELECT number FROM conversations);
-- A position alone is wrong where its neighbours on both sides agree: the parent, and a child or the head's count.
UPDATE messages SET position = 1 + coalesce(
        (SELECT g.position FROM messages g WHERE g.number = messages.parent), 0)
    WHERE number IN (
        SELECT m.number FROM messages m LEFT JOIN messages g
            ON g.number = m.parent AND g.number < m.number AND g.conversation = m.conversation
        WHERE (m.parent IS NULL OR g.number IS NOT NULL) AND m.position <> 1 + coalesce(g.position, 0) AND (
            EXISTS (SELECT 1 FROM messages c WHERE c.parent = m.number AND c.conversation = m.conversation
                AND c.position = 2 + coalesce(g.position, 0))
            OR EXISTS (SELECT 1 FROM conversations k WHERE k.number = m.conversation AND k.head = m.number
                AND k.message_count = 1 + coalesce(g.position, 0))));
-- A parent by the position; where that leads nowhere it was wrong itself, or the one before is lost.
UPDATE messages SET parent = coalesce(
        (SELECT max(b.number) FROM messages b WHERE b.conversation = messages.conversation
            AND b.number < messages.number AND b.position = messages.position - 1),
        (SELECT b.number FROM messages b WHERE b.conversation = messages.conversation
            AND b.number < messages.number AND b.number = messages.parent),
        (SELECT max(b.number) FROM messages b WHERE b.conversation = messages.conversation
            AND b.number < messages.number AND messages.parent IS NOT NULL))
    WHERE (parent IS NOT NULL OR position > 1) AND NOT EXISTS (SELECT 1 FROM messages b
        WHERE b.number = messages.parent AND b.number < messages.number
            AND b.conversation = messages.conversation AND b.position = messages.position - 1);
-- A head is believed unless fewer messages led to it than were counted.
UPDATE conversations SET head = coalesce(
        (SELECT max(b.number) FROM messages b
            WHERE b.conversation = conversations.number AND b.position = message_count),
        (SELECT b.number FROM messages b WHERE b.conversation = conversations.number AND b.number = head),
        (SELECT max(b.number) FROM messages b WHERE b.conversation = conversations.number))
    WHERE (head IS NOT NULL OR message_count > 0) AND NOT EXISTS (SELECT 1 FROM messages b
        WHERE b.number = head AND b.conversation = conversations.number AND b.position >= message_count);
-- Nothing may be in a folder that is gone, or in a circle of folders.
DELETE FROM tags WHERE conversation NOT IN (SELECT number FROM conversations);
UPDATE conversations SET folder = NULL WHERE folder NOT IN (SELECT number FROM folders);
UPDATE folders SET parent = NULL WHERE parent NOT IN (SELECT number FROM folders);
WITH RECURSIVE reached (number) AS (
    SELECT number FROM folders WHERE parent IS NULL
    UNION SELECT f.number FROM reached r JOIN folders f ON f.parent = r.number
)
UPDATE folders SET parent = NULL WHERE number NOT IN (SELECT number FROM reached);
DELETE FROM schedule_runs WHERE schedule NOT IN (SELECT id FROM schedules);
