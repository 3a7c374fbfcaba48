CREATE TABLE schedules (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 116 CHECK (mark = 116),
    id TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    revision INTEGER NOT NULL,
    checked_until INTEGER NOT NULL,  -- microseconds since 1970, UTC
    conversation TEXT  -- the id of the one that all runs go on in, or NULL
);

CREATE TABLE schedule_runs (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 117 CHECK (mark = 117),
    schedule TEXT NOT NULL,
    slot TEXT NOT NULL,  -- the time that it is for
    conversation TEXT NOT NULL,
    message TEXT NOT NULL,  -- the id of its prompt, chosen before that is stored
    state TEXT NOT NULL,
    result TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    UNIQUE (schedule, slot)
);
CREATE INDEX schedule_runs_claimed ON schedule_runs (message) WHERE state = 'claimed';
CREATE INDEX schedule_runs_by_schedule ON schedule_runs (schedule, number);
CREATE TRIGGER schedule_prompt_stored AFTER INSERT ON messages
WHEN EXISTS (SELECT 1 FROM schedule_runs WHERE message = new.id AND state = 'claimed')
BEGIN
    UPDATE schedule_runs SET state = 'started' WHERE message = new.id AND state = 'claimed';
END;
