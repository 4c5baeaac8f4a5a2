-- Win every name that is plainly free, in one statement: never withdrawn, paused, forgotten or crashed under
-- a tick, and a tick only when it starts afresh. Answers with what the wins add to the bids, and with the other rows as they are.
-- (`barrier` carries the fence the server remembers: 0 wherever the row is new, as it must be there.)
WITH clock AS (
    SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS now
), bid AS (
    -- BIDS
), won AS (
    INSERT INTO tickoff_lease AS lease (
        name, version, token, owner, tick, taken, until, ttl, fence, attempt, let_go,
        decided, finished, since, open, outcome, outcome_by, outcome_at,
        steered, paused, paused_by, paused_why, barrier, scheduled, used, withdrawn
    )
    SELECT
        bid.name, 1, bid.token, bid.owner, bid.tick, now, now + bid.ttl, bid.ttl, now, sign(bid.tick), '',
        bid.tick, 0, bid.since, 0, '', '', 0,
        bid.steered, 0, '', '', bid.fence, bid.scheduled, now, ''
    FROM bid LEFT JOIN tickoff_lease AS known ON known.name = bid.name AND NOT bid.blank
    WHERE bid.tick <= now AND (bid.blank OR known.name IS NOT NULL)
    ORDER BY bid.name
    ON CONFLICT (name) DO UPDATE SET
        version = lease.version + 1,
        token = excluded.token,
        owner = excluded.owner,
        tick = excluded.tick,
        taken = excluded.taken,
        until = excluded.until,
        ttl = excluded.ttl,
        fence = greatest(lease.fence + 1, excluded.fence),
        attempt = CASE WHEN excluded.tick > 0 THEN 1 ELSE lease.attempt END,
        decided = greatest(lease.decided, excluded.tick),
        since = greatest(lease.since, excluded.since),
        open = CASE WHEN excluded.tick > 0 THEN 0 ELSE lease.open END,
        outcome = CASE WHEN excluded.tick > 0 THEN '' ELSE lease.outcome END,
        outcome_by = CASE WHEN excluded.tick > 0 THEN '' ELSE lease.outcome_by END,
        outcome_at = CASE WHEN excluded.tick > 0 THEN 0 ELSE lease.outcome_at END,
        barrier = 0,
        scheduled = greatest(lease.scheduled, excluded.scheduled),
        used = excluded.used
    WHERE lease.until <= excluded.taken
        AND (lease.token = '' OR lease.tick = 0)
        AND lease.paused = 0
        AND lease.barrier <= excluded.taken
        AND lease.withdrawn = ''
        AND lease.fence >= excluded.barrier
        AND lease.steered >= excluded.steered
        AND (excluded.tick = 0 OR excluded.tick > lease.decided)
    RETURNING
        lease.name, lease.scheduled, lease.fence, lease.attempt, lease.decided, lease.finished, lease.since,
        lease.steered
)
SELECT NULL AS lost, clock.now, won.*
FROM clock, won
UNION ALL
SELECT row_to_json(lease)::text, clock.now, lease.name, 0, 0, 0, 0, 0, 0, 0
FROM clock, tickoff_lease AS lease
WHERE lease.name IN (SELECT name FROM bid) AND lease.name NOT IN (SELECT name FROM won)
