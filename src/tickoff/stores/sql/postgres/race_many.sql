-- Win every name that is plainly free, in one statement; answers with what the wins add to the bids, and
-- with the other rows as they are.
WITH clock AS (
    SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS now
), bid AS (
    SELECT clock.now, b.*
    FROM clock, json_to_recordset(%(bids)s::json) AS b (
        name text, token text, owner text, tick bigint, ttl bigint, scheduled smallint,
        fence bigint, decided bigint, finished bigint, since bigint, steered bigint, blank boolean
    )
), won AS (
    INSERT INTO tickoff_lease AS lease (
        name, version, token, owner, tick, taken, until, ttl, fence, attempt, let_go,
        decided, finished, since, open, outcome, outcome_by, outcome_at,
        steered, paused, paused_by, paused_why, barrier, scheduled, used, withdrawn
    )
    SELECT
        bid.name, 1, bid.token, bid.owner, bid.tick, now, now + bid.ttl, bid.ttl, now, sign(bid.tick), '',
        greatest(bid.tick, bid.decided), bid.finished, bid.since, 0, '', '', 0,
        bid.steered, 0, '', '', bid.fence, bid.scheduled, now, ''
    FROM bid LEFT JOIN tickoff_lease AS known ON known.name = bid.name AND NOT bid.blank
    WHERE bid.tick <= now AND (bid.blank OR known.name IS NOT NULL)
    ORDER BY bid.name
    -- TAKE
)
SELECT NULL AS lost, won.*
FROM won
UNION ALL
SELECT row_to_json(lease)::text, clock.now, lease.name, 0, 0, 0, 0, 0, 0, 0
FROM clock, tickoff_lease AS lease
WHERE lease.name IN (SELECT name FROM bid) AND lease.name NOT IN (SELECT name FROM won)
