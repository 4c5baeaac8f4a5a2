-- Finish ticks that ended well under a lease that is still theirs, in one statement; answers with the rows as they are then.
-- All else goes the long way. Rows are locked in the order of their names, as races do: else the two could wait for each other.
WITH clock AS (
    SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS now
), ending AS (
    SELECT clock.now, e.* FROM clock, json_to_recordset(%(endings)s::json) AS e (
        name text, token text, owner text, tick bigint, held_fence bigint, taken bigint, attempt int, error text
    )
), ours AS MATERIALIZED (
    SELECT ending.*
    FROM ending JOIN tickoff_lease AS lease ON lease.name = ending.name
    WHERE lease.token = ending.token AND lease.until > ending.now AND lease.manual = 0
        AND lease.tick = ending.tick AND lease.decided = ending.tick
    ORDER BY lease.name
    FOR UPDATE OF lease
), settled AS (
    UPDATE tickoff_lease AS lease
    SET version = lease.version + 1, token = '', owner = '', tick = 0, until = 0, let_go = ours.token,
        since = greatest(lease.since, ours.tick), finished = greatest(lease.finished, ours.tick),
        outcome = 'ok', outcome_by = ours.owner, outcome_at = ours.now, used = ours.now
    FROM ours
    WHERE lease.name = ours.name
    RETURNING lease.*
), told AS (
    INSERT INTO tickoff_run (name, tick, fence, owner, started, ended, outcome, error, attempt, manual)
    SELECT name, tick, held_fence, owner, taken, now, 'ok', error, attempt, 0 FROM ours
    ON CONFLICT DO NOTHING
)
SELECT clock.now, row_to_json(settled)::text AS entry
FROM clock, settled
