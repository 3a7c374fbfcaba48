CREATE TABLE usage (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 115 CHECK (mark = 115),
    day TEXT NOT NULL,  -- the person's local day, such as 2026-03-29
    model TEXT NOT NULL,
    project TEXT NOT NULL,  -- the folder of work, or '' without one
    answers INTEGER NOT NULL DEFAULT 0,
    uncounted INTEGER NOT NULL DEFAULT 0,
    unpriced INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    cost_nanos INTEGER NOT NULL DEFAULT 0,
    saved_nanos INTEGER NOT NULL DEFAULT 0,
    UNIQUE (day, model, project)
);

-- Filled from the messages of a database that had no such table. What is JSON of `Usage`, or NULL, becomes the counts of
-- one answer. What the cache saved is not known any more.
INSERT INTO usage (day, model, project, answers, uncounted, unpriced, tokens, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_nanos, saved_nanos)
SELECT day, model, project,
    1, CASE WHEN coalesce(nullif(usage ->> 'total_tokens', 0), nullif(coalesce(usage ->> 'input_tokens', 0)
        + coalesce(usage ->> 'output_tokens', 0), 0)) IS NULL THEN 1 ELSE 0 END, usage ->> 'cost' IS NULL,
    coalesce(usage ->> 'total_tokens', coalesce(usage ->> 'input_tokens', 0) + coalesce(usage ->> 'output_tokens', 0)),
    coalesce(usage ->> 'input_tokens', 0), coalesce(usage ->> 'output_tokens', 0),
    coalesce(usage ->> 'cache_read_tokens', 0), coalesce(usage ->> 'cache_write_tokens', 0),
    coalesce(usage ->> 'reasoning_tokens', 0), CAST(round(coalesce(usage ->> 'cost', 0) * 1e9) AS INTEGER), 0
FROM (
    -- Answers and summaries, of all branches; then what titles and specialists used, on the day of the last message.
    -- What was brought in from elsewhere, copies, and the demo cost nothing here. The demo's server is called “demo”.
    SELECT date(m.created_at, 'localtime') AS day, coalesce(m.body ->> 'model', c.model, '') AS model,
        coalesce(c.workspace, '') AS project, json_extract(m.body, '$.usage') AS usage, m.role = 'assistant' AS counts
    FROM messages m CROSS JOIN conversations c ON c.number = m.conversation
    WHERE m.role IN ('assistant', 'system') AND c.origin IS NULL AND coalesce(c.endpoint_id, '') <> 'demo'
        AND json_valid(m.body)
    UNION ALL
    SELECT date(updated_at / 1000000, 'unixepoch', 'localtime'), coalesce(model, ''), coalesce(workspace, ''),
        json_extract(state, '$.title_usage'), 0
    FROM conversations
    WHERE origin IS NULL AND coalesce(endpoint_id, '') <> 'demo' AND json_valid(state)
    UNION ALL
    SELECT date(updated_at / 1000000, 'unixepoch', 'localtime'), coalesce(model, ''), coalesce(workspace, ''),
        json_extract(state, '$.specialist_usage'), 0
    FROM conversations
    WHERE origin IS NULL AND coalesce(endpoint_id, '') <> 'demo' AND json_valid(state)
)
WHERE day IS NOT NULL AND (counts OR usage IS NOT NULL)
ON CONFLICT (day, model, project) DO UPDATE SET
    answers = answers + excluded.answers,
    uncounted = uncounted + excluded.uncounted,
    unpriced = unpriced + excluded.unpriced,
    tokens = tokens + excluded.tokens,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
    cost_nanos = cost_nanos + excluded.cost_nanos,
    saved_nanos = saved_nanos + excluded.saved_nanos;
