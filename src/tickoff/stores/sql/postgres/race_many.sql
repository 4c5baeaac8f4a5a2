-- Win the first `limit` names that are plainly free, in one statement; answers with what the wins add to the
-- bids, and with the other rows as they are.
WITH clock AS (
    SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS now
), bid AS (
    SELECT clock.now, b.*
    FROM clock, ROWS FROM (json_to_recordset(%(bids)s::json) AS (
        name text, token text, owner text, tick bigint, ttl bigint, scheduled smallint,
        fence bigint, decided bigint, finished bigint, since bigint, steered bigint, blank boolean
    )) WITH ORDINALITY AS b (
        name, token, owner, tick, ttl, scheduled, fence, decided, finished, since, steered, blank, place
    )
), free AS ( -- as far as can be seen without a lock; `take` looks again
    SELECT bid.*
    FROM bid LEFT JOIN tickoff_lease AS known ON known.name = bid.name
    WHERE bid.tick <= now AND (bid.blank OR known.name IS NOT NULL)
        AND (known.name IS NULL OR known.until <= now AND (bid.tick = 0 OR known.decided < bid.tick))
    ORDER BY bid.place
    LIMIT %(limit)s
), won AS (
    INSERT INTO tickoff_lease AS lease (
        name, version, token, owner, tick, taken, until, ttl, fence, attempt, manual, let_go,
        decided, finished, since, open, outcome, outcome_by, outcome_at,
        steered, paused, paused_by, paused_why, barrier, scheduled, used, withdrawn
    )
    SELECT
        name, 1, token, owner, tick, now, now + ttl, ttl, now, sign(tick), 0, '',
        greatest(tick, decided), finished, since, 0, '', '', 0,
        steered, 0, '', '', fence, scheduled, now, ''
    FROM free
    ORDER BY name
    -- TAKE
)
SELECT NULL AS lost, won.*
FROM won
UNION ALL
SELECT row_to_json(lease)::text, clock.now, lease.name, 0, 0, 0, 0, 0, 0, 0
FROM clock, tickoff_lease AS lease
WHERE lease.name IN (SELECT name FROM bid) AND lease.name NOT IN (SELECT name FROM won)
