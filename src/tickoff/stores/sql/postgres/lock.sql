-- Win a plain lock that its server has had before, if nothing stands in the way; answers with what the win adds to the
-- bid, or with nothing. What `take` would do, without proposing a whole row first.
UPDATE tickoff_lease AS lease
SET version = version + 1, token = %(token)s, owner = %(owner)s, tick = 0,
    taken = now, until = now + %(ttl)s, ttl = %(ttl)s,
    fence = greatest(fence + 1, now), barrier = 0, used = now
FROM (SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS now) AS clock
WHERE name = %(name)s
    AND until <= now
    AND (token = '' OR tick = 0)
    AND paused = 0
    AND barrier <= now
    AND withdrawn = ''
    AND fence >= %(fence)s
RETURNING taken, scheduled, fence, attempt, decided, finished, since, steered
