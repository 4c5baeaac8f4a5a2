-- Win one name that is plainly free; answers with what the win adds to the bid, or with nothing.
INSERT INTO tickoff_lease AS lease (
    name, version, token, owner, tick, taken, until, ttl, fence, attempt, manual, let_go,
    decided, finished, since, open, outcome, outcome_by, outcome_at,
    steered, paused, paused_by, paused_why, barrier, scheduled, used, withdrawn
)
SELECT
    %(name)s::text, 1, %(token)s::text, %(owner)s::text, %(tick)s::bigint,
    now, now + %(ttl)s::bigint, %(ttl)s::bigint, now, sign(%(tick)s::bigint), 0, '',
    greatest(%(tick)s::bigint, %(decided)s::bigint), %(finished)s::bigint, %(since)s::bigint, 0, '', '', 0,
    %(steered)s::bigint, 0, '', '', %(fence)s::bigint, %(scheduled)s::smallint, now, ''
FROM (SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS now) AS clock
WHERE %(tick)s::bigint <= now
    AND (%(blank)s::boolean OR EXISTS (SELECT FROM tickoff_lease WHERE name = %(name)s::text))
-- TAKE
