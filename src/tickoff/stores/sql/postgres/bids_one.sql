    SELECT
        clock.now, %(name)s::text AS name, %(token)s::text AS token, %(owner)s::text AS owner,
        %(tick)s::bigint AS tick, %(ttl)s::bigint AS ttl, %(scheduled)s::smallint AS scheduled,
        %(fence)s::bigint AS fence, %(since)s::bigint AS since, %(steered)s::bigint AS steered,
        %(blank)s::boolean AS blank
    FROM clock
