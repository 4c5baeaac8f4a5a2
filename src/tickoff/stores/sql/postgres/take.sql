-- Win a name that is plainly free, or a new one: never withdrawn, paused, forgotten or crashed under a tick,
-- and a tick only when it starts afresh. What the proposed row (`excluded`) says beside the bid is what the
-- server remembers: nothing wherever it is inserted, and `barrier`, which stands for the remembered fence.
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
    AND lease.finished >= excluded.finished
    AND CASE WHEN excluded.tick > 0 THEN lease.decided < excluded.tick ELSE lease.decided >= excluded.decided END
RETURNING
    lease.taken, lease.name, lease.scheduled, lease.fence, lease.attempt, lease.decided, lease.finished, lease.since,
    lease.steered
