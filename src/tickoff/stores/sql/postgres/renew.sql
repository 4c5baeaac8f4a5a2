-- Prolong every lease that these tokens still hold; answers with the rows prolonged.
WITH clock AS (
    SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS now
), hold AS (
    SELECT clock.now, h.* FROM clock, json_to_recordset(%(holds)s::json) AS h (name text, token text, ttl bigint)
)
UPDATE tickoff_lease AS lease
SET version = lease.version + 1, until = hold.now + hold.ttl, ttl = hold.ttl, used = hold.now
FROM hold
WHERE lease.name = hold.name AND lease.token = hold.token AND lease.until > hold.now
RETURNING hold.now, row_to_json(lease)::text AS entry
